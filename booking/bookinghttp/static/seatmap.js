// SeatMap draws a Hall as SVG and turns taps and keys into "this seat, please".
// It draws a section's seats only once they are big enough to be told apart, and
// only near the screen: twenty thousand nodes would not move smoothly on a phone.
(() => {
  'use strict';
  const { t, svg, geometry: g, Viewport, polygon, drawFurniture } = window.Usher;
  const { r, chair, cross, tick, wheelchair, patterns } = window.Usher.glyphs;
  const SEATS_FROM = 7;    // px between seats from which they are drawn one by one
  const NUMBERS_FROM = 21; // px from which numbers fit inside
  const TAP_FROM = 19;     // px from which a finger can aim; below it a tap comes closer first
  const NODES = 2600;      // seats drawn at most; farther sections are put away

  const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

  class SeatMap {
    // stateOf(seat) says free | held | sold | picked | mine; onPick(seat) and onSection(section|null) tell the page.
    constructor(root, hall, { stateOf, onPick, onStanding, onZoom, onHover }) {
      Object.assign(this, { root, hall, stateOf, onPick, onStanding, onZoom, onHover, drawn: new Map(), nodes: new Map(), locked: false });
      root.replaceChildren();
      this.world = svg('g');
      this.layers = {};
      for (const name of ['furniture', 'sections', 'seats', 'marks', 'labels', 'focus']) {
        this.layers[name] = svg('g', { class: `layer-${name}`, 'aria-hidden': ['seats', 'sections'].includes(name) ? null : 'true' });
        this.world.append(this.layers[name]);
      }
      root.append(patterns(hall.pitch / 5), this.world);
      this.unit = hall.pitch;
      this.layers.furniture.append(...drawFurniture(hall));
      this.#sections();
      this.view = new Viewport(root, { onChange: () => this.#moved(), onTap: (x, y, e) => this.#tapped(x, y, e) });
      this.view.setWorld(g.grow(hall.bounds, hall.pitch * 0.6), 46 / hall.pitch);
      root.addEventListener('keydown', (e) => this.#key(e));
      // On the parent: Chromium makes an <svg> that listens for focus a tab stop itself.
      root.parentNode.addEventListener('focusin', (e) => this.#focused(e.target));
      root.parentNode.addEventListener('focusout', () => this.layers.focus.replaceChildren());
      root.addEventListener('pointermove', (e) => e.pointerType === 'mouse' && this.#hover(e));
      root.addEventListener('pointerleave', () => this.onHover(null));
      this.#moved();
      this.#rove(this.#firstStop());
    }

    // ---- drawing ----------------------------------------------------------

    #sections() {
      this.areas = new Map();
      for (const section of this.hall.sections.values()) {
        const area = svg('path', { d: polygon(section.points), 'data-section': section.code });
        const name = svg('text', { class: 'section-name', 'text-anchor': 'middle' });
        const left = svg('text', { class: 'section-left', 'text-anchor': 'middle' });
        if (this.hall.small && this.hall.sections.size === 1) area.setAttribute('class', 'area bare');
        this.layers.sections.append(area);
        this.layers.labels.append(name, left);
        name.textContent = section.name;
        this.areas.set(section.code, { section, area, name, left });
        this.#paintSection(section);
      }
    }

    #paintSection(section) {
      const { area, name, left } = this.areas.get(section.code);
      if (area.classList.contains('bare')) return;
      const share = section.free / section.seats.length;
      const main = this.hall.classes.get([...section.classes][0]);
      // Fullness is told by words and by a step of strength, never by hue alone.
      const level = section.free === 0 ? 'none' : share < 0.1 ? 'few' : share < 0.45 ? 'some' : 'many';
      area.setAttribute('class', `area level-${level} c${main?.index ?? 0}${section.standing ? ' standing' : ''}`);
      name.classList.toggle('dim', level !== 'many'); // the paler the ground, the darker the words
      left.classList.toggle('dim', level !== 'many');
      left.textContent = section.free === 0 ? t('section.soldout') : t('section.left', { n: section.free });
      area.setAttribute('role', 'button');
      const from = section.free ? t('section.from', { price: window.Usher.money(section.lowest, this.hall.currency) }) : '';
      area.setAttribute('aria-label', [section.name, left.textContent, from].filter(Boolean).join(', '));
    }

    #drawSection(section) {
      if (this.drawn.has(section.code)) return;
      const group = svg('g', { 'data-drawn': section.code });
      for (const [label, row] of section.rows) {
        for (const seat of row) group.append(this.#drawSeat(seat));
        if (label) for (const [end, next] of [[row[0], row[1]], [row[row.length - 1], row[row.length - 2]]]) group.append(this.#rowLabel(label, end, next));
      }
      this.layers.seats.append(group);
      this.drawn.set(section.code, group);
    }
    #rowLabel(label, end, next) {
      const far = next ? 1 / Math.hypot(end.x - next.x, end.y - next.y) : 0;
      const dx = next ? (end.x - next.x) * far : -1, dy = next ? (end.y - next.y) * far : 0;
      return svg('text', {
        class: 'row-label', x: r(end.x + dx * this.unit * 1.02), y: r(end.y + dy * this.unit * 1.02), 'font-size': r(this.unit * 0.42),
        'text-anchor': 'middle', 'dominant-baseline': 'central', 'aria-hidden': 'true',
      }, label);
    }
    #drawSeat(seat) {
      const node = svg('g', { 'data-seat': seat.code, role: 'checkbox', tabindex: '-1', transform: `translate(${r(seat.x)} ${r(seat.y)})` });
      const turn = seat.angle ? `rotate(${seat.angle})` : null;
      node.append(svg('path', { class: 'body', transform: turn }));
      if (seat.accessible) node.append(svg('path', { class: 'wheel', d: wheelchair(this.unit * 0.31) }));
      else node.append(svg('text', { 'font-size': r(this.unit * (seat.number.length > 2 ? 0.27 : 0.33)), 'text-anchor': 'middle', dy: '.35em' }, seat.number));
      this.nodes.set(seat.code, node);
      this.#paintSeat(seat, node);
      return node;
    }
    #paintSeat(seat, node) {
      const state = this.stateOf(seat), u = this.unit;
      if (node.dataset.state === state) return;
      node.dataset.state = state;
      const body = node.firstChild;
      body.setAttribute('d', state === 'sold' ? cross(u * 0.11) : chair(u * (state === 'picked' || state === 'mine' ? 0.47 : 0.41)));
      const index = this.hall.classes.get(seat.priceClass)?.index ?? 0;
      node.setAttribute('class', `seat ${state} c${index}${seat.accessible ? ' accessible' : ''}`);
      node.setAttribute('aria-label', this.hall.speak(seat, state));
      node.setAttribute('aria-checked', String(state === 'picked' || state === 'mine'));
      if (state === 'free' || state === 'picked') node.removeAttribute('aria-disabled');
      else node.setAttribute('aria-disabled', 'true');
      node.querySelector('.tick')?.remove();
      if (state === 'picked' || state === 'mine') node.append(svg('path', { class: 'tick', d: tick(u * 0.24) }));
    }

    // repaint brings the given seats (or all that are drawn) up to date.
    repaint(seats) {
      const todo = seats ?? [...this.nodes.keys()].map((code) => this.hall.byCode.get(code));
      for (const seat of todo) {
        const node = this.nodes.get(seat.code);
        if (node) this.#paintSeat(seat, node);
      }
      for (const section of new Set(todo.map((s) => s.in))) this.#paintSection(section);
    }

    // ---- moving -----------------------------------------------------------

    #moved() {
      const { k, x, y } = this.view;
      this.world.setAttribute('transform', `matrix(${k} 0 0 ${k} ${x} ${y})`);
      const px = this.unit * k;
      this.root.classList.toggle('numbers', px >= NUMBERS_FROM);
      this.root.classList.toggle('rows', px >= 12);
      const close = this.hall.small || px >= SEATS_FROM;
      this.root.classList.toggle('close', close);
      this.root.classList.toggle('home', this.view.atHome);
      this.#wanted(close);
      if (this.stop && !this.stop.isConnected) this.#rove(this.#firstStop()); // or Tab would pass the map by
      this.#labels(k);
      this.onHover(null);
      if (this.mark) this.#ring(this.mark);
      this.onZoom({ home: this.view.atHome, close, max: k >= this.view.maxScale * 0.99 });
    }
    // #wanted draws the sections around the middle of the screen and puts the others
    // away. Not during a flight: making a thousand nodes would make it stutter.
    #wanted(close) {
      if (this.view.moving) return;
      const seen = this.view.visible(), near = g.grow(seen, this.unit * 4);
      const cx = (seen.x0 + seen.x1) / 2, cy = (seen.y0 + seen.y1) / 2, far = (s) => Math.hypot(s.center.x - cx, s.center.y - cy);
      const wanted = new Set();
      let total = 0;
      if (close) {
        const order = [...this.hall.sections.values()].filter((s) => this.hall.small || (!s.standing && g.meets(s.bounds, near))).sort((a, b) => far(a) - far(b));
        for (const section of order) {
          total += section.seats.length;
          if (total <= NODES || wanted.size === 0) wanted.add(section);
        }
      }
      for (const [code, group] of this.drawn) {
        const section = this.hall.sections.get(code);
        if (wanted.has(section) || group.contains(document.activeElement)) continue;
        group.remove();
        this.drawn.delete(code);
        for (const s of section.seats) this.nodes.delete(s.code);
      }
      wanted.forEach((section) => this.#drawSection(section));
    }
    // Labels keep their size on the screen and leave where they do not fit.
    #labels(k) {
      for (const { section, name, left } of this.areas.values()) {
        const { x, y } = section.center, drawn = this.drawn.has(section.code);
        const room = (dy) => g.chord(section.points, x, y + dy / k) * k;
        const size = room(0) > 110 ? 16 : 12.5, small = 11;
        const fits = !drawn && room(0) > section.name.length * size * 0.6;
        const more = fits && Math.min(room(size * 0.2), room(size + 6)) > left.textContent.length * small * 0.53 + 4;
        name.setAttribute('display', fits ? 'inline' : 'none');
        left.setAttribute('display', more ? 'inline' : 'none');
        if (fits) place(name, section.center, (more ? -size * 0.08 : size * 0.35) / k, size / k);
        if (more) place(left, section.center, size / k, small / k);
      }
    }

    zoomIn() { this.view.zoomBy(1.7); }
    zoomOut() { this.view.zoomBy(1 / 1.7); }
    home() { this.view.fit(this.view.world); }
    showSection(section) {
      this.view.fit(g.grow(section.bounds, this.unit));
    }
    // showSeats comes closer to the given seats, unless they are large enough already.
    showSeats(codes) {
      const seats = [...codes].map((c) => this.hall.byCode.get(c)).filter((s) => s && !s.in.standing);
      if (!seats.length || this.unit * this.view.k > 16) return;
      this.view.fit(g.grow(g.boundsOf(seats), this.unit * 8));
    }

    // ---- pointing ---------------------------------------------------------

    #tapped(x, y) {
      const px = this.unit * this.view.k;
      if (this.root.classList.contains('close')) {
        const seat = g.nearest(this.#reachable(), x, y, Math.max(this.unit * 0.62, 14 / this.view.k));
        if (seat && px >= TAP_FROM) return this.#pick(seat);
        if (seat || px < TAP_FROM) if (seat) return this.view.centerOn(seat, 32 / this.unit);
      }
      const section = this.#sectionAt(x, y);
      if (!section) return;
      if (section.standing) return this.onStanding(section);
      if (!this.drawn.has(section.code)) this.showSection(section);
    }
    #pick(seat) {
      const node = this.nodes.get(seat.code);
      this.#rove(node);
      if (!this.locked) this.onPick(seat);
    }
    // What can be tapped or reached by arrows: the seats that are drawn.
    #reachable() { return [...this.drawn.keys()].flatMap((code) => this.hall.sections.get(code).seats); }
    #sectionAt(x, y) {
      const p = this.root.createSVGPoint?.() ?? new DOMPoint();
      Object.assign(p, { x, y });
      for (const { section, area } of this.areas.values()) if (area.isPointInFill(p)) return section;
      return null;
    }
    #hover(e) {
      if (this.root.classList.contains('dragging')) return;
      const code = e.target.closest?.('[data-seat]')?.dataset.seat;
      if (code === this.hovering) return;
      this.hovering = code;
      const seat = code && this.hall.byCode.get(code);
      this.onHover(seat ? { seat, at: this.view.toScreen(seat), gap: this.unit * this.view.k * 0.6 } : null);
    }

    // ---- keyboard: one tab stop, arrows go to the neighbour in that direction --

    #firstStop() {
      const free = this.hall.seats.find((s) => s.status === 'AVAILABLE' && this.nodes.has(s.code));
      if (free) return this.nodes.get(free.code);
      return this.nodes.values().next().value ?? this.areas.values().next().value?.area;
    }
    #rove(node) {
      if (!node) return;
      this.stop?.setAttribute('tabindex', '-1');
      this.stop = node;
      node.setAttribute('tabindex', '0');
    }
    #goto(node) {
      this.#rove(node);
      node.focus({ preventScroll: true });
    }
    #focused(node) {
      if (!node.dataset.seat && !node.dataset.section) return;
      const at = node.dataset.seat ? this.hall.byCode.get(node.dataset.seat) : null;
      if (node.matches(':focus-visible')) this.#ring(node);
      if (at) this.view.reveal(at);
      this.#rove(node);
    }
    // The ring is drawn above everything, so that no neighbour covers it.
    #ring(node) {
      this.mark = document.activeElement === node ? node : null;
      this.layers.focus.replaceChildren();
      if (!this.mark || !node.matches(':focus-visible')) return;
      if (node.dataset.seat) {
        const s = this.hall.byCode.get(node.dataset.seat), r = this.unit * 0.56;
        for (const cls of ['ring outer', 'ring']) this.layers.focus.append(svg('rect', { class: cls, x: s.x - r, y: s.y - r, width: r * 2, height: r * 2, rx: r * 0.5, 'vector-effect': 'non-scaling-stroke' }));
      } else {
        for (const cls of ['ring outer', 'ring']) this.layers.focus.append(svg('path', { class: cls, d: node.getAttribute('d'), 'vector-effect': 'non-scaling-stroke' }));
      }
    }
    #key(e) {
      const node = e.target, seat = this.hall.byCode.get(node.dataset?.seat), section = this.hall.sections.get(node.dataset?.section);
      if (e.ctrlKey || e.metaKey || e.altKey || (!seat && !section)) return;
      if (e.key === '+' || e.key === '=') this.zoomIn();
      else if (e.key === '-') this.zoomOut();
      else if (e.key === 'Escape') this.#leave(seat);
      else if (e.key === 'Enter' || e.key === ' ') seat ? this.#pick(seat) : this.#enter(section);
      else if (e.key === 'Home' && seat) this.#toSeat(seat.in.rows.get(seat.row)[0]);
      else if (e.key === 'End' && seat) this.#toSeat(seat.in.rows.get(seat.row).at(-1));
      else if (ARROWS[e.key]) this.#arrow(seat, section, ...ARROWS[e.key]);
      else return;
      e.preventDefault();
    }
    #toSeat(seat) { if (seat && this.nodes.has(seat.code)) this.#goto(this.nodes.get(seat.code)); }
    #arrow(seat, section, dx, dy) {
      if (seat) {
        const near = this.hall.small ? this.hall.seats : this.hall.seats.filter((s) => !s.in.standing);
        const to = g.nearestInDirection(near, seat, dx, dy);
        if (!to) return;
        if (!this.nodes.has(to.code)) this.#drawSection(to.in);
        this.#toSeat(to);
        return;
      }
      const spots = [...this.hall.sections.values()].map((s) => ({ ...s.center, s }));
      const to = g.nearestInDirection(spots, spots.find((p) => p.s === section), dx, dy);
      if (to) this.#goto(this.areas.get(to.s.code).area);
    }
    #enter(section) {
      if (section.standing) return this.onStanding(section);
      this.#drawSection(section);
      const seat = section.seats.find((s) => s.status === 'AVAILABLE') ?? section.seats[0];
      this.#toSeat(seat);
      this.showSection(section);
      if (this.unit * this.view.k < SEATS_FROM) this.view.centerOn(seat, 24 / this.unit);
    }
    #leave(seat) {
      if (!this.hall.small && seat) this.#goto(this.areas.get(seat.in.code).area);
      this.home();
    }
  }

  function place(text, at, dy, size) {
    text.setAttribute('x', at.x);
    text.setAttribute('y', at.y + dy);
    text.setAttribute('font-size', size);
  }

  window.Usher.SeatMap = SeatMap;
})();
