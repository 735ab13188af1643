// Pushed. Near the head the edge tells what changes; asking goes on, seldom, in case the
// stream dies without a word.

let stream = null;
let live = false; // it runs
let noStream = 0; // none before this time

function listen() {
  if (stream || !doc.stream || !leads || bearer || document.hidden || !inLine() || Date.now() < noStream) return;
  if (!("EventSource" in window)) return;
  stream = new EventSource(api + "/place/stream" + sinceShown());
  stream.addEventListener("place", (e) => {
    live = true;
    asked = Date.now();
    apply(JSON.parse(e.data));
  });
  stream.onerror = () => { // it comes back by itself, unless the edge said no
    live = false;
    if (stream.readyState === EventSource.CLOSED) {
      noStream = Date.now() + 30000 * (1 + Math.random());
      hangUp();
    }
    if (inLine()) plan();
  };
}

function hangUp() {
  stream?.close();
  stream = null;
  live = false;
}
