// What is on screen.

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
  if (over.includes(state)) forget(), hangUp();
  if (!inLine()) coded(false);
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
  $("priority").hidden = doc.line !== "priority";
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
    const counts = state === "waiting" || state === "called" || state === "standby";
    if (doc.room.state === "paused") key = "paused";
    else if (doc.room.recovering && (counts || state === "placing")) key = "recovering";
    else if (doc.room.stale && counts) key = "stale";
    else if (state === "waiting" && doc.room.inventory.soldOut) key = "sold";
    else if (bearer && counts) key = "cookies";
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
