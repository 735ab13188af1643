// Package app puts the roles together: it opens the stores, builds what a role
// needs, serves HTTP, runs the loops, and takes all of it down again.
//
// A process is New → Start → Stop. A role is a row of a table (roles.go) that
// names its parts; all-in-one is one more row. A part is built only after every
// listener of the process is open, so that a port that is taken is said in the
// first second, and so that the addresses that ":0" became are known when
// links are made.
//
// # The order of an exit
//
// Not ready first: /readyz answers 503 while everything still works, for a
// moment that lets a load balancer look. Then the public listeners drain: every
// answer says "Connection: close" and no request that was accepted is lost. The
// loops stop next, the senders (bridge, callbacks) before the receivers, for a
// hold that is being taken needs its lane. Then the admin listener, and the
// stores last. Everything is bounded by shutdown.timeout; the errors are joined.
//
// # Ready
//
// /readyz says whether this process means to serve. It asks no store: a Redis
// that stalls must not take the box office, which does not need it, out of the
// balancer with everything else. One exception, at a start only: a box office whose
// keys do not take the passes of the edges alive (passcheck.go) is not ready until they
// do, as each fan it got would be refused. Once it agreed it stays ready, and a later
// mismatch is an error in the log: those who are inside need no pass.
//
// # The bridge
//
// The line and the box office never import each other. bridge.go is where their
// types meet: each second it reads what Postgres knows and writes it into
// Redis, a room at a time; before that it opens the rooms whose hour has come, so
// that nobody need be awake for it. It runs in every booking process, for the scripts
// that receive it are safe from any number of writers. When Redis is away the
// bridge complains once and tries again; booking serves on.
package app
