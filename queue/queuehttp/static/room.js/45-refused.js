// What the edge refuses, and what to do then.

function refused(r) {
  switch (r.slug) {
    case "place-token-missing":
    case "place-token-invalid":
    case "place-from-earlier-run":
      if (state === "left" || state === "moved" || state === "known" || state === "join") return;
      if (!bearer && token) bearer = token; // cookies are refused: the token was ours a moment ago
      else {
        bearer = token = "";
        forget();
        return again(join);
      }
      return again(poll);
    case "stand-by":
      failures = 0;
      doc.standingBy = true;
      show("standby");
      render();
      flag("");
      if (document.hidden) return plan();
      return later(claim, Math.max(500, r.after || 1000) * (1 + Math.random() / 4));
    case "room-not-open-yet":
      failures = 0;
      doc.room.state = "scheduled";
      doc.room.opensAt = r.json.opensAt || doc.room.opensAt;
      doc.room.gathersAt = r.json.gathersAt || doc.room.gathersAt;
      show("scheduled");
      render();
      flag("");
      return later(pollRoom, joinsAt() ? untilOpen() : 500); // the room says when
    case "proof-required":
    case "proof-invalid":
      paid = {};
      return pay(r.json);
    case "customer-token-required":
    case "customer-token-invalid":
      clearTimeout(timer);
      show("known");
      return flag("");
    case "return-not-allowed": // the list changed since the visit began
      boot.back = "";
      return again(claim);
    case "binding-lost":
      stopAuto();
      return again(joinAnew);
    case "not-called-yet":
    case "place-expired":
      return again(poll);
    case "room-paused":
      doc.room.state = "paused";
      stopAuto();
      render();
      flag("");
      return later(poll, 5000);
    case "room-recovering": // the place is kept, and so is the wish to come in
      doc.room.recovering = true;
      flag("");
      return later(poll, Math.max(2000, r.after) * (1 + Math.random()));
    case "revoked":
      stopAuto();
      clearTimeout(timer);
      show("revoked");
      render();
      return flag("");
    case "room-closed":
      doc.room.state = "closed";
      show("closed");
      render();
      flag("");
      return later(pollRoom, 30000);
    case "unknown-room":
      return location.reload();
  }
  if (r.status === 404 || r.status === 410) return again(poll);
  failed(r.after, r.status === 429 ? "busy" : "trouble");
}

// again asks at once the first time and like after a failure when that repeats.
function again(what) {
  failures++;
  later(what, failures > 1 ? backoff() : 50);
}

const backoff = () => Math.random() * Math.min(60000, 1000 * 2 ** Math.min(failures, 6));

// failed keeps the last number and tries again, spread out: after an outage
// everybody's page would otherwise come back in the same second.
function failed(after, key) {
  failures++;
  if (state === "joining") show("join");
  if (failures > 1 || !navigator.onLine || key === "busy") flag(navigator.onLine ? key || "trouble" : "offline");
  // Whoever was called has only the claim window: their waits stay short.
  later(question(), Math.max(after, 500) + (wanting() ? Math.min(backoff(), windowMs() / 8) : backoff()));
}
