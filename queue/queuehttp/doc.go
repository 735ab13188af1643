// Package queuehttp is the edge's HTTP: the JSON API of the line, the public keys
// of the passes, and the waiting page.
//
// Decisions. The verbs (join, view, claim, leave) are methods that take a request
// and answer a document or an error; the JSON routes and the page's forms call the
// same ones, so that a fan without script meets the same line. Who the fan is:
//
//   - the place token: Authorization: Bearer, else the cookie usher_place_{room}.
//     A broken Bearer is refused, because its sender is a program that should
//     learn of it; a broken cookie counts as none, because a browser cannot help it.
//   - at the join: the cookie usher_fan that the place token was given to, else the
//     Idempotency-Key (without such a cookie), else the place token (a program that
//     missed its call and has nothing else, or a browser whose usher_fan is another
//     one by now), else the cookie usher_fan, else a fresh random id, which is set as
//     usher_fan. Several cookies of one name may come; the one that fits counts.
//
// A join that presents usher_fan is bound: its passes name a secret (cnf.bh) that
// is told only together with that cookie; a pass is refused (binding-lost) before a
// slot is taken when it could not be. A join by key gets no usher_fan cookie:
// with it, the next join of the same program would be somebody else.
//
// What changes something is refused to other sites' pages, in the JSON API as in the
// forms: SameSite keeps our cookies out of such a request, but does not keep its answer
// from setting new ones.
//
// New places may cost a proof of work or a wait (tolls.go). The edge only checks what
// was paid; the join decides whether anything was due, in its one round trip. A bad
// proof makes a toll that cannot be paid, so that even then a fan's own place is found.
// The refusal carries a fresh challenge and a ticket, both for this fan. A page without
// script waits with the ticket in a cookie and its form.
//
// A customer token (customers.go) goes before all of that. Another site's form may bring
// one, and nothing else may come from another site: our cookies stay away from such a
// form (SameSite), so the token waits in a cookie for our own page, whose join follows,
// and a place that this browser has is never exchanged for what a form brought. The
// token of a known customer's place stays theirs when they join again.
//
// A code that moves a place is given to the browser that could claim the place: a stolen
// token of a bound place is worth neither. The code's link has it behind the #, and the
// page there waits for a press, as what only looks at links must not use it up. A page
// without cookies and script carries the place's kept code in its forms.
//
// A visit's return address (returns.go, package returnto) is kept in a cookie and held
// against the room's list at each use. The origins on that list are the only foreign ones
// that may call the JSON API, with the browser's cookies; the forms stay ours. usher.js
// (snippet/) is built on that: it shows a page once this browser's place is admitted.
//
// A poll is answered from memory and leaves no line in the access log (Quiet).
package queuehttp
