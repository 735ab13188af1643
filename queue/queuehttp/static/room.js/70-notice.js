// Notice.

const canAsk = () => "Notification" in window && isSecureContext && Notification.permission === "default";

$("notify").addEventListener("click", async () => {
  try {
    $("notified").hidden = (await Notification.requestPermission()) !== "granted";
  } catch { /* an old browser */ }
  $("notify").hidden = !canAsk();
});

function notify() {
  if (!document.hidden || !asks() || !("Notification" in window) || Notification.permission !== "granted") return;
  try {
    const note = new Notification(t("w.notify.title"), { body: t("w.notify.body", { Room: boot.title }), tag: "usher-" + boot.room });
    note.onclick = () => { focus(); note.close(); };
  } catch { /* some phones allow it only to service workers */ }
}
