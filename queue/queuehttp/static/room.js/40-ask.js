// Asking the edge.

async function call(method, path, body) {
  const gone = new AbortController();
  const limit = setTimeout(() => gone.abort(), 10000);
  if (method === "GET") polling = gone;
  try {
    const headers = { Accept: "application/json" };
    if (body) headers["Content-Type"] = "application/json";
    if (bearer) headers.Authorization = "Bearer " + bearer;
    const answer = await fetch(api + path, {
      method, headers, body, signal: gone.signal, credentials: "same-origin", cache: "no-store",
    });
    const date = Date.parse(answer.headers.get("Date"));
    if (date && Math.abs(Date.now() - date - skew) > 2000) skew = Date.now() - date;
    const json = answer.status === 204 ? {} : await answer.json().catch(() => ({}));
    const after = Number(answer.headers.get("Retry-After")) * 1000 || 0;
    return { ok: answer.ok, status: answer.status, json, after, slug: String(json.type || "").split("/").pop() };
  } finally {
    clearTimeout(limit);
    polling = null;
  }
}

// How much a call matters: a poll comes again by itself, a wish must not be lost,
// and what the fan pressed goes before what the page wishes.
const POLL = 0, WISH = 1, PRESS = 2;

// once runs one call at a time: the timer, a click and a returning tab may all
// come in the same moment. A wish waits for the running call, and does not wait
// for a poll, whose answer it makes stale: a slow edge would swallow the click.
async function once(work, rank = POLL) {
  if (doing) {
    if (rank === POLL || work === doing) return;
    if (rank === PRESS || !pending) pending = work;
    return polling?.abort();
  }
  doing = work;
  asked = Date.now();
  try {
    await work();
  } catch {
    if (!pending) failed(0); // no network, a time limit, or an answer that is none
  } finally {
    doing = null;
  }
  const next = pending;
  pending = null;
  if (next) await once(next, PRESS);
}

async function joinNow() {
  if (state === "join" || over.includes(state)) show("joining");
  const r = await call("POST", "/places", JSON.stringify(paid));
  if (!r.ok) return refused(r);
  paid = {};
  token = r.json.token;
  if (location.search) history.replaceState(null, "", location.pathname);
  apply(r.json);
}
const join = () => once(joinNow, WISH);

// pay answers an edge that asks for a proof of work: workers look for it (proof.js is
// loaded only now), and where they cannot, the page waits as long as it was told.
let paid = {};
function pay({ challenge, waitTicket, retryAfterMs }) {
  const from = Date.now(), wait = failures++ ? backoff() : 0; // asked again and again: calmly
  show("joining");
  clearTimeout(timer);
  new Promise((loaded, broken) => {
    if (window.usherProof) return loaded();
    const script = document.createElement("script");
    Object.assign(script, { src: root.dataset.proof, onload: loaded, onerror: broken });
    document.head.append(script);
  }).then(() => usherProof.solve(challenge)).then((altcha) => {
    paid = { altcha };
    later(join, wait);
  }, () => {
    paid = { waitTicket };
    later(join, Math.max(wait, from + retryAfterMs - Date.now()) + Math.random() * 1000);
  });
}

// The cookie that the place is bound to is gone: no pass of it would be taken, so
// only a new place helps.
const joinAnew = () => once(async () => {
  await call("DELETE", "/place");
  bearer = token = "";
  forget();
  await joinNow();
}, WISH);

let token = ""; // of a join by this page; a Bearer when the cookie did not come back

const sinceShown = () => (shown ? "?shown=" + (doc.shown || shown) : "");
const poll = () => once(async () => {
  const r = await call("GET", "/place" + sinceShown());
  if (r.ok) return apply(r.json);
  refused(r);
});

const pollRoom = () => once(async () => {
  const r = await call("GET", "");
  if (!r.ok) return refused(r);
  if (!bearer) wire?.postMessage({ room: r.json });
  seeRoom(r.json);
});
function seeRoom(room) {
  failures = 0;
  doc.room = room;
  const closed = room.state === "closed" || room.mode === "reject";
  if (state === "closed" && !closed) return location.reload();
  if (state === "scheduled" && room.state !== "scheduled" && !document.hidden) return later(join, 200 + Math.random() * 3000);
  flag("");
  render();
  later(pollRoom, untilOpen() * (asks() ? 1 : 2));
}

// untilOpen is when to look at the room again: at the opening, when that is near.
function untilOpen() {
  const opens = state === "scheduled" && Date.parse(joinsAt()) - (Date.now() - skew);
  return opens > 0 && opens < 15000 ? opens + 500 + Math.random() * 2000 : 15000;
}

function apply(d, heard) {
  failures = 0;
  if (!heard && !bearer) wire?.postMessage({ doc: d });
  if (d.token.slice(-8) !== mark) {
    mark = d.token.slice(-8);
    forget(); // what was on screen belongs to a place that is no more
  }
  if (bearer) bearer = d.token;
  doc = d;
  show(stateOf(d));
  render();
  flag("");
  put("fresh", t("w.fresh", { Time: clock.format(new Date()) }));
  listen();
  plan();
  if (state === "called" && !document.hidden) startAuto();
  if (bearer) keepCode();
}

// wanting: the fan is to be taken in as soon as the edge can be asked. Never in a
// hidden tab: the pass would run out, or another tab would be left behind.
function wanting() {
  if (claimed || document.hidden) return false;
  return (state === "standby" && asks()) || (state === "called" && claiming) || (state === "admitted" && owed);
}

// question is what to ask the edge when nothing else was planned.
function question() {
  if (state === "join") return join;
  if (state === "scheduled" || state === "closed") return pollRoom;
  return wanting() ? claim : poll;
}
