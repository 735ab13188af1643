// Pure geometry of a hall: no DOM, no state.
(() => {
  'use strict';

  function boundsOf(points) {
    let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
    for (const p of points) {
      if (p.x < x0) x0 = p.x;
      if (p.x > x1) x1 = p.x;
      if (p.y < y0) y0 = p.y;
      if (p.y > y1) y1 = p.y;
    }
    return { x0, y0, x1, y1 };
  }
  const grow = (b, by) => ({ x0: b.x0 - by, y0: b.y0 - by, x1: b.x1 + by, y1: b.y1 + by });
  const join = (a, b) => ({
    x0: Math.min(a.x0, b.x0), y0: Math.min(a.y0, b.y0), x1: Math.max(a.x1, b.x1), y1: Math.max(a.y1, b.y1),
  });
  const meets = (a, b) => a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;

  // pitchOf is the usual distance between neighbours of a row: the median, so
  // that aisles do not widen it.
  function pitchOf(rows) {
    const gaps = [];
    for (const row of rows) {
      for (let i = 1; i < row.length; i++) gaps.push(Math.hypot(row[i].x - row[i - 1].x, row[i].y - row[i - 1].y));
    }
    gaps.sort((a, b) => a - b);
    return gaps.length ? gaps[gaps.length >> 1] : 10;
  }

  // angleIn is how far a seat is turned: along its row, so that arcs look like arcs.
  function angleIn(row, i) {
    const a = row[Math.max(0, i - 1)], b = row[Math.min(row.length - 1, i + 1)];
    if (a === b) return 0;
    let deg = Math.atan2(b.y - a.y, b.x - a.x) * 180 / Math.PI;
    if (deg > 90) deg -= 180;
    if (deg < -90) deg += 180;
    return Math.round(deg * 10) / 10;
  }

  // hull is the convex outline of points, for a section that came without one.
  function hull(points) {
    const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
    const turn = (o, a, b) => (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
    const half = (ps) => {
      const out = [];
      for (const p of ps) {
        while (out.length > 1 && turn(out[out.length - 2], out[out.length - 1], p) <= 0) out.pop();
        out.push(p);
      }
      out.pop();
      return out;
    };
    return [...half(sorted), ...half(sorted.reverse())];
  }

  // chord is how wide an outline is at height y around x: the room a label has.
  function chord(points, x, y) {
    let left = -Infinity, right = Infinity;
    for (let i = 0; i < points.length; i++) {
      const a = points[i], b = points[(i + 1) % points.length];
      if ((a.y > y) === (b.y > y)) continue;
      const at = a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y);
      if (at <= x) left = Math.max(left, at);
      else right = Math.min(right, at);
    }
    return right - left < Infinity ? 2 * Math.min(x - left, right - x) : 0;
  }

  // nearestInDirection is where an arrow key goes: the seat that is ahead in that
  // direction, with sideways distance counting double, so that "up" from the end
  // of a short row still lands on the row above and not three rows up.
  function nearestInDirection(items, from, dx, dy) {
    let best = null, least = Infinity;
    for (const s of items) {
      const along = (s.x - from.x) * dx + (s.y - from.y) * dy;
      if (s === from || along < 0.01) continue;
      const aside = Math.abs((s.x - from.x) * dy) + Math.abs((s.y - from.y) * dx);
      if (aside > along * 2) continue;
      const cost = along + 2 * aside;
      if (cost < least) [best, least] = [s, cost];
    }
    return best;
  }

  function nearest(items, x, y, within) {
    let best = null, least = within * within;
    for (const s of items) {
      const d = (s.x - x) ** 2 + (s.y - y) ** 2;
      if (d <= least) [best, least] = [s, d];
    }
    return best;
  }

  window.Usher.geometry = { boundsOf, grow, join, meets, pitchOf, angleIn, hull, chord, nearestInDirection, nearest };
})();
