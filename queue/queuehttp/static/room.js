// The waiting page. The server has painted the state already; this script joins,
// keeps the numbers fresh, and takes the fan in when called. It never decides
// anything about the line: it shows what the edge says, and what was shown last
// when the edge cannot be asked.
(() => {
"use strict";

const root = document.getElementById("room");
const boot = JSON.parse(root.dataset.boot);
const lang = document.documentElement.lang;
const api = "/v1/rooms/" + encodeURIComponent(boot.room);
const $ = (id) => document.getElementById(id);
const numbers = new Intl.NumberFormat(lang);
const plurals = new Intl.PluralRules(lang);
const clock = new Intl.DateTimeFormat(lang, { hour: "numeric", minute: "2-digit" });

let doc = boot.doc;
let state = boot.state;
let first = boot.first; // position when the fan joined
let shown = state === "waiting" ? doc.position : 0; // the last one on screen
let mark = boot.mark; // end of the place's token: another place has another one
let bearer = ""; // used only where cookies are refused
let timer = 0;
let failures = 0;
let asked = 0; // when the line was asked last
let doing = null; // the call that runs; one at a time
let pending = null; // what is wanted next, while another call runs
let polling = null; // ends the running poll, when it is one
let skew = 0; // this clock minus the server's, ms
let banner = "";
let wasPaused = false;
let auto = 0; // the timer that takes the fan in
let claiming = false; // the fan wants in: a claim that got no answer is made again
let owed = false; // this page asked to come in and has not been taken in yet
let claimed = false; // a claim of this very page was granted
let spoken = { at: 0, text: "" };

// ---- words -------------------------------------------------------------

const fill = (text, vars) => text.replace(/\{\{\.(\w+)\}\}/g, (_, k) => vars[k]);
const t = (id, vars = {}) => fill(boot.m[id], vars);
const n = (id, count) => {
  const forms = boot.m[id];
  return fill(forms[plurals.select(count)] || forms.other, { Count: numbers.format(count) });
};

function span(id, low, high) {
  return low >= high ? n(id, high) : t(id + "-range", { Low: numbers.format(low), High: numbers.format(high) });
}

function waitWords(eta) {
  if (!eta) return t("w.wait.unknown");
  if (eta.highSeconds <= 60) return t("w.wait.under");
  const low = Math.max(1, Math.floor(eta.lowSeconds / 60));
  const high = Math.ceil(eta.highSeconds / 60);
  if (high <= 90) return span("w.wait.minutes", low, high);
  if (low < 60) return t("w.wait.mixed", { Low: numbers.format(low), High: numbers.format(Math.ceil(high / 60)) });
  return span("w.wait.hours", Math.floor(low / 60), Math.ceil(high / 60));
}

function leftWords(stock) {
  if (stock.soldOut) return t("w.left.sold");
  if (stock.available == null) return t("w.left.unknown");
  if (stock.available === 0) return t("w.left.none");
  if (stock.total != null && stock.total >= stock.available) {
    return t("w.left-of", { Count: numbers.format(stock.available), Total: numbers.format(stock.total) });
  }
  return n("w.left", stock.available);
}

function calledWords(ms) {
  return ms < 30000 ? t("w.called.seconds") : n("w.called.minutes", Math.max(1, Math.floor((ms + 30000) / 60000)));
}

// ---- what is on screen ---------------------------------------------------

const put = (id, text) => {
  const el = $(id);
  if (el && el.textContent !== text) el.textContent = text;
};

const lit = ["called", "standby", "admitted"];
const plain = ["expired", "revoked", "left", "moved", "known", "closed"];
const over = ["expired", "revoked", "left", "moved", "known"]; // nothing comes by itself any more
const numberless = ["gathering", "drawing", "placing"]; // in line, without a number yet

function stateOf(d) {
  const closed = d.room.state === "closed" || d.room.mode === "reject";
  if (d.moved) return "moved";
  if (d.status === "admitted") return "admitted";
  if (closed) return "closed";
  if (d.status === "called") return d.standingBy ? "standby" : "called";
  if (d.status === "waiting" && !d.position) {
    if (d.room.mode !== "draw" || d.room.recovering) return "placing";
    return d.room.state === "gathering" ? "gathering" : "drawing";
  }
  return d.revoked ? "revoked" : d.status; // waiting, expired, left
}

const windowMs = () => (doc.room.claimSeconds || 120) * 1000;
const remaining = () => Date.parse(doc.calledUntil) - (Date.now() - skew);

function show(next) {
  const before = state;
  state = next;
  root.dataset.state = next;
  for (const el of root.querySelectorAll("[data-for]")) {
    el.hidden = !el.dataset.for.split(" ").includes(next);
  }
  const ticket = $("ticket");
  ticket.classList.toggle("lit", lit.includes(next));
  ticket.classList.toggle("plain", plain.includes(next));
  ticket.classList.toggle("stage", !lit.includes(next) && !plain.includes(next));
  $("notify").hidden = !(next === "waiting" && canAsk());
  if (next !== "called") stopAuto();
  if (next !== before) changed(before);
}

function changed(before) {
  if (over.includes(state)) forget();
  if (state === "waiting" || state === "joining" || numberless.includes(state) || over.includes(state)) claimed = claiming = owed = false;
  if (["called", "standby", "expired", "left", "gathering", "drawing", "revoked"].includes(state)) say(t("w.say." + state));
  if (state === "waiting" && numberless.includes(before)) spoken.at = 0; // the number is news
  if (state === "closed" && before !== "trouble") say(t("w.say.closed"));
  if (state === "standby") owed = true;
  if (state === "called") called();
  else if (state === "standby" || (state === "admitted" && owed)) notify();
}

function render() {
  const room = doc.room;
  const title = boot.title;
  put("left", leftWords(room.inventory));
  put("line", n("w.line", Math.max(doc.waiting || 0, room.waiting)));
  if (state === "waiting") {
    shown = Math.min(doc.position, shown || doc.position);
    first = Math.max(first, shown);
    const ahead = Math.max(0, shown - 1);
    const number = numbers.format(shown);
    put("place", number);
    $("place").dataset.len = number.length;
    put("note", ahead ? n("w.ahead", ahead) : t("w.next"));
    put("from", t("w.from", { Position: numbers.format(first) }));
    put("wait", room.state === "paused" ? t("w.wait.paused") : waitWords(doc.eta));
    $("way").value = shown <= 1 ? 100 : Math.max(4, Math.floor(100 * (first - shown) / Math.max(1, first - 1)));
    document.title = t("w.title.waiting", { Position: number, Room: title });
    remember();
    const wait = room.state === "paused" ? t("w.wait.paused") : waitWords(doc.eta);
    if (Date.now() - spoken.at > 60000 && room.state !== "paused") say(t("w.say.waiting", { Position: number, Wait: wait }));
  } else if (state === "called" || state === "standby" || (state === "admitted" && owed)) {
    document.title = t("w.title.called", { Room: title });
  } else {
    document.title = t("w.title.plain", { Room: title });
  }
  const paused = room.state === "paused" && state !== "closed";
  if (paused !== wasPaused) {
    wasPaused = paused;
    say(t(paused ? "w.say.paused" : "w.say.resumed"));
  }
  $("invited").hidden = doc.line !== "invited";
  opening();
  tick();
}

// opening tells by the fan's own clock when the doors open.
function opening() {
  const format = new Intl.DateTimeFormat(lang, { dateStyle: "full", timeStyle: "short" });
  for (const line of root.querySelectorAll(".opens-line")) {
    const el = line.querySelector("time");
    const when = el.className === "joins" ? joinsAt() : doc.room.opensAt;
    const at = Date.parse(when);
    line.hidden = !at;
    if (!at) continue;
    el.dateTime = when;
    const text = format.format(at);
    if (el.textContent !== text) el.textContent = text;
  }
}
// When places can be had: in a draw from its gathering on.
const joinsAt = () => (doc.room.draw && doc.room.gathersAt) || doc.room.opensAt;

// flag shows one banner, "" for the one the line's own state asks for.
function flag(key) {
  if (!key && state !== "closed" && state !== "trouble") {
    const inLine = state === "waiting" || state === "called" || state === "standby";
    if (doc.room.state === "paused") key = "paused";
    else if (doc.room.recovering && (inLine || state === "placing")) key = "recovering";
    else if (doc.room.stale && inLine) key = "stale";
    else if (state === "waiting" && doc.room.inventory.soldOut) key = "sold";
    else if (bearer && inLine) key = "cookies";
  }
  if (key === banner) return;
  banner = key;
  for (const el of root.querySelectorAll("[data-banner]")) el.hidden = el.dataset.banner !== key;
}

// say speaks to screen readers, politely and seldom.
function say(text) {
  if (text === spoken.text) return;
  spoken = { at: Date.now(), text };
  put("say", text);
}

// The screen's memory is the cookie the server reads for its first paint; the
// place itself is in another one, which no script can read.
function remember() {
  keep(mark + "." + first + "." + shown + (doc.shown ? "." + doc.shown : ""), 86400);
}
function forget() {
  first = shown = 0;
  keep("", 0);
}
function keep(value, seconds) {
  try {
    document.cookie = "usher_shown_" + boot.room + "=" + value + ";path=/rooms;samesite=lax;max-age=" + seconds +
      (location.protocol === "https:" ? ";secure" : "");
  } catch { /* refused: then only this tab remembers */ }
}

// ---- asking the edge ------------------------------------------------------

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

const poll = () => once(async () => {
  const r = await call("GET", "/place" + (shown ? "?shown=" + (doc.shown || shown) : ""));
  if (r.ok) return apply(r.json);
  refused(r);
});

const pollRoom = () => once(async () => {
  const r = await call("GET", "");
  if (!r.ok) return refused(r);
  failures = 0;
  doc.room = r.json;
  const closed = r.json.state === "closed" || r.json.mode === "reject";
  if (state === "closed" && !closed) return location.reload();
  if (state === "scheduled" && r.json.state !== "scheduled" && !document.hidden) return later(join, 200 + Math.random() * 3000);
  flag("");
  render();
  later(pollRoom, untilOpen());
});

// untilOpen is when to look at the room again: at the opening, when that is near.
function untilOpen() {
  const opens = state === "scheduled" && Date.parse(joinsAt()) - (Date.now() - skew);
  return opens > 0 && opens < 15000 ? opens + 500 + Math.random() * 2000 : 15000;
}

function apply(d) {
  failures = 0;
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
  plan();
  if (state === "called" && !document.hidden) startAuto();
}

// wanting: the fan is to be taken in as soon as the edge can be asked. Never in a
// hidden tab: the pass would run out, or another tab would be left behind.
function wanting() {
  if (claimed || document.hidden) return false;
  return state === "standby" || (state === "called" && claiming) || (state === "admitted" && owed);
}

// question is what to ask the edge when nothing else was planned.
function question() {
  if (state === "join") return join;
  if (state === "scheduled" || state === "closed") return pollRoom;
  return wanting() ? claim : poll;
}

function refused(r) {
  switch (r.slug) {
    case "place-token-missing":
    case "place-token-invalid":
    case "place-from-earlier-run":
      if (state === "left" || state === "moved" || state === "known" || state === "join") return;
      if (!bearer && token) bearer = token; // cookies are refused: the token was ours a moment ago
      else {
        bearer = token = "";
        forget();
        return again(join);
      }
      return again(poll);
    case "stand-by":
      failures = 0;
      doc.standingBy = true;
      show("standby");
      render();
      flag("");
      if (document.hidden) return plan();
      return later(claim, Math.max(500, r.after || 1000) * (1 + Math.random() / 4));
    case "room-not-open-yet":
      failures = 0;
      doc.room.state = "scheduled";
      doc.room.opensAt = r.json.opensAt || doc.room.opensAt;
      doc.room.gathersAt = r.json.gathersAt || doc.room.gathersAt;
      show("scheduled");
      render();
      flag("");
      return later(pollRoom, joinsAt() ? untilOpen() : 500); // the room says when
    case "proof-required":
    case "proof-invalid":
      paid = {};
      return pay(r.json);
    case "customer-token-required":
    case "customer-token-invalid":
      clearTimeout(timer);
      show("known");
      return flag("");
    case "return-not-allowed": // the list changed since the visit began
      boot.back = "";
      return again(claim);
    case "binding-lost":
      stopAuto();
      return again(joinAnew);
    case "not-called-yet":
    case "place-expired":
      return again(poll);
    case "room-paused":
      doc.room.state = "paused";
      stopAuto();
      render();
      flag("");
      return later(poll, 5000);
    case "room-recovering": // the place is kept, and so is the wish to come in
      doc.room.recovering = true;
      flag("");
      return later(poll, Math.max(2000, r.after) * (1 + Math.random()));
    case "revoked":
      stopAuto();
      clearTimeout(timer);
      show("revoked");
      render();
      return flag("");
    case "room-closed":
      doc.room.state = "closed";
      show("closed");
      render();
      flag("");
      return later(pollRoom, 30000);
    case "unknown-room":
      return location.reload();
  }
  if (r.status === 404 || r.status === 410) return again(poll);
  failed(r.after, r.status === 429 ? "busy" : "trouble");
}

// again asks at once the first time and like after a failure when that repeats.
function again(what) {
  failures++;
  later(what, failures > 1 ? backoff() : 50);
}

const backoff = () => Math.random() * Math.min(60000, 1000 * 2 ** Math.min(failures, 6));

// failed keeps the last number and tries again, spread out: after an outage
// everybody's page would otherwise come back in the same second.
function failed(after, key) {
  failures++;
  if (state === "joining") show("join");
  if (failures > 1 || !navigator.onLine || key === "busy") flag(navigator.onLine ? key || "trouble" : "offline");
  // Whoever was called has only the claim window: their waits stay short.
  later(question(), Math.max(after, 500) + (wanting() ? Math.min(backoff(), windowMs() / 8) : backoff()));
}

// ---- when to ask -----------------------------------------------------------

function later(what, ms) {
  clearTimeout(timer);
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
  later(poll, Math.min(wait, 2 ** 31 - 1));
}

function woke() {
  if (document.hidden) return stopAuto(), plan();
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

// ---- coming in --------------------------------------------------------------

function called() {
  notify();
  if (!document.hidden) startAuto();
}

// startAuto takes a fan who is looking at the page in after a few seconds; the
// button does it at once. A hidden tab waits until somebody looks. A claim without
// an answer is made again by failed, one that came too early by the next poll.
function startAuto() {
  if (auto || claimed || doc.room.state === "paused") return;
  $("auto").hidden = false;
  auto = setTimeout(() => {
    auto = 0;
    if (state === "called" && !document.hidden) claim();
  }, 5000);
}
function stopAuto() {
  clearTimeout(auto);
  auto = 0;
  $("auto").hidden = true;
}

async function claimNow() {
  claiming = owed = true;
  const r = await call("POST", "/pass", boot.back ? JSON.stringify({ return: boot.back }) : undefined);
  claiming = r.status >= 500 || r.status === 429;
  if (!r.ok) return refused(r);
  claimed = true;
  owed = false;
  failures = 0;
  if (!pending) enter(r.json); // else the fan pressed "leave" meanwhile
}
const claim = () => once(claimNow, WISH);

// enter posts the pass to the box office: a form, so that no secret is ever part
// of an address.
function enter(pass) {
  clearTimeout(timer);
  const to = new URL(pass.redirectUrl);
  if (pass.handover === "cookie") {
    later(poll, 15000);
    return location.assign(to.href); // the page there asks for the pass itself
  }
  if (!pass.handover) to.search = "";
  else pass.room = boot.room;
  const form = document.createElement("form");
  form.method = "post";
  form.action = to.href;
  for (const name of ["pass", "binding", "room"]) {
    if (!pass[name]) continue;
    const field = document.createElement("input");
    field.type = "hidden";
    field.name = name;
    field.value = pass[name];
    form.append(field);
  }
  form.hidden = true;
  document.body.append(form);
  form.submit();
  later(poll, 15000); // still here: the box office did not answer
}

// tick moves the bar and, once a minute, the words beside it.
function tick() {
  if (state !== "called" || !doc.calledUntil) return;
  const left = remaining();
  put("called", calledWords(left));
  $("clock").value = Math.max(0, Math.min(100, 100 * left / windowMs()));
  if (left < -1000 && Date.now() - asked > 5000) later(poll, 0);
}
setInterval(tick, 1000);

// ---- notice ------------------------------------------------------------------

const canAsk = () => "Notification" in window && isSecureContext && Notification.permission === "default";

$("notify").addEventListener("click", async () => {
  try {
    $("notified").hidden = (await Notification.requestPermission()) !== "granted";
  } catch { /* an old browser */ }
  $("notify").hidden = !canAsk();
});

function notify() {
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  try {
    const note = new Notification(t("w.notify.title"), { body: t("w.notify.body", { Room: boot.title }), tag: "usher-" + boot.room });
    note.onclick = () => { focus(); note.close(); };
  } catch { /* some phones allow it only to service workers */ }
}

// ---- forms become calls --------------------------------------------------------

function instead(selector, act) {
  for (const form of root.querySelectorAll(selector)) {
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      act();
    });
  }
}
async function leaveNow() {
  const r = await call("DELETE", "/place");
  if (!r.ok && r.status >= 500) return refused(r);
  clearTimeout(timer);
  bearer = token = "";
  history.replaceState(null, "", location.pathname + "?left=1");
  document.querySelector(".leave").open = false;
  show("left");
  render();
  flag("");
  $("main").focus();
}
instead("#enter, .js-enter", () => once(claimNow, PRESS));
instead(".js-join", () => once(joinNow, PRESS));
instead("#leave", () => once(leaveNow, PRESS));

// ---- begin -----------------------------------------------------------------------

skew = Date.now() - Date.parse(boot.now);
if (Math.abs(skew) < 5000) skew = 0; // loading took a moment; the clock is right
wasPaused = doc.room.state === "paused";
banner = (root.querySelector("[data-banner]:not([hidden])") || { dataset: {} }).dataset.banner || "";
owed = state === "standby";
opening();

if (state === "join") join();
else if (state === "scheduled" || state === "closed") later(pollRoom, untilOpen());
else if (state === "trouble") later(() => location.reload(), 5000 + Math.random() * 5000);
else if (!over.includes(state)) {
  render();
  $("notify").hidden = !(state === "waiting" && canAsk());
  if (state === "called") called();
  plan();
}
})();
