// Another device. A code takes the place there; where cookies are refused it is also how
// this very browser finds its place again.

let codeTimer = 0;
let kept = false;

async function showCode() {
  const r = await call("POST", "/place/move", JSON.stringify({ keep: bearer !== "" }));
  if (!r.ok) {
    if (r.status === 429) flag("busy");
    return later(poll, Math.max(r.after, 1000));
  }
  const { code, url, qrSvg, expiresAt } = r.json;
  put("code", code);
  $("code-qr").src = "data:image/svg+xml," + encodeURIComponent(qrSvg);
  $("code-url").href = url;
  put("code-url", url);
  put("code-until", bearer ? "" : t("w.code.until", { Time: clock.format(new Date(expiresAt)) }));
  coded(true);
  clearTimeout(codeTimer);
  codeTimer = setTimeout(() => coded(false), Math.min(Date.parse(expiresAt) - (Date.now() - skew), 2 ** 31 - 1));
}
function coded(on) {
  $("device-code").hidden = !on;
  $("device-form").hidden = on;
}

// keepCode shows, once, the code of a place that lives in this page alone.
function keepCode() {
  if (kept || !inLine()) return;
  kept = true;
  $("device-kept").hidden = false;
  $("device-text").hidden = true;
  $("device").open = true;
  setTimeout(() => once(showCode, WISH), 0);
}
