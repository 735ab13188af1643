// Viewport turns drags, pinches, the wheel and buttons into one transform:
// screen = world · k + (x, y). It knows nothing of seats.
(() => {
  'use strict';
  const { reducedMotion } = window.Usher;
  const DRAG_FROM = 6; // px: below it a shaking finger still taps

  class Viewport {
    // onChange is called at most once a frame; onTap(worldX, worldY, event) for a press that was no drag.
    constructor(element, { onChange, onTap }) {
      Object.assign(this, { element, onChange, onTap, k: 1, x: 0, y: 0, pointers: new Map() });
      element.addEventListener('pointerdown', (e) => this.#down(e));
      element.addEventListener('pointermove', (e) => this.#move(e));
      element.addEventListener('pointerup', (e) => this.#up(e, true));
      element.addEventListener('pointercancel', (e) => this.#up(e, false));
      element.addEventListener('wheel', (e) => this.#wheel(e), { passive: false });
      this.width = element.clientWidth;
      this.height = element.clientHeight;
      new ResizeObserver(() => this.#resized()).observe(element);
    }

    // setWorld says what there is to see and how far one may zoom in.
    setWorld(bounds, maxScale) {
      this.world = bounds;
      this.maxScale = maxScale;
      this.fit(bounds, false);
    }

    get fitScale() { return this.#scaleFor(this.world); }
    get atHome() { return this.k <= this.fitScale * 1.05; }
    visible() {
      return { x0: -this.x / this.k, y0: -this.y / this.k, x1: (this.width - this.x) / this.k, y1: (this.height - this.y) / this.k };
    }
    toScreen(p) { return { x: p.x * this.k + this.x, y: p.y * this.k + this.y }; }

    // The buttons lie over the lower edge: what is fitted stays clear of them on a phone.
    get #frame() {
      const narrow = this.width < 560;
      return { x: 14, top: 14, bottom: narrow ? 52 : 14 };
    }
    fit(bounds, animate = true) {
      const k = Math.min(this.#scaleFor(bounds), this.maxScale), f = this.#frame;
      const middle = (this.height + f.top - f.bottom) / 2;
      this.#go(k, this.width / 2 - k * (bounds.x0 + bounds.x1) / 2, middle - k * (bounds.y0 + bounds.y1) / 2, animate);
    }
    centerOn(p, k = this.k, animate = true) {
      k = this.#limit(k);
      this.#go(k, this.width / 2 - p.x * k, this.height / 2 - p.y * k, animate);
    }
    zoomBy(factor, cx = this.width / 2, cy = this.height / 2, animate = true) {
      const k = this.#limit(this.k * factor), ratio = k / this.k;
      this.#go(k, cx - (cx - this.x) * ratio, cy - (cy - this.y) * ratio, animate);
    }
    panBy(dx, dy, animate = true) { this.#go(this.k, this.x + dx, this.y + dy, animate); }

    // reveal pans as little as needed to have p on screen with a margin.
    reveal(p, margin = 48) {
      const s = this.toScreen(p), inside = (v, max) => Math.max(Math.min(margin, max / 2), Math.min(max - Math.min(margin, max / 2), v));
      const dx = inside(s.x, this.width) - s.x, dy = inside(s.y, this.height) - s.y;
      if (dx || dy) this.panBy(dx, dy);
    }

    #scaleFor(b) {
      const f = this.#frame;
      return Math.max(1e-3, Math.min((this.width - 2 * f.x) / (b.x1 - b.x0), (this.height - f.top - f.bottom) / (b.y1 - b.y0)));
    }
    #limit(k) { return Math.max(Math.min(this.fitScale, this.maxScale), Math.min(k, this.maxScale)); }

    // #kept keeps at least a third of the screen filled: nobody gets lost in empty space.
    #kept(k, x, y) {
      const f = this.#frame;
      const axis = (v, size, before, after, lo, hi) => {
        const inner = size - before - after;
        if ((hi - lo) * k <= inner + 1) return before + inner / 2 - k * (lo + hi) / 2;
        const slack = size / 3;
        return Math.max(size - slack - hi * k, Math.min(slack - lo * k, v));
      };
      return [axis(x, this.width, f.x, f.x, this.world.x0, this.world.x1), axis(y, this.height, f.top, f.bottom, this.world.y0, this.world.y1)];
    }

    #go(k, x, y, animate) {
      [x, y] = this.#kept(k, x, y);
      cancelAnimationFrame(this.frame);
      this.moving = false;
      if (!animate || reducedMotion()) return this.#set(k, x, y);
      const from = [this.k, this.x, this.y], start = performance.now();
      const step = (now) => {
        const p = Math.min(1, Math.max(0, (now - start) / 320)), e = 1 - (1 - p) ** 3;
        // The scale moves geometrically and the offset follows it, so that the eye sees one motion.
        const kk = from[0] * (k / from[0]) ** e;
        const w = k === from[0] ? e : (kk - from[0]) / (k - from[0]);
        this.moving = p < 1;
        this.#set(kk, from[1] + (x - from[1]) * w, from[2] + (y - from[2]) * w);
        if (p < 1) this.frame = requestAnimationFrame(step);
      };
      this.frame = requestAnimationFrame(step);
    }
    #set(k, x, y) {
      Object.assign(this, { k, x, y });
      if (this.dirty) return;
      this.dirty = true;
      requestAnimationFrame(() => { this.dirty = false; this.onChange(this); });
    }

    #resized() {
      const { clientWidth: w, clientHeight: hgt } = this.element;
      if (!this.world || !w || !hgt || (w === this.width && hgt === this.height)) return;
      const home = this.atHome || !this.width;
      const center = { x: (this.width / 2 - this.x) / this.k, y: (this.height / 2 - this.y) / this.k };
      this.width = w;
      this.height = hgt;
      if (home) this.fit(this.world, false);
      else this.centerOn(center, this.k, false);
    }

    #at(e) {
      const box = this.element.getBoundingClientRect();
      return { x: e.clientX - box.left, y: e.clientY - box.top };
    }
    #down(e) {
      if (e.button > 0) return;
      this.pointers.set(e.pointerId, this.#at(e));
      if (this.pointers.size === 1) Object.assign(this, { start: this.#at(e), dragging: false });
      else this.dragging = true;
      cancelAnimationFrame(this.frame);
      this.moving = false;
    }
    #move(e) {
      const last = this.pointers.get(e.pointerId);
      if (!last) return;
      const now = this.#at(e);
      if (!this.dragging && Math.hypot(now.x - this.start.x, now.y - this.start.y) < DRAG_FROM) return;
      if (!this.dragging) {
        this.dragging = true;
        this.element.classList.add('dragging');
      }
      this.element.setPointerCapture(e.pointerId); // only now: a captured tap would lose its target
      const before = this.#spread();
      this.pointers.set(e.pointerId, now);
      const after = this.#spread();
      const k = before.size > 0 ? this.#limit(this.k * after.size / before.size) : this.k, ratio = k / this.k;
      this.#go(k, after.x - (before.x - this.x) * ratio, after.y - (before.y - this.y) * ratio, false);
    }
    #up(e, counts) {
      if (!this.pointers.delete(e.pointerId)) return;
      if (this.pointers.size > 0) return;
      this.element.classList.remove('dragging');
      if (counts && !this.dragging) {
        const p = this.#at(e);
        this.onTap((p.x - this.x) / this.k, (p.y - this.y) / this.k, e);
      }
    }
    // #spread is the middle of all fingers and their distance.
    #spread() {
      const ps = [...this.pointers.values()], x = ps.reduce((s, p) => s + p.x, 0) / ps.length, y = ps.reduce((s, p) => s + p.y, 0) / ps.length;
      return { x, y, size: ps.length > 1 ? Math.hypot(ps[0].x - ps[1].x, ps[0].y - ps[1].y) : 0 };
    }
    #wheel(e) {
      e.preventDefault();
      const p = this.#at(e), lines = e.deltaMode === 1 ? 16 : 1;
      this.zoomBy(Math.exp(-e.deltaY * lines * (e.ctrlKey ? 0.01 : 0.0018)), p.x, p.y, false);
    }
  }
  window.Usher.Viewport = Viewport;
})();
