"use strict";
// A code's link carries it behind the #, which is sent to no server. It leaves the
// address, for whoever copies that must not hand the place on by it, and waits in the
// form until the fan sends it.
const code = /^#([0-9A-Za-z]{5}-?[0-9A-Za-z]{5})$/.exec(location.hash);
if (code) {
  history.replaceState(null, "", location.pathname);
  document.getElementById("moveCode").value = code[1];
  document.getElementById("move-do").focus();
}
