// The booking page of one showtime: it wires map, list, tray and live updates
// around one small state, {picks, hold}, and speaks to the box office.
(() => {
  'use strict';
  const U = window.Usher;
  const { data, t, h, byId, api, patiently, unanswered, Refusal, store, newKey, announce } = U;

  const over = (hold) => !(Date.parse(hold.expiresAt) > Date.now()) || ['RELEASED', 'EXPIRED', 'CONFIRMED'].includes(hold.state);

  class Shop {
    constructor(map, etag) {
      this.id = data.showtime.id;
      this.hall = new U.Hall(map);
      this.hall.max = this.max = data.showtime.maxPerHold || 8;
      this.picks = [];
      this.hold = null;
      this.visitor = !data.session;
      const common = { stateOf: (s) => this.stateOf(s), onPick: (s) => this.pick(s), onStanding: (s) => this.standing(s) };
      this.map = new U.SeatMap(byId('map'), this.hall, { ...common, onZoom: U.around.zoomed, onHover: (at) => U.around.hover(at, this) });
      this.list = new U.ListView(byId('list'), this.hall, common);
      this.tray = new U.Tray(byId('tray'), this.hall, {
        hold: () => this.take({ seats: this.picks.map((s) => s.code) }), drop: (s) => this.pick(s),
        best: (count, section) => this.take({ best: section ? { count, section } : { count } }),
        pay: () => this.pay(), change: () => this.change(),
      });
      this.live = new U.Live(this.id, { etag, onSeats: (seats) => this.changed(seats), onState: (s) => { byId('stale').hidden = s === 'live'; } });
      U.around.buttons(this.map);
      U.around.legend(this.hall);
      this.#restore();
    }

    stateOf(seat) {
      if (this.hold?.seats.includes(seat.code)) return 'mine';
      if (this.picks.includes(seat)) return 'picked';
      return { AVAILABLE: 'free', HELD: 'held', BOOKED: 'sold' }[seat.status] ?? 'sold';
    }

    // ---- choosing ---------------------------------------------------------

    pick(seat) {
      if (this.hold || this.busy) return;
      if (this.visitor) return this.tell({ tone: 'info', title: t('visit.title'), text: t('visit.short'), action: 'line' });
      const at = this.picks.indexOf(seat);
      if (at >= 0) {
        this.picks.splice(at, 1);
        announce(t('say.dropped', { seat: this.hall.where(seat), n: this.picks.length }));
      } else if (seat.status !== 'AVAILABLE') {
        return announce(this.hall.speak(seat, this.stateOf(seat)));
      } else if (this.picks.length >= this.max) {
        return this.tell({ tone: 'warn', title: t('no.toomany', { limit: this.max }), text: t('no.toomany.text', { limit: this.max }) });
      } else {
        this.picks.push(seat);
        announce(t('say.picked', { seat: this.hall.where(seat), n: this.picks.length, total: U.money(this.hall.total(this.picks.map((s) => s.code)), this.hall.currency) }));
      }
      this.#remember();
      this.tray.notice(null);
      this.draw([seat]);
    }
    // A standing area has places, not seats: one says how many.
    standing(section) {
      if (this.hold || this.visitor) return;
      this.picks = [];
      this.tray.section = section.code;
      this.draw();
      byId('tray').querySelector('.best')?.classList.add('asked');
      byId('best')?.focus();
      announce(t('standing.choose'));
    }

    // changed takes statuses from live updates and says plainly what was lost.
    changed(statuses) {
      const seats = this.hall.merge(statuses);
      if (!seats.length) return;
      const lost = this.hold ? [] : this.picks.filter((s) => s.status !== 'AVAILABLE');
      this.picks = this.picks.filter((s) => !lost.includes(s));
      if (lost.length) {
        const names = U.list(lost.map((s) => this.hall.short(s)));
        this.tell({ tone: 'warn', title: t('say.lost', { n: lost.length, seats: names }), text: this.picks.length ? t('say.lost.rest') : t('say.lost.all') });
        this.#remember();
      }
      this.map.repaint(seats);
      this.list.repaint(seats);
      if (lost.length) this.draw(lost);
    }

    // ---- holding ----------------------------------------------------------

    async take(body) {
      if (this.busy) return;
      this.#busy(true);
      this.tray.notice(null);
      try {
        const { json, reply } = await this.#ask(body);
        this.tray.notice(null);
        this.#held(json, reply, true);
      } catch (e) {
        await this.refused(e, () => this.take(body));
      } finally {
        this.#busy(false);
      }
    }
    // Best-available needs a key, or a lost answer would take two pairs of seats. It
    // belongs to the wish and is kept until the wish is answered: "try again" after
    // a lost answer, or after a reload, finds the seats that were taken then.
    async #ask(body) {
      const send = (key) => patiently(
        () => api('POST', `/v1/showtimes/${encodeURIComponent(this.id)}/holds`, { body, key }),
        () => this.tell(U.explain({ slug: 'busy' }, this.hall), { quiet: true }));
      if (!body.best) return send();
      const name = `usher-best-${this.id}`, wish = JSON.stringify(body.best), kept = JSON.parse(store.get(name) ?? '{}');
      const old = kept.wish === wish && kept.key, key = old || newKey();
      store.set(name, JSON.stringify({ wish, key }));
      try {
        const answer = await send(key);
        store.drop(name);
        // The answer of long ago: what was held then is gone, so ask anew.
        return old && over(answer.json) ? this.#ask(body) : answer;
      } catch (e) {
        if (!unanswered(e)) store.drop(name);
        throw e;
      }
    }
    #held(hold, reply, fresh) {
      // The Date header counts whole seconds: a difference that small is no difference.
      const apart = Date.parse(reply.headers.get('Date')) - Date.now(), skew = Math.abs(apart) > 3000 ? apart : 0;
      this.clock?.stop();
      this.hold = hold;
      this.picks = [];
      this.map.locked = true;
      store.set(`usher-hold-${this.id}`, hold.holdId);
      store.drop(`usher-picks-${this.id}`);
      const whole = Math.max(Number(store.get(`usher-whole-${hold.holdId}`)) || 0, Date.parse(hold.expiresAt) - Date.now() - skew);
      store.set(`usher-whole-${hold.holdId}`, String(whole));
      this.clock = new U.HoldClock({ expiresAt: hold.expiresAt, whole, skew, onEnd: () => this.expired() });
      this.changed(hold.seats.map((code) => ({ code, status: 'HELD' })));
      this.draw();
      setTimeout(() => this.map.showSeats(hold.seats), 80); // once the tray has its new height
      if (!fresh) return;
      announce(t('say.held', { n: hold.seats.length, minutes: Math.ceil(this.clock.left / 60) }));
      byId('pay')?.focus({ preventScroll: true });
    }
    #dropHold() {
      const old = this.hold?.seats ?? [];
      if (this.hold) this.#forget(this.hold.holdId);
      this.clock?.stop();
      this.hold = null;
      this.map.locked = false;
      return old.map((code) => this.hall.byCode.get(code)).filter(Boolean);
    }
    #forget(holdId) {
      store.drop(`usher-hold-${this.id}`);
      for (const what of ['pay', 'whole', 'booking']) store.drop(`usher-${what}-${holdId}`);
    }
    async change() {
      if (!this.hold) return;
      this.#busy(true);
      try {
        await patiently(() => api('DELETE', `/v1/holds/${this.hold.holdId}`));
        const seats = this.#dropHold();
        this.hall.merge(seats.map((s) => ({ code: s.code, status: 'AVAILABLE' })));
        // What was held stays chosen: "change" mostly means one seat, not all.
        this.picks = seats.filter((s) => !s.in.standing);
        this.#remember();
        this.draw();
        if (this.hall.small) this.map.home();
        byId('map').querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
      } catch (e) {
        await this.refused(e);
      } finally {
        this.#busy(false);
      }
    }
    async expired() {
      const seats = this.#dropHold();
      this.draw();
      await this.live.refresh();
      this.picks = seats.filter((s) => s.status === 'AVAILABLE' && !s.in.standing);
      this.#remember();
      this.tell(U.explain({ slug: 'hold-expired' }, this.hall), this.picks.length ? { again: () => this.take({ seats: this.picks.map((s) => s.code) }) } : {});
      this.draw();
    }

    async pay() {
      if (!this.hold) return;
      this.#busy(true);
      try {
        const { paymentUrl } = await U.checkout(this.hold.holdId, `usher-pay-${this.hold.holdId}`,
          () => this.tell(U.explain({ slug: 'busy' }, this.hall), { quiet: true }));
        location.assign(paymentUrl);
      } catch (e) {
        await this.refused(e, () => this.pay());
        this.#busy(false);
      }
    }

    // ---- what went wrong --------------------------------------------------

    async refused(e, again) {
      if (!(e instanceof Refusal)) throw e;
      if (e.slug === 'seats-unavailable' && await this.#mine(e.problem)) return;
      if (['seats-unavailable', 'none-free-now', 'sold-out', 'ticket-limit'].includes(e.slug)) await this.live.refresh();
      if (e.slug === 'seats-unavailable') {
        // The map may be a second behind the answer; the answer is the truth.
        this.hall.merge((e.problem.seats ?? []).map((code) => ({ code, status: this.hall.byCode.get(code)?.status === 'BOOKED' ? 'BOOKED' : 'HELD' })));
        this.picks = this.picks.filter((s) => s.status === 'AVAILABLE');
        this.#remember();
      }
      if (['hold-expired', 'unknown-hold'].includes(e.slug) && this.hold) return this.expired();
      if (e.slug.startsWith('session-')) {
        this.visitor = true;
        this.#dropHold();
      }
      this.draw();
      this.tell(U.explain(e, this.hall), { again });
    }
    // #mine shows the hold that some of the wanted seats are in already: of another
    // tab, or of this one before a lost answer. False when there is none.
    async #mine({ yours, holdId, seats = [] }) {
      if (!yours?.length || !holdId || !await this.#find(holdId)) return false;
      this.changed(seats.map((code) => ({ code, status: 'HELD' })));
      const gone = seats.map((code) => this.hall.byCode.get(code)).filter(Boolean).map((s) => this.hall.short(s));
      const lost = gone.length ? `${t('no.taken', { n: gone.length, seats: U.list(gone) })}. ` : '';
      this.tell({ tone: 'info', title: t('no.yours', { n: this.hold.seats.length }), text: lost + t('no.yours.text') });
      return true;
    }
    // #find takes up a hold by its id: false when it is over, undefined when
    // nobody could say.
    async #find(id) {
      try {
        const { json, reply } = await patiently(() => api('GET', `/v1/holds/${encodeURIComponent(id)}`), undefined, 3);
        if (over(json)) return false;
        this.#held(json, reply, false);
        return true;
      } catch (e) {
        if (!(e instanceof Refusal)) throw e;
        return unanswered(e) ? undefined : false;
      }
    }
    tell(words, { again, quiet } = {}) {
      const booking = this.hold && store.get(`usher-booking-${this.hold.holdId}`);
      const acts = {
        line: () => h('a', { class: 'btn small', href: data.lineUrl }, t('act.line')),
        again: () => again && h('button', { type: 'button', class: 'btn small', onclick: again }, t('act.again')),
        rest: () => this.picks.length > 0 && h('button', { type: 'button', class: 'btn small', onclick: () => this.take({ seats: this.picks.map((s) => s.code) }) }, t('act.rest', { n: this.picks.length })),
        booking: () => (booking ? h('a', { class: 'btn small', href: `/bookings/${encodeURIComponent(booking)}` }, t('act.booking')) : acts.pay()),
        pay: () => this.hold && h('button', { type: 'button', class: 'btn small', onclick: () => this.pay() }, t('act.pay')),
      };
      this.tray.notice(words, (!quiet && acts[words.action]?.()) || null);
    }

    // ---- the page around --------------------------------------------------

    draw(seats) {
      this.map.repaint(seats);
      this.list.repaint(seats);
      if (this.visitor) this.tray.visiting(data.lineUrl);
      else if (this.hold) this.tray.holding({ hold: this.hold, clock: this.clock, busy: this.busy });
      else this.tray.choosing({ picks: this.picks, max: this.max, busy: this.busy });
      byId('left').textContent = this.hall.free ? t('section.left', { n: this.hall.free }) : t('section.soldout');
    }
    #busy(on) {
      this.busy = on;
      byId('tray').setAttribute('aria-busy', String(on));
      this.draw([]);
    }
    #remember() { store.set(`usher-picks-${this.id}`, JSON.stringify(this.picks.map((s) => s.code))); }
    async #restore() {
      const held = store.get(`usher-hold-${this.id}`);
      if (held && !this.visitor) {
        const found = await this.#find(held);
        if (found) return;
        if (found === false) this.#forget(held);
      }
      const codes = JSON.parse(store.get(`usher-picks-${this.id}`) ?? '[]');
      if (!this.visitor) this.picks = codes.map((c) => this.hall.byCode.get(c)).filter((s) => s?.status === 'AVAILABLE').slice(0, this.max);
      this.draw();
    }
  }

  async function start() {
    if (!data.showtime) return;
    try {
      const { json, reply } = await patiently(() => api('GET', `/v1/showtimes/${encodeURIComponent(data.showtime.id)}/seats`));
      byId('loading').hidden = true;
      U.shop = new Shop(json, reply.headers.get('ETag'));
      document.body.classList.add('ready');
    } catch (e) {
      byId('loading').replaceChildren(h('p', {}, t('no.map')), h('button', { type: 'button', class: 'btn', onclick: () => location.reload() }, t('act.again')));
      if (!(e instanceof Refusal)) throw e;
    }
  }
  // Back from the payment page the browser may show this page as it was left, with
  // its clock stopped and its button pressed.
  addEventListener('pageshow', (e) => { if (e.persisted) location.reload(); });
  start();
})();
