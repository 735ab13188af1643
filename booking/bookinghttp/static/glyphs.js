// Glyphs: how seats look. Each state has an outline of its own, so that nobody
// needs colours to tell them apart. Sizes are half widths in the hall's units.
(() => {
  'use strict';
  const { svg } = window.Usher;

  const r = (v) => Math.round(v * 100) / 100;
  // chair: a seat from above; square shoulders towards the stage, a round back.
  function chair(a) {
    const f = a * 0.3, b = a * 0.72, n = r(-a), p = r(a);
    return `M${n} ${r(-a + f)}Q${n} ${n} ${r(-a + f)} ${n}H${r(a - f)}Q${p} ${n} ${p} ${r(-a + f)}V${r(a - b)}Q${p} ${p} ${r(a - b)} ${p}H${r(-a + b)}Q${n} ${p} ${n} ${r(a - b)}Z`;
  }
  const cross = (a) => `M${r(-a)} ${r(-a)}L${r(a)} ${r(a)}M${r(a)} ${r(-a)}L${r(-a)} ${r(a)}`;
  const tick = (a) => `M${r(-a)} ${r(a * 0.05)}L${r(-a * 0.25)} ${r(a * 0.75)}L${r(a)} ${r(-a * 0.7)}`;
  function wheelchair(a) {
    return `M${r(-a * 0.2)} ${r(-a)}a${r(a * 0.2)} ${r(a * 0.2)} 0 1 0 .01 0M${r(-a * 0.15)} ${r(-a * 0.4)}V${r(a * 0.15)}H${r(a * 0.45)}L${r(a * 0.7)} ${r(a * 0.85)}M${r(-a * 0.45)} ${r(-a * 0.05)}A${r(a * 0.55)} ${r(a * 0.55)} 0 1 0 ${r(a * 0.4)} ${r(a * 0.65)}`;
  }

  // patterns are the stripes of what is held (fine) and of a section that is sold out (wide).
  function patterns(size) {
    const stripes = (id, w) => svg('pattern', { id, width: w, height: w, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
      svg('rect', { class: 'hatch-ground', width: w, height: w }), svg('rect', { class: 'hatch', width: w * 0.4, height: w }));
    return svg('defs', {}, stripes('hatch', size), stripes('hatch-wide', size * 4));
  }
  window.Usher.glyphs = { r, chair, cross, tick, wheelchair, patterns };
})();
