// ListView offers the same seats as plain sections, rows and buttons: for those
// who do not use maps, and for screen readers.
(() => {
  'use strict';
  const { t, h, money } = window.Usher;

  class ListView {
    constructor(root, hall, { stateOf, onPick, onStanding }) {
      Object.assign(this, { root, hall, stateOf, onPick, onStanding, buttons: new Map(), counts: new Map() });
      const sections = [...hall.sections.values()];
      root.replaceChildren(...sections.map((s) => this.#section(s, sections.length === 1)));
    }

    #section(section, open) {
      const count = h('span', { class: 'count' });
      this.counts.set(section, count);
      const body = h('div', { class: 'rows' });
      const box = h('details', { class: 'list-section', open, ontoggle: () => box.open && this.#fill(section, body) },
        h('summary', {}, h('span', { class: 'list-name' }, section.name === section.code && this.hall.sections.size > 1 ? t('list.section', { section: section.name }) : section.name), count), body);
      if (open) this.#fill(section, body);
      this.#count(section);
      return box;
    }
    // Rows are made when a section is opened: a stadium's list would be 20,000 buttons.
    #fill(section, body) {
      if (body.childElementCount) return;
      if (section.standing) {
        body.append(h('button', { type: 'button', class: 'btn', onclick: () => this.onStanding(section) }, t('standing.choose')));
        return;
      }
      for (const [label, row] of section.rows) {
        body.append(h('div', { class: 'list-row', role: 'group', 'aria-label': t('list.row', { row: label }) },
          h('span', { class: 'list-row-name', 'aria-hidden': 'true' }, label), h('div', { class: 'list-seats' }, ...row.map((s) => this.#button(s)))));
      }
    }
    #button(seat) {
      const button = h('button', { type: 'button', class: 'list-seat', onclick: () => button.getAttribute('aria-disabled') !== 'true' && this.onPick(seat) },
        h('span', { 'aria-hidden': 'true' }, seat.number));
      this.buttons.set(seat.code, button);
      this.#paint(seat, button);
      return button;
    }
    #paint(seat, button) {
      const state = this.stateOf(seat);
      if (button.dataset.state === state) return;
      button.dataset.state = state;
      button.className = `list-seat ${state} c${this.hall.classes.get(seat.priceClass)?.index ?? 0}${seat.accessible ? ' accessible' : ''}`;
      button.setAttribute('aria-label', this.hall.speak(seat, state));
      button.setAttribute('aria-pressed', String(state === 'picked' || state === 'mine'));
      // Not "disabled": focus must not vanish under somebody's fingers when a seat is taken.
      button.setAttribute('aria-disabled', String(state !== 'free' && state !== 'picked'));
    }
    #count(section) {
      const from = section.free ? t('section.from', { price: money(section.lowest, this.hall.currency) }) : '';
      this.counts.get(section).textContent = section.free ? `${t('section.left', { n: section.free })} · ${from}` : t('section.soldout');
    }
    repaint(seats) {
      for (const seat of seats ?? [...this.buttons.keys()].map((c) => this.hall.byCode.get(c))) {
        const button = this.buttons.get(seat.code);
        if (button) this.#paint(seat, button);
      }
      for (const section of this.counts.keys()) this.#count(section);
    }
  }
  window.Usher.ListView = ListView;
})();
