// When to ask.

let due = 0; // when the timer goes off
function later(what, ms) {
  clearTimeout(timer);
  due = Date.now() + ms;
  timer = setTimeout(what, ms);
}

// plan says when to ask next. A hidden tab asks once when its turn comes near,
// and near the head every half claim window, so that a call is noticed in time.
function plan() {
  if (wanting()) return later(claim, state === "standby" ? 1000 + Math.random() * 1000 : 50);
  if (state === "closed") return later(pollRoom, 30000);
  if (over.includes(state)) return clearTimeout(timer);
  let wait = Math.min(Math.max(doc.pollAfterMs || 5000, 1000), 120000);
  if (state === "admitted") wait = Math.max(wait, 15000);
  const half = windowMs() / 2 * (0.85 + Math.random() / 10);
  if (document.hidden && state === "waiting") {
    const far = doc.eta ? doc.eta.lowSeconds * 1000 - half : 0;
    wait = Math.max(wait, half, far);
  } else if (document.hidden && (state !== "admitted" || owed)) {
    wait = half; // a call, a spot at the door, a pass: each lives as long as the window
  }
  if (live) wait = Math.max(wait, 30000); // the stream tells; this is for one that died unnoticed
  if (!asks()) wait = 2 * wait + 10000; // another tab tells; this is for one that fell asleep
  later(poll, Math.min(wait, 2 ** 31 - 1));
}

function woke() {
  if (document.hidden) return stopAuto(), hangUp(), plan();
  lead();
  if (state === "called") startAuto();
  if (over.includes(state) || state === "join" || state === "joining") return;
  if (wanting()) return later(claim, 0);
  later(question(), Math.max(0, asked + 1000 - Date.now())); // at once, unless it was asked this second
}

document.addEventListener("visibilitychange", woke);
addEventListener("pageshow", (e) => { if (e.persisted) { asked = 0; woke(); } });
addEventListener("offline", () => flag("offline"));
addEventListener("online", () => {
  flag("");
  if (!over.includes(state)) later(question(), Math.random() * 3000);
});
