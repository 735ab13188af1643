// Tabs. Those of one browser have one place, so one of them asks for all and tells the
// others: whoever holds a lock, which the browser gives back when that tab ends. The tab
// that is looked at takes it. A browser without locks, or a page without HTTPS: each asks.

const wire = navigator.locks && "BroadcastChannel" in window ? new BroadcastChannel("usher:" + boot.room) : null;
let leads = !wire;
let queued = null; // ends the wait for the lock
let free = null; // gives the lock back

// asks: a tab whose cookies are refused has a place of its own, and asks for it itself.
const asks = () => leads || bearer !== "";
const inLine = () => !over.includes(state) && !["join", "joining", "scheduled", "trouble"].includes(state);

// lead takes the lock from whichever tab has it; follow waits for it.
function lead() {
  if (!wire || leads) return;
  queued?.abort();
  hold({ steal: true });
}
function follow() {
  if (!wire) return;
  queued = new AbortController();
  hold({ signal: queued.signal });
}

async function hold(how) {
  try {
    await navigator.locks.request("usher:" + boot.room, how, () => {
      leads = true;
      if (inLine()) {
        if (state === "called" && !document.hidden) startAuto();
        listen();
        const before = due;
        plan();
        if (before > Date.now() && before < due) later(question(), before - Date.now()); // never later for it
      }
      return new Promise((done) => { free = done; });
    });
    leads = false; // given back: the page is put away
  } catch (e) {
    if (how.signal?.aborted) return; // taken instead
    if (e.name !== "AbortError") return void (leads = true); // this page has no locks
    leads = false;
    stopAuto();
    hangUp();
    if (inLine()) plan();
    follow();
  }
}

if (wire) {
  wire.onmessage = ({ data }) => {
    if (bearer) return;
    if (data.doc) apply(data.doc, true);
    else if (data.room && (state === "scheduled" || state === "closed")) seeRoom(data.room);
    else if (data.left && inLine()) gone();
  };
  addEventListener("focus", lead);
  addEventListener("pagehide", () => { free?.(); hangUp(); });
}
