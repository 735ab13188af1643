// Live keeps a Hall's statuses fresh: it asks for the map by its ETag every two
// seconds, which costs next to nothing while nobody buys. A hidden tab rests, and
// asks at once when it is seen again.
(() => {
  'use strict';
  const { api } = window.Usher;
  const EVERY = 2000;

  class Live {
    // onSeats gets [{code, status}]; onState tells "live" or "stale".
    constructor(showtimeId, { etag, onSeats, onState }) {
      Object.assign(this, { path: `/v1/showtimes/${encodeURIComponent(showtimeId)}/seats`, etag, onSeats, onState });
      document.addEventListener('visibilitychange', () => this.#begin());
      this.timer = setTimeout(() => this.#begin(), EVERY);
    }

    #begin() {
      clearTimeout(this.timer);
      if (!document.hidden) this.#loop();
    }
    async #loop() {
      const round = this.round = {}; // a newer loop ends this one
      const began = performance.now();
      await this.refresh();
      if (document.hidden || this.round !== round) return;
      // A map that takes long to come is asked for less often: on a slow phone the
      // stadium must not be all it does.
      const wait = Math.max(EVERY, 3 * (performance.now() - began));
      this.timer = setTimeout(() => this.#begin(), wait + Math.random() * 200);
    }
    // refresh asks once, now.
    async refresh() {
      try {
        const { status, reply, json } = await api('GET', this.path, { headers: this.etag ? { 'If-None-Match': this.etag } : {} });
        this.onState('live');
        if (status === 304) return;
        this.etag = reply.headers.get('ETag');
        this.onSeats(json.seats);
      } catch {
        this.onState('stale');
      }
    }
  }
  window.Usher.Live = Live;
})();
