// Tray is the panel beside (on a phone: under) the map: what is chosen, what it
// costs, what to do next. It renders a state; the shop decides which.
(() => {
  'use strict';
  const { t, h, icon, money } = window.Usher;

  class Tray {
    constructor(root, hall, on) {
      Object.assign(this, { root, hall, on });
    }

    // choosing: picks is a list of seats in the order of picking.
    choosing({ picks, max, busy }) {
      const n = picks.length, total = this.hall.total(picks.map((s) => s.code));
      this.#show('choosing', [
        h('div', { class: 'tray-head' }, h('h2', {}, n ? t('tray.seats', { n }) : t('tray.choose')),
          h('span', { class: 'tray-max' }, n >= max ? t('tray.full', { n: max }) : t('tray.max', { n: max }))),
        n ? h('ul', { class: 'chips' }, ...picks.map((s) => this.#chip(s))) : h('p', { class: 'hint' }, t('tray.hint')),
        n ? null : this.#best(max, busy),
        n ? this.#sum(total) : null,
        n ? h('button', { type: 'button', class: 'btn wide', id: 'hold', 'aria-disabled': String(Boolean(busy)), onclick: () => busy || this.on.hold() },
          busy ? t('tray.holding') : t('tray.hold', { n }), h('span', { class: 'btn-sum' }, `· ${money(total, this.hall.currency)}`)) : null,
        this.#prices(),
      ]);
    }
    #chip(seat) {
      return h('li', {}, h('button', { type: 'button', class: 'chip', onclick: () => this.on.drop(seat) },
        h('span', { class: `dot c${this.hall.classes.get(seat.priceClass)?.index ?? 0}` }), h('b', {}, this.hall.short(seat)), h('span', { class: 'chip-price' }, this.hall.price(seat)), h('span', { class: 'sr' }, t('tray.remove', { seat: this.hall.where(seat) })), icon('close')));
    }
    // The price list doubles as the map's key of colours.
    #prices() {
      const left = new Map();
      for (const s of this.hall.seats) if (s.status === 'AVAILABLE') left.set(s.priceClass, (left.get(s.priceClass) ?? 0) + 1);
      return h('ul', { class: 'price-list' }, ...[...this.hall.classes.values()].map((c) => h('li', {},
        h('span', { class: `dot c${c.index}` }), h('span', {}, c.name), h('b', {}, money(c.amount, this.hall.currency)),
        h('small', {}, left.has(c.code) ? t('section.left', { n: left.get(c.code) }) : t('section.soldout')))));
    }
    // "Best available": how many and where; the box office chooses neighbours.
    #best(max, busy) {
      const sections = [...this.hall.sections.values()].filter((s) => s.free > 0);
      this.count = Math.min(this.count ?? 2, max);
      const out = h('output', { class: 'count', 'aria-live': 'polite' }, String(this.count));
      const step = (by) => () => {
        this.count = Math.min(max, Math.max(1, this.count + by));
        out.textContent = String(this.count);
      };
      const where = sections.length > 1 ? h('select', { class: 'select', 'aria-label': t('best.where'), onchange: (e) => { this.section = e.target.value; } },
        h('option', { value: '' }, t('best.anywhere')),
        ...sections.map((s) => h('option', { value: s.code, selected: s.code === this.section }, `${s.name} · ${money(s.lowest, this.hall.currency)}`))) : null;
      return h('form', { class: `best${where ? ' placed' : ''}`, 'aria-label': t('best.title'), onsubmit: (e) => { e.preventDefault(); if (!busy) this.on.best(this.count, where?.value || ''); } },
        h('span', { class: 'best-title' }, icon('spark'), t('best.title')),
        h('div', { class: 'best-row' },
          h('div', { class: 'stepper', role: 'group', 'aria-label': t('best.count') },
            h('button', { type: 'button', 'aria-label': t('best.fewer'), onclick: step(-1) }, '−'), out,
            h('button', { type: 'button', 'aria-label': t('best.more'), onclick: step(1) }, '+')),
          where,
          h('button', { type: 'submit', class: 'btn', id: 'best', 'aria-disabled': String(Boolean(busy)) }, busy ? t('tray.holding') : t('best.go'))));
    }

    // holding: the seats are ours until the clock says otherwise.
    holding({ hold, clock, busy }) {
      const seats = hold.seats.map((code) => this.hall.byCode.get(code)).filter(Boolean);
      this.#show('holding', [
        clock.node,
        h('ul', { class: 'lines' }, ...seats.map((s) => h('li', {},
          h('span', { class: `dot c${this.hall.classes.get(s.priceClass)?.index ?? 0}` }),
          h('span', { class: 'line-seat' }, this.hall.where(s), h('small', {}, this.hall.classes.get(s.priceClass)?.name ?? '')), h('span', {}, this.hall.price(s))))),
        this.#sum(hold.amount, hold.currency),
        h('div', { class: 'actions' },
          h('button', { type: 'button', class: 'btn wide', id: 'pay', 'aria-disabled': String(Boolean(busy)), onclick: () => busy || this.on.pay() },
            icon('lock'), busy ? t('tray.paying') : t('tray.pay', { amount: money(hold.amount, hold.currency) })),
          h('button', { type: 'button', class: 'btn link', id: 'change', onclick: () => busy || this.on.change() }, t('tray.change'))),
        h('p', { class: 'note' }, t('tray.note')),
      ]);
    }
    #sum(amount, currency = this.hall.currency) {
      return h('p', { class: 'sum' }, h('span', {}, t('tray.total')), h('strong', {}, money(amount, currency)));
    }

    // visiting: the map may be looked at, but seats are for those who were called.
    visiting(href) {
      this.#show('visiting', [
        h('h2', {}, t('visit.title')), h('p', { class: 'hint' }, t('visit.text')),
        h('a', { class: 'btn wide', href }, t('visit.go')), this.#prices(),
      ]);
    }

    // notice explains a refusal in place; it stays until something else happens.
    notice(words, act) {
      const box = this.root.querySelector('.notice');
      box.replaceChildren();
      box.className = `notice ${words?.tone ?? ''}`;
      if (!words) return;
      box.append(h('div', { class: 'notice-words' }, h('strong', {}, words.title), words.text ? h('p', {}, words.text) : null, act ?? null),
        h('button', { type: 'button', class: 'notice-close', 'aria-label': t('notice.close'), onclick: () => this.notice(null) }, icon('close')));
    }

    // Only the body is replaced, and focus goes to its counterpart: a button that
    // was pressed must not drop a keyboard user to the top of the page.
    #show(state, children) {
      const body = this.root.querySelector('.tray-body'), active = body.contains(document.activeElement) ? document.activeElement : null;
      const kept = { id: active?.id, label: active?.getAttribute('aria-label') };
      this.root.dataset.state = state;
      body.replaceChildren(...children.filter(Boolean));
      if (!active) return;
      const again = (kept.id && document.getElementById(kept.id)) || [...body.querySelectorAll('button,select')].find((b) => kept.label && b.getAttribute('aria-label') === kept.label);
      (again ?? body.querySelector('.button.primary, .chip, h2, .clock'))?.focus?.({ preventScroll: true });
    }
  }
  window.Usher.Tray = Tray;
})();
