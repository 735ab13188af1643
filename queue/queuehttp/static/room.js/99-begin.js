// Begin.

skew = Date.now() - Date.parse(boot.now);
if (Math.abs(skew) < 5000) skew = 0; // loading took a moment; the clock is right
wasPaused = doc.room.state === "paused";
banner = (root.querySelector("[data-banner]:not([hidden])") || { dataset: {} }).dataset.banner || "";
owed = state === "standby";
opening();
if (document.hidden) follow();
else lead();

if (state === "join") join();
else if (state === "scheduled" || state === "closed") later(pollRoom, untilOpen());
else if (state === "trouble") later(() => location.reload(), 5000 + Math.random() * 5000);
else if (!over.includes(state)) {
  render();
  $("notify").hidden = !(state === "waiting" && canAsk());
  if (state === "called") called();
  listen();
  plan();
}
