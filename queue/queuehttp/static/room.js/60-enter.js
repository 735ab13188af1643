// Coming in.

function called() {
  notify();
  if (!document.hidden) startAuto();
}

// startAuto takes a fan who is looking at the page in after a few seconds; the
// button does it at once. A hidden tab waits until somebody looks. A claim without
// an answer is made again by failed, one that came too early by the next poll.
function startAuto() {
  if (auto || claimed || !asks() || doc.room.state === "paused") return;
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
