// The waiting page. The server has painted the state already; this script joins,
// keeps the numbers fresh, and takes the fan in when called. It never decides
// anything about the line: it shows what the edge says, and what was shown last
// when the edge cannot be asked.
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
