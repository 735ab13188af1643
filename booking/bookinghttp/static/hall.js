// Hall is what the page knows about one showtime: its seats by section and row,
// their prices, and how many are free. It draws nothing.
(() => {
  'use strict';
  const { t, money, geometry: g, readShape } = window.Usher;
  const byLabel = new Intl.Collator(undefined, { numeric: true }).compare;

  class Hall {
    constructor(map) {
      this.currency = map.currency;
      this.shape = readShape(map.shape);
      this.classes = new Map((map.priceClasses ?? []).map((c, i) => [c.code, { ...c, index: i % 6 }]));
      this.sections = new Map();
      this.byCode = new Map();
      this.seats = map.seats.map((s) => this.#seat(s));
      for (const s of this.shape.sections) this.#describe(s);
      for (const section of this.sections.values()) this.#finish(section);
      this.pitch = g.pitchOf([...this.sections.values()].flatMap((s) => s.standing ? [] : [...s.rows.values()]));
      for (const section of this.sections.values()) this.#outline(section);
      this.bounds = [...this.sections.values()].map((s) => s.bounds).reduce(g.join);
      for (const b of this.#furniture()) this.bounds = g.join(this.bounds, b);
      // Small halls show every seat at once; big ones show sections first.
      this.small = this.seats.length <= 700;
    }

    #seat(s) {
      const seat = { ...s, number: String(s.number), angle: 0 };
      let section = this.sections.get(s.section);
      if (!section) {
        section = { code: s.section, name: s.section, seats: [], rows: new Map(), free: 0 };
        this.sections.set(s.section, section);
      }
      seat.in = section;
      section.seats.push(seat);
      this.byCode.set(seat.code, seat);
      return seat;
    }
    #describe(shape) {
      const section = this.sections.get(shape.code);
      if (section) Object.assign(section, { points: shape.points, at: shape.at, name: shape.name, standing: shape.standing || undefined });
    }
    #finish(section) {
      section.standing ??= section.seats.every((s) => s.standing);
      for (const s of section.seats) {
        if (!section.rows.has(s.row)) section.rows.set(s.row, []);
        section.rows.get(s.row).push(s);
      }
      for (const row of section.rows.values()) {
        row.sort((a, b) => byLabel(a.number, b.number));
        if (!section.standing) row.forEach((s, i) => { s.angle = g.angleIn(row, i); });
      }
      this.count(section);
    }
    #outline(section) {
      const r = this.pitch * 0.75, seats = g.grow(g.boundsOf(section.seats), r);
      section.points ??= g.hull(section.seats.flatMap((s) => [-r, r].flatMap((dx) => [-r, r].map((dy) => ({ x: s.x + dx, y: s.y + dy })))));
      section.bounds = g.join(g.boundsOf(section.points), seats);
      section.center = section.at ?? { x: (seats.x0 + seats.x1) / 2, y: (seats.y0 + seats.y1) / 2 };
    }
    #furniture() { return this.shape.furniture.map((f) => f.bounds).filter(Boolean); }

    count(section) {
      section.free = 0;
      section.classes = new Set();
      section.lowest = Infinity;
      for (const s of section.seats) {
        section.classes.add(s.priceClass);
        if (s.status !== 'AVAILABLE') continue;
        section.free++;
        section.lowest = Math.min(section.lowest, this.priceOf(s));
      }
      return section.free;
    }

    get free() { return [...this.sections.values()].reduce((n, s) => n + s.free, 0); }
    priceOf(seat) { return this.classes.get(seat.priceClass)?.amount ?? 0; }
    price(seat) { return money(this.priceOf(seat), this.currency); }
    total(codes) { return [...codes].reduce((sum, code) => sum + this.priceOf(this.byCode.get(code)), 0); }

    // where names a seat for people. A hall of one section does not name it.
    where(seat) {
      if (seat.in.standing) return t('where.standing', { section: seat.in.name });
      const key = this.sections.size > 1 ? 'where.section' : 'where.row';
      return t(key, { section: seat.in.name, row: seat.row, seat: seat.number });
    }
    // short is for chips: "F5", or "112 · F5" where sections matter.
    short(seat) {
      if (seat.in.standing) return seat.in.name;
      const place = `${seat.row}${/\d$/.test(seat.row) ? '-' : ''}${seat.number}`;
      return this.sections.size > 1 ? `${seat.in.code} · ${place}` : place;
    }
    speak(seat, state) {
      const bits = [this.where(seat), this.classes.get(seat.priceClass)?.name, this.price(seat)];
      if (seat.accessible) bits.push(t('seat.accessible'));
      return [...bits, t(`seat.${state}`)].join(', ');
    }

    // merge takes a newer map's statuses and returns the seats that changed.
    merge(changes) {
      const changed = [], touched = new Set();
      for (const { code, status } of changes) {
        const seat = this.byCode.get(code);
        if (!seat || seat.status === status) continue;
        seat.status = status;
        changed.push(seat);
        touched.add(seat.in);
      }
      touched.forEach((section) => this.count(section));
      return changed;
    }
  }
  window.Usher.Hall = Hall;
})();
