// explain turns a refusal of the API into words and one thing to do.
(() => {
  'use strict';
  const { t, list } = window.Usher;

  // It returns {tone, title, text, action}: action is a name the shop knows, or none.
  function explain(refusal, hall) {
    const p = refusal.problem ?? {};
    const say = (key, vars, action, tone = 'warn') => ({ tone, title: t(`no.${key}`, vars), text: t(`no.${key}.text`, vars), action });
    switch (refusal.slug) {
      case 'seats-unavailable': {
        const names = (p.seats ?? []).map((code) => (hall.byCode.has(code) ? hall.short(hall.byCode.get(code)) : code));
        return say('taken', { n: names.length, seats: list(names) }, 'rest');
      }
      case 'ticket-limit':
        return say('limit', { limit: p.limit ?? 0, bought: p.bought ?? 0, held: p.held ?? 0, left: p.left ?? 0 });
      case 'none-free-now':
        if (!p.left) return say('nonefree', {});
        return p.largestBlock < p.left ? say('apart', { n: p.largestBlock, left: p.left }) : say('fewer', { n: p.left });
      case 'sold-out': return say('soldout', {});
      case 'too-many-seats': return say('toomany', { limit: p.max ?? hall.max });
      case 'too-many-requests': return say('slow', { n: Math.max(1, refusal.retryAfter) });
      case 'busy': case 'unavailable': case 'idempotency-in-progress': return say('busy', {}, 'again', 'info');
      case 'offline': return say('offline', {}, 'again', 'info');
      case 'hold-not-open': return say('paying', {}, 'booking', 'info');
      case 'hold-expired': case 'unknown-hold': return say('expired', {}, 'again');
      case 'session-missing': case 'session-invalid': case 'session-ended': case 'wrong-room':
        return say(refusal.slug === 'session-ended' ? 'ended' : 'nosession', {}, 'line');
      case 'room-paused': case 'room-closed': return say('closed', {}, 'line');
      case 'payment-unavailable': return say('nopay', {}, 'again');
      default: return say('unknown', {}, 'again');
    }
  }
  window.Usher.explain = explain;
})();
