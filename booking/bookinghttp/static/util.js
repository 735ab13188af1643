// What every part of the booking page shares: words, money, DOM, HTTP.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('page-data').textContent);
  const plurals = new Intl.PluralRules(data.lang), number = new Intl.NumberFormat(data.lang);

  // t gives the page's own words: {{.name}} is replaced by vars.name, {{.Count}}
  // by vars.n, which also chooses the plural form of messages that have one.
  function t(key, vars = {}) {
    const message = data.messages[key];
    const text = typeof message === 'object' ? message[plurals.select(vars.n)] ?? message.other : message ?? key;
    return text.replace(/\{\{\.(\w+)\}\}/g, (whole, name) => (name === 'Count' ? number.format(vars.n) : vars[name] ?? whole));
  }

  // money formats integer minor units; how many of them make one is the currency's affair.
  function money(minor, currency) {
    const format = new Intl.NumberFormat(data.lang, { style: 'currency', currency, currencyDisplay: 'narrowSymbol' });
    return format.format(minor / 10 ** format.resolvedOptions().maximumFractionDigits);
  }

  const list = (items) => new Intl.ListFormat(data.lang, { type: 'conjunction' }).format(items);

  // h makes an element. Attributes starting with "on" are listeners; text never becomes markup.
  function h(name, attrs = {}, ...children) {
    return fill(document.createElement(name), attrs, children);
  }
  function svg(name, attrs = {}, ...children) {
    return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attrs, children);
  }
  function fill(node, attrs, children) {
    for (const [key, value] of Object.entries(attrs)) {
      if (value === undefined || value === null || value === false) continue;
      if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? '' : value);
    }
    node.append(...children.filter((c) => c !== undefined && c !== null && c !== false));
    return node;
  }
  // icon points into the sprite that the page's template carries.
  const icon = (name) => svg('svg', { class: 'icon', 'aria-hidden': 'true' }, svg('use', { href: `#i-${name}` }));

  const byId = (id) => document.getElementById(id);
  const reducedMotion = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

  // Refusal is an answer of the API that is not a success. slug is the last part
  // of the problem's type; "offline" when there was no answer at all.
  class Refusal extends Error {
    constructor(slug, status, problem, retryAfter) {
      super(problem.detail || problem.title || slug);
      Object.assign(this, { slug, status, problem, retryAfter });
    }
  }

  async function api(method, path, { body, key, headers = {} } = {}) {
    const init = { method, headers: { Accept: 'application/json', ...headers }, credentials: 'same-origin' };
    if (body !== undefined) {
      init.body = JSON.stringify(body);
      init.headers['Content-Type'] = 'application/json';
    }
    if (key) init.headers['Idempotency-Key'] = key;
    let reply;
    try {
      reply = await fetch(path, init);
    } catch {
      throw new Refusal('offline', 0, {}, 2);
    }
    if (reply.status === 204 || reply.status === 304) return { status: reply.status, reply };
    const json = await reply.json().catch(() => ({}));
    if (!reply.ok) {
      const slug = String(json.type || 'unknown').split('/').pop();
      throw new Refusal(slug, reply.status, json, Number(reply.headers.get('Retry-After')) || 0);
    }
    return { status: reply.status, reply, json };
  }

  // Answers after which nobody knows whether the call was done.
  const OPEN = ['busy', 'unavailable', 'offline', 'idempotency-in-progress'];
  const unanswered = (e) => e instanceof Refusal && OPEN.includes(e.slug);

  // patiently repeats a call while its outcome is unknown. Every call it is given
  // is safe to send twice: same seats give the same hold, and the others carry an
  // Idempotency-Key.
  async function patiently(call, onWait, tries = 6) {
    for (let i = 1; ; i++) {
      try {
        return await call();
      } catch (e) {
        if (!unanswered(e) || i >= tries) throw e;
        onWait?.(i);
        await sleep(1000 * Math.min(e.retryAfter || 1, 10) + Math.random() * 400);
      }
    }
  }

  // What must survive a reload: the hold, the choice, the keys of calls without an
  // answer. Where storage is forbidden or full it goes to the tab's storage, and
  // where that is forbidden too into the history entry, which a reload and "back"
  // keep. Nothing here is a secret: all of it is worthless without the session's cookie.
  const entry = {
    getItem: (key) => history.state?.usher?.[key] ?? null,
    setItem: (key, value) => history.replaceState({ ...history.state, usher: { ...history.state?.usher, [key]: value } }, ''),
    removeItem: (key) => entry.getItem(key) !== null && entry.setItem(key, undefined),
  };
  const shelves = [() => localStorage, () => sessionStorage, () => entry];
  const store = {
    get(key) {
      for (const shelf of shelves) {
        try {
          const value = shelf().getItem(key);
          if (value !== null) return value;
        } catch { /* forbidden: the next one */ }
      }
      return null;
    },
    set(key, value) {
      store.drop(key); // an older value on another shelf would be found first
      for (const shelf of shelves) {
        try { return void shelf().setItem(key, value); } catch { /* forbidden or full: the next one */ }
      }
    },
    drop(key) {
      for (const shelf of shelves) {
        try { shelf().removeItem(key); } catch { /* forbidden: nothing is there */ }
      }
    },
  };
  // randomUUID exists only in secure contexts; a demo on a LAN address is not one.
  const newKey = () => crypto.randomUUID?.() ??
    Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');

  // checkout opens the payment of a hold. One key a try, stored under name before
  // it is sent: a reload or a second press finds the same payment. A page of the
  // provider that is over by now is no use to anybody: then once more, with a new key.
  async function checkout(holdId, name, onWait) {
    for (let again = false; ; again = true) {
      const key = (!again && store.get(name)) || newKey();
      store.set(name, key);
      const { json, reply } = await patiently(() => api('POST', `/v1/holds/${holdId}/checkout`, { body: {}, key }), onWait);
      store.set(`usher-booking-${holdId}`, json.bookingId);
      const now = Date.parse(reply.headers.get('Date')) || Date.now();
      if (again || !(Date.parse(json.expiresAt) <= now)) return json;
    }
  }

  let pending;
  // announce speaks in the page's one live region.
  function announce(text) {
    const region = byId('live');
    clearTimeout(pending);
    region.textContent = '';
    pending = setTimeout(() => { region.textContent = text; }, 60);
  }

  window.Usher = { data, t, money, list, h, svg, icon, byId, reducedMotion, sleep, api, patiently, unanswered, checkout, Refusal, store, newKey, announce };
})();
