// HoldClock shows how long the seats are kept. Eyes get every second; a screen
// reader is told at five, two and one minute, and at the end.
(() => {
  'use strict';
  const { t, h, svg, announce } = window.Usher;
  const SPOKEN = [300, 120, 60];
  const ROUND = 2 * Math.PI * 20;

  class HoldClock {
    // whole is how long a hold lasts in ms, for the ring; skew is server clock minus ours.
    constructor({ expiresAt, whole, skew, onEnd }) {
      Object.assign(this, { ends: Date.parse(expiresAt) - skew, whole, onEnd });
      this.text = h('span', { class: 'clock-time' });
      this.arc = svg('circle', { class: 'clock-arc', cx: 24, cy: 24, r: 20, 'stroke-dasharray': ROUND, transform: 'rotate(-90 24 24)' });
      this.ring = svg('svg', { class: 'clock-ring', viewBox: '0 0 48 48', 'aria-hidden': 'true' }, svg('circle', { class: 'clock-track', cx: 24, cy: 24, r: 20 }), this.arc);
      this.node = h('div', { class: 'clock', role: 'timer', 'aria-live': 'off', 'aria-label': t('clock.label') },
        this.ring, h('div', {}, h('span', { class: 'clock-words' }, t('clock.words')), this.text));
      this.spoken = new Set(SPOKEN.filter((s) => s >= this.left));
      this.#tick();
    }
    get left() { return Math.max(0, Math.ceil((this.ends - Date.now()) / 1000)); }
    stop() { clearTimeout(this.timer); }

    #tick() {
      const left = this.left;
      this.text.textContent = `${String(Math.floor(left / 60)).padStart(2, '0')}:${String(left % 60).padStart(2, '0')}`;
      this.arc.setAttribute('stroke-dashoffset', String(ROUND * (1 - Math.min(1, left * 1000 / this.whole))));
      this.node.classList.toggle('soon', left <= 120);
      const due = SPOKEN.filter((s) => left <= s && !this.spoken.has(s));
      if (due.length && left > 0) {
        due.forEach((s) => this.spoken.add(s));
        announce(t('clock.left', { n: Math.ceil(left / 60) }));
      }
      if (left === 0) return this.onEnd();
      this.timer = setTimeout(() => this.#tick(), (this.ends - Date.now()) % 1000 + 20);
    }
  }
  window.Usher.HoldClock = HoldClock;
})();
