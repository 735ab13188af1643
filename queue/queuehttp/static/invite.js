"use strict";
// An invite's link carries its token behind the #, which is sent to no server. It
// leaves the address, for whoever copies that must not hand the invite on by it, and
// goes in the form's body.
const token = /^#invite=([\w-]+)$/.exec(location.hash);
if (token) {
  history.replaceState(null, "", location.pathname);
  document.getElementById("invite").value = token[1];
  document.getElementById("invite-form").requestSubmit();
}
