// Puts this page behind a waiting room of Usher:
//
//   <script src="https://queue.example.com/usher.js" data-room="cinema"></script>
//
// in its head, before anything else. The page stays hidden until the edge says that this
// browser has been let in; whoever has not been goes to the waiting room and comes back
// by itself. Then the event "usher:admitted" is fired on the document, and
//
//   await usher.admitted          resolves with {room}
//   await usher.pass()            {pass, expiresAt, binding, …}, for your server to verify
//
// The page's origin must be on the room's list of return addresses, and of the edge's
// site (www.example.com and queue.example.com are). A script only hides a page: what
// must not be had without a turn, your server gives out against a pass.
//
// data-fail="open" shows the page when the edge cannot be asked; without it the fan is
// sent to the waiting room, which tells what is the matter.
(() => {
"use strict";
const tag = document.currentScript;
const room = tag.dataset.room;
const edge = new URL(".", tag.src).href.slice(0, -1);
const api = edge + "/v1/rooms/" + encodeURIComponent(room);
const root = document.documentElement;
const memory = "usher-sent-" + room;
let open;
const admitted = new Promise((resolve) => { open = resolve; });

root.style.visibility = "hidden";

// The characters that an address may have and the edge does not take.
const here = () => location.href.replace(/[\\^`{|}]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());
const waiting = () => edge + "/rooms/" + encodeURIComponent(room) + "?return=" + encodeURIComponent(here());

function inside() {
  try { sessionStorage.removeItem(memory); } catch { /* refused: then there is nothing to forget */ }
  root.style.visibility = "";
  open({ room });
  document.dispatchEvent(new CustomEvent("usher:admitted", { detail: { room } }));
}

// wait sends the fan to the waiting room, but not round and round: a browser that has
// been there and still shows no place to this page is one that keeps cookies from it.
function wait() {
  let sent = [];
  try {
    sent = JSON.parse(sessionStorage.getItem(memory) || "[]").filter((at) => Date.now() - at < 60000);
    sessionStorage.setItem(memory, JSON.stringify([...sent, Date.now()]));
  } catch { /* refused */ }
  if (sent.length < 4) return location.replace(waiting());
  const link = document.createElement("a");
  link.href = waiting();
  link.textContent = link.href;
  const show = () => {
    document.body.replaceChildren(link);
    root.style.visibility = "";
  };
  if (document.body) show();
  else addEventListener("DOMContentLoaded", show);
}

async function ask(tries) {
  try {
    const answer = await fetch(api + "/place", { credentials: "include", cache: "no-store" });
    if (answer.ok) return (await answer.json()).status === "admitted" ? inside() : wait();
    if (answer.status < 500 && answer.status !== 429) return wait();
  } catch { /* no network, or this origin is not listed */ }
  if (tries < 3) return setTimeout(ask, 300 * 2 ** tries * (1 + Math.random()), tries + 1);
  if (tag.dataset.fail === "open") return inside();
  wait();
}

window.usher = {
  room, edge, admitted,
  async pass() {
    const answer = await fetch(api + "/pass", { method: "POST", credentials: "include", cache: "no-store" });
    const doc = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(doc.title), { problem: doc });
    return doc;
  },
};

ask(0);
})();
