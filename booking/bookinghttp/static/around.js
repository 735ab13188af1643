// What stands around the map: the zoom buttons, the tabs, the prices and the tip
// that follows a mouse.
(() => {
  'use strict';
  const { t, h, byId, money } = window.Usher;

  function zoomed({ home, max }) {
    byId('zoom-home').hidden = home;
    byId('zoom-in').disabled = max;
    byId('zoom-out').disabled = home;
  }

  // hover shows what a mouse points at; null hides it. Touch and keyboard get the
  // same words elsewhere: in the tray and in the seat's own label.
  function hover(at, shop) {
    const tip = byId('tip');
    tip.hidden = !at;
    if (!at) return;
    const { seat } = at, { hall } = shop, state = shop.stateOf(seat);
    const words = state === 'free' || state === 'picked' ? `${hall.classes.get(seat.priceClass)?.name ?? ''} · ${hall.price(seat)}` : t(`seat.${state}`);
    tip.replaceChildren(h('strong', {}, hall.where(seat)), h('span', {}, words));
    const half = tip.offsetWidth / 2, x = Math.max(half + 4, Math.min(byId('map').clientWidth - half - 4, at.at.x));
    tip.style.transform = `translate(${Math.round(x - half)}px, ${Math.round(Math.max(4, at.at.y - at.gap - tip.offsetHeight - 4))}px)`;
  }

  function buttons(map) {
    byId('zoom-in').addEventListener('click', () => map.zoomIn());
    byId('zoom-out').addEventListener('click', () => map.zoomOut());
    byId('zoom-home').addEventListener('click', () => map.home());
    const tabs = [byId('tab-map'), byId('tab-list')];
    const select = (tab) => {
      for (const x of tabs) {
        x.setAttribute('aria-selected', String(x === tab));
        x.tabIndex = x === tab ? 0 : -1;
        byId(x.getAttribute('aria-controls')).hidden = x !== tab;
      }
    };
    for (const tab of tabs) {
      tab.addEventListener('click', () => select(tab));
      tab.addEventListener('keydown', (e) => {
        if (e.key !== 'ArrowLeft' && e.key !== 'ArrowRight') return;
        const other = tabs.find((x) => x !== tab);
        select(other);
        other.focus();
      });
    }
  }

  function legend(hall) {
    byId('prices').replaceChildren(...[...hall.classes.values()].map((c) => h('li', {},
      h('span', { class: `dot c${c.index}` }), c.name, h('b', {}, money(c.amount, hall.currency)))));
  }
  window.Usher.around = { zoomed, hover, buttons, legend };
})();
