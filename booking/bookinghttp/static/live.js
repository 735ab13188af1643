// Live keeps a Hall's statuses fresh: the stream where there is one, the map by
// ETag every two seconds where there is none or while it is broken. A hidden tab
// rests and asks once when it is seen again.
(() => {
  'use strict';
  const { api } = window.Usher;
  const EVERY = 2000;

  class Live {
    // onSeats gets [{code, status}]; onState tells "live" or "stale".
    constructor(showtimeId, { etag, onSeats, onState }) {
      Object.assign(this, { path: `/v1/showtimes/${encodeURIComponent(showtimeId)}/seats`, etag, onSeats, onState, misses: 0 });
      document.addEventListener('visibilitychange', () => (document.hidden ? this.#rest() : this.#start()));
      if (!document.hidden) this.#start();
    }

    #start() {
      this.#rest();
      this.running = true;
      if (window.Usher.data.stream && this.misses < 3) this.#listen();
      else this.#loop();
    }
    #rest() {
      this.running = false;
      clearTimeout(this.timer);
      this.source?.close();
      this.source = null;
    }
    #listen() {
      const source = this.source = new EventSource(`${this.path}/stream`);
      const take = (e) => {
        this.misses = 0;
        this.onState('live');
        this.onSeats(JSON.parse(e.data).seats ?? []);
      };
      for (const kind of ['snapshot', 'delta', 'message']) source.addEventListener(kind, take);
      source.onerror = () => {
        this.onState('stale');
        // The browser reconnects by itself; only a stream that never works is given up.
        if (++this.misses >= 3) this.#start();
      };
    }
    async #loop() {
      if (!this.running) return;
      await this.refresh();
      if (this.running) this.timer = setTimeout(() => this.#loop(), EVERY + Math.random() * 300);
    }
    // refresh asks once, now.
    async refresh() {
      try {
        const { status, reply, json } = await api('GET', this.path, { headers: this.etag ? { 'If-None-Match': this.etag } : {} });
        this.onState('live');
        if (status === 304) return;
        this.etag = reply.headers.get('ETag');
        this.onSeats(window.Usher.readMap(json).seats);
      } catch {
        this.onState('stale');
      }
    }
  }
  window.Usher.Live = Live;
})();
