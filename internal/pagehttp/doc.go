// Package pagehttp is what Usher's HTML pages share: the look (usher.css), the
// base template, the three languages, security headers, static files and the
// way numbers, money and dates are written.
//
// A page package embeds a tree of
//
//	templates/*.html        one page each; it defines "main", may define "title" and "head"
//	templates/_*.html       fragments every page of the package may use
//	static/*                scripts, styles and pictures
//	messages.{en,pt-BR,es}.yaml
//
// and gives it to New. Templates call {{t "id" "Key" value}}, {{n "id" count}},
// {{num}}, {{money}}, {{date}}, {{clock}}, {{asset "room.js"}} and {{lang}}; each
// is already bound to the language of the request, so data carry values and
// templates carry the wording.
//
// Decisions. One parsed template set a language and page, made at start: a
// missing message, a missing plural or a missing file stops the program there
// and not a fan later. Content hashes in the addresses of static files allow
// caching for ever; an address with an old hash still answers with today's file
// (not cached), because during a rollout the page of one process asks another
// one for its style sheet. The policy allows no inline script and no inline
// style, so a message that slips through unescaped still runs nothing. Pages are
// never stored by a cache: they show one fan's place or tickets.
package pagehttp
