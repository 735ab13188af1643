// readShape turns a layout's drawing (stage, floor, section outlines) into paths.
(() => {
  'use strict';
  const { t, svg } = window.Usher;
  const r = (v) => Math.round(v * 100) / 100;
  const point = ([x, y]) => ({ x, y });
  const polygon = (points) => `M${points.map((p) => `${r(p.x)} ${r(p.y)}`).join('L')}Z`;
  const rounded = ({ x, y, width: w, height: h }, c) =>
    `M${r(x + c)} ${y}h${r(w - 2 * c)}a${c} ${c} 0 0 1 ${c} ${c}v${r(h - 2 * c)}a${c} ${c} 0 0 1 ${-c} ${c}h${r(2 * c - w)}a${c} ${c} 0 0 1 ${-c} ${-c}v${r(2 * c - h)}a${c} ${c} 0 0 1 ${c} ${-c}Z`;

  // A screen is a curved sheet of light, a pitch has its lines, a stage is a block.
  const stages = {
    screen: (s) => {
      const bend = Math.max(s.height, s.width * 0.04), y = s.y + s.height;
      return {
        path: `M${s.x} ${r(y)}Q${r(s.x + s.width / 2)} ${r(y - bend * 2)} ${r(s.x + s.width)} ${r(y)}`,
        glow: `M${s.x} ${r(y)}Q${r(s.x + s.width / 2)} ${r(y - bend * 2)} ${r(s.x + s.width)} ${r(y)}L${r(s.x + s.width * 0.93)} ${r(y + bend * 3)}Q${r(s.x + s.width / 2)} ${r(y + bend * 1.6)} ${r(s.x + s.width * 0.07)} ${r(y + bend * 3)}Z`,
        at: { x: s.x + s.width / 2, y: y + bend * 0.75 }, top: y - bend,
      };
    },
    pitch: (s) => {
      const cx = s.x + s.width / 2, cy = s.y + s.height / 2, wide = s.width >= s.height, c = Math.min(s.width, s.height) * 0.16;
      const middle = wide ? `M${r(cx)} ${s.y}V${r(s.y + s.height)}` : `M${s.x} ${r(cy)}H${r(s.x + s.width)}`;
      return {
        path: rounded(s, Math.min(s.width, s.height) * 0.02), at: { x: cx, y: cy },
        lines: [middle, `M${r(cx - c)} ${r(cy)}a${r(c)} ${r(c)} 0 1 0 ${r(2 * c)} 0a${r(c)} ${r(c)} 0 1 0 ${r(-2 * c)} 0`],
      };
    },
    stage: (s) => ({ path: rounded(s, Math.min(s.width, s.height) * 0.18), at: { x: s.x + s.width / 2, y: s.y + s.height / 2 } }),
  };

  function readShape(shape = {}) {
    const furniture = [], list = Array.isArray(shape.stage) ? shape.stage : shape.stage ? [shape.stage] : [];
    if (shape.floor?.length > 2) furniture.push({ kind: 'floor', path: polygon(shape.floor.map(point)) });
    for (const s of list) {
      const drawn = (stages[s.kind] ?? stages.stage)(s);
      furniture.push({ kind: s.kind, label: s.label, ...drawn, room: s.width, bounds: { x0: s.x, x1: s.x + s.width, y0: drawn.top ?? s.y, y1: s.y + s.height } });
    }
    const sections = (shape.sections ?? []).map((s) => ({
      code: s.id, name: s.label || s.id, standing: s.kind === 'standing',
      points: s.outline?.length > 2 ? s.outline.map(point) : undefined, at: s.labelAt ? point(s.labelAt) : undefined,
    }));
    return { furniture, sections };
  }

  // drawFurniture is the stage, screen or pitch and the floor, as SVG nodes.
  function drawFurniture(hall) {
    const nodes = [];
    for (const f of hall.shape.furniture) {
      if (f.glow) nodes.push(svg('path', { d: f.glow, class: 'glow' }));
      nodes.push(svg('path', { d: f.path, class: `furniture ${f.kind}`, 'stroke-width': f.glow ? hall.pitch * 0.22 : null }));
      for (const line of f.lines ?? []) nodes.push(svg('path', { d: line, class: 'furniture-line' }));
      if (!f.at || !f.label) continue;
      const known = t(`shape.${f.kind}`), label = known === `shape.${f.kind}` ? f.label : known;
      nodes.push(svg('text', {
        x: f.at.x, y: f.at.y, class: 'furniture-label', 'text-anchor': 'middle', dy: '.35em',
        'font-size': Math.min(f.room / label.length, hall.small ? hall.pitch * 0.62 : f.room * 0.09),
      }, label));
    }
    return nodes;
  }
  Object.assign(window.Usher, { readShape, polygon, drawFurniture });
})();
