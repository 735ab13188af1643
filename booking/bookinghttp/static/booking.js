// The page of a booking is complete without this script. With it, a page that
// says "is being checked" looks again by itself, and a declined payment is tried
// again in place.
(() => {
  'use strict';
  const { data, t, byId, api, patiently, Refusal, store, newKey, announce, sleep } = window.Usher;

  // refresh asks for this page again and takes over what changed, so that the
  // wording of every state exists once, in the template.
  async function refresh() {
    const reply = await fetch(location.href, { credentials: 'same-origin', headers: { Accept: 'text/html' } });
    if (!reply.ok) return;
    const fresh = new DOMParser().parseFromString(await reply.text(), 'text/html');
    const now = byId('booking'), next = fresh.getElementById('booking');
    if (!next || next.dataset.show === now.dataset.show) return;
    document.title = fresh.title;
    now.replaceWith(document.adoptNode(next));
    wire();
    const head = next.querySelector('h1');
    announce(head.textContent);
    head.focus({ preventScroll: true });
  }

  // Quick at first, then patient: a provider that has not answered within a
  // minute will not be hurried by us.
  async function watch() {
    for (let i = 0; byId('booking').dataset.show === 'checking'; i++) {
      await sleep(i < 20 ? 1500 : i < 40 ? 5000 : 15000);
      if (document.hidden) await new Promise((seen) => document.addEventListener('visibilitychange', seen, { once: true }));
      await refresh().catch(() => {});
    }
  }

  // A try after a decline is a new payment of the same booking, so it needs a
  // new key; the key is stored first, so that a reload repeats this try and not another.
  async function retry() {
    const button = byId('retry'), name = `usher-retry-${data.holdId}-${button.dataset.payment ?? ''}`;
    button.setAttribute('aria-disabled', 'true');
    byId('problem').textContent = '';
    const key = store.get(name) ?? newKey();
    store.set(name, key);
    store.set(`usher-pay-${data.holdId}`, key);
    try {
      const { json } = await patiently(() => api('POST', `/v1/holds/${data.holdId}/checkout`, { body: {}, key }), () => { byId('problem').textContent = t('no.busy.text'); });
      location.assign(json.paymentUrl);
    } catch (e) {
      button.removeAttribute('aria-disabled');
      if (!(e instanceof Refusal)) throw e;
      const over = ['hold-expired', 'hold-not-open', 'unknown-hold'].includes(e.slug);
      byId('problem').textContent = over ? `${t('no.expired')}. ${t('no.expired.text')}` : t(e.slug === 'payment-unavailable' ? 'no.nopay.text' : 'no.unknown.text');
    }
  }

  function wire() {
    byId('retry')?.addEventListener('click', retry);
    byId('print')?.addEventListener('click', () => window.print());
    // The hold has become a booking or has ended: the shop must not look for it again.
    if (!['checking', 'declined'].includes(byId('booking').dataset.show)) {
      store.drop(`usher-hold-${data.showtime}`);
      store.drop(`usher-picks-${data.showtime}`);
    }
  }
  wire();
  watch();
})();
