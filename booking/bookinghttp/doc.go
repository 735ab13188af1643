// Package bookinghttp is the booking API over HTTP and the demo booking page.
//
// Decisions. Every domain error has one row in a table (problems, paymentProblems)
// with a stable problem type; what no row knows is an opaque 500. "busy" and
// "unavailable" are 503 with a Retry-After that differs from client to client, and
// never the answer for a seat that is gone.
//
// A caller is known by a Bearer token or, in a browser, by the session cookie; the
// token wins. An unsafe call that shows only the cookie must say that our own page
// made it (Sec-Fetch-Site or Origin). Pages of other origins are let in by a list
// per room, with Bearer tokens only: credentials are never allowed across origins,
// so being on the list gives nobody a fan's cookie.
//
// The seat map is public, cacheable for a second, and revalidated by an ETag of
// its content; a compressed body has an ETag of its own.
package bookinghttp
