// The page of a booking is complete without this script. With it, a page that
// says "is being checked" looks again by itself, and a declined payment is tried
// again in place.
(() => {
  'use strict';
  const { data, t, byId, checkout, unanswered, Refusal, store, announce, sleep } = window.Usher;

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

  // A try after a decline is a new payment of the same booking, so it needs a new
  // key: one for each payment that was declined, shared with the shop.
  async function retry() {
    const button = byId('retry');
    if (button.getAttribute('aria-disabled') === 'true') return;
    button.setAttribute('aria-disabled', 'true');
    byId('problem').textContent = '';
    try {
      const { paymentUrl } = await checkout(data.holdId, `usher-pay-${data.holdId}`, () => { byId('problem').textContent = t('no.busy.text'); });
      location.assign(paymentUrl);
    } catch (e) {
      button.removeAttribute('aria-disabled');
      if (!(e instanceof Refusal)) throw e;
      byId('problem').textContent = excuse(e);
    }
  }
  function excuse(e) {
    if (e.slug === 'hold-not-open') return `${t('no.paying')}. ${t('no.paying.text')}`;
    if (['hold-expired', 'unknown-hold'].includes(e.slug)) return `${t('no.expired')}. ${t('no.expired.text')}`;
    if (e.slug === 'offline') return `${t('no.offline')}.`;
    return t(e.slug === 'payment-unavailable' || unanswered(e) ? 'no.nopay.text' : 'no.unknown.text');
  }

  function wire() {
    const show = byId('booking').dataset.show, button = byId('retry');
    button?.addEventListener('click', retry);
    // A declined payment's key leads nowhere; a later try's key is kept through reloads.
    const declined = button && `usher-declined-${data.holdId}`;
    if (button && store.get(declined) !== button.dataset.payment) {
      store.set(declined, button.dataset.payment);
      store.drop(`usher-pay-${data.holdId}`);
    }
    byId('print')?.addEventListener('click', () => window.print());
    // The hold has become a booking or has ended: the shop must not look for it again.
    if (['checking', 'declined'].includes(show)) return;
    for (const what of ['pay', 'whole', 'booking', 'declined']) store.drop(`usher-${what}-${data.holdId}`);
    if (store.get(`usher-hold-${data.showtime}`) !== data.holdId) return; // another one, later
    store.drop(`usher-hold-${data.showtime}`);
    store.drop(`usher-picks-${data.showtime}`);
  }
  wire();
  watch();
})();
