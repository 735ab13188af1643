// Forms become calls.

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
  if (!bearer) wire?.postMessage({ left: true });
  gone();
  $("main").focus();
}
function gone() {
  clearTimeout(timer);
  bearer = token = "";
  history.replaceState(null, "", location.pathname + "?left=1");
  $("leaving").open = false;
  show("left");
  render();
  flag("");
}
instead("#enter, .js-enter", () => once(claimNow, PRESS));
instead(".js-join", () => once(joinNow, PRESS));
instead("#leave", () => once(leaveNow, PRESS));
instead("#device-form", () => once(showCode, PRESS));
