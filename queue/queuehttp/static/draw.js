// Checks a draw in the browser, from nothing but what is published: the seed against
// the commitment, the list against its digest, and the number of one place. The server
// is believed in nothing that can be recomputed.
"use strict";

const root = document.getElementById("draw");
const boot = JSON.parse(root.dataset.boot);
const $ = (id) => document.getElementById(id);
const numbers = new Intl.NumberFormat(boot.lang);
const utf8 = new TextEncoder();

const t = (id, values = {}) => boot.words[id].replace(/{{\.(\w+)}}/g, (_, name) => values[name] ?? "");

const hex = (bytes) => Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const key = (bytes) => crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
const sign = (k, bytes) => crypto.subtle.sign("HMAC", k, bytes);

function tell(kind, words) {
  const li = document.createElement("li");
  li.className = kind;
  li.textContent = words;
  $("results").append(li);
}

function way(share) {
  $("way").hidden = share >= 1;
  $("way").value = Math.round(share * 100);
}

// The list comes in parts; each says where the next one begins.
async function list() {
  const parts = [];
  for (let from = "0"; from !== null; ) {
    const res = await fetch(`${boot.entriesUrl}?from=${from}`);
    if (res.status === 429) { // many check from this address: the rest in a moment
      await new Promise((go) => setTimeout(go, 1000 * (Number(res.headers.get("Retry-After")) || 5)));
      continue;
    }
    if (!res.ok) throw new Error(t("v.unreachable"));
    const next = res.headers.get("Usher-Next");
    if (next !== null && Number(next) <= Number(from)) throw new Error(t("v.entries.bad"));
    parts.push(await res.text());
    from = next;
    way(0.3 * Math.min(1, Number(next ?? boot.entries) / Math.max(1, boot.entries)));
  }
  return parts.join("");
}

// The order is by the first 50 bits of the HMAC, then by the place itself. 50 bits fit
// into a double exactly.
async function score(k, id) {
  const v = new DataView(await sign(k, unhex(id)));
  return v.getUint32(0) * 2 ** 18 + (v.getUint32(4) >>> 14);
}

async function orderKey() {
  const digest = unhex(boot.entriesDigest);
  const text = utf8.encode(boot.publicValue);
  const mixed = new Uint8Array(digest.length + text.length);
  mixed.set(digest);
  mixed.set(text, digest.length);
  return new Uint8Array(await sign(await key(unhex(boot.seed)), mixed));
}

async function rank(ids, place) {
  const k = await key(unhex(boot.orderKey));
  const mine = await score(k, place);
  let before = 0;
  const batch = 2000;
  for (let i = 0; i < ids.length; i += batch) {
    const part = ids.slice(i, i + batch);
    const scores = await Promise.all(part.map((id) => score(k, id)));
    for (let j = 0; j < part.length; j++) {
      if (scores[j] < mine || (scores[j] === mine && part[j] < place)) before++;
    }
    way(0.3 + (0.7 * (i + part.length)) / ids.length);
  }
  return before + 1;
}

async function check(place) {
  const lines = ["usher-draw-1", boot.room, boot.run, boot.seed, ""].join("\n");
  if (boot.algorithm !== "usher-draw-1" || hex(await sha256(utf8.encode(lines))) !== boot.commitment) {
    return tell("bad", t("v.commitment.bad"));
  }
  tell("ok", t("v.commitment.ok"));
  const text = await list();
  const ids = text.split("\n").slice(0, -1);
  if (ids.length !== boot.entries || hex(await sha256(utf8.encode(text))) !== boot.entriesDigest) {
    return tell("bad", t("v.entries.bad"));
  }
  tell("ok", t("v.entries.ok", { Count: numbers.format(ids.length) }));
  if (hex(await orderKey()) !== boot.orderKey) return tell("bad", t("v.key.bad"));
  tell("ok", t("v.key.ok"));
  if (place === "") return;
  if (!ids.includes(place)) return tell("note", t("v.place.none"));
  const at = await rank(ids, place);
  root.dataset.rank = at;
  tell("ok", t("v.place.rank", { Rank: numbers.format(at), Count: numbers.format(ids.length) }));
}

let busy = false;

async function submit(event) {
  event.preventDefault();
  if (busy) return;
  busy = true;
  $("results").replaceChildren();
  delete root.dataset.checked;
  way(0);
  try {
    await check($("place").value.trim().toLowerCase());
  } catch (err) {
    tell("bad", err instanceof TypeError ? t("v.unreachable") : err.message);
  }
  way(1);
  busy = false;
  root.dataset.checked = $("results").querySelector(".bad") ? "bad" : "ok";
}

// A fan of this browser finds their place filled in.
async function own() {
  try {
    const res = await fetch(`/v1/rooms/${boot.room}/place`);
    if (res.ok && $("place").value === "") $("place").value = (await res.json()).placeId;
  } catch {
    // Whoever has no place types one.
  }
}

if ($("check")) {
  $("check").hidden = false;
  if (globalThis.crypto?.subtle) {
    $("form").addEventListener("submit", submit);
    own();
  } else {
    $("form").hidden = true;
    tell("note", t("v.insecure")); // WebCrypto is there on https and on this machine only
  }
}
