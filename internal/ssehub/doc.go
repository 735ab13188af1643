// Package ssehub writes to many event streams (text/event-stream) from one place.
//
// A stream costs a descriptor and some hundred bytes: no goroutine, no buffer and no
// connection object. The HTTP server hands its connection over (it is hijacked) and the
// hub keeps a duplicate of its descriptor only, which it writes to without ever
// blocking. What a client does not take at once is kept, one event at most; a client
// that takes nothing for Stall is dropped, and the others never notice.
//
// It knows no HTTP and no domain: the caller writes the response's header as the first
// bytes, makes the events, and decides what to do for a stream that is busy (send the
// newer state later, or drop it). So a line's places and a seat map can share it.
//
// Streams are bounded by Max and by half the descriptors this process may have, so that
// they leave room for requests. When descriptors run out all the same, the streams there
// are go on, and new ones are refused (ErrFull). An exit (Drain) tells each stream to come
// back after a random delay: those that return by the retry of the event stream format
// (WHATWG HTML, 9.2) then come spread over some seconds, not all in one.
package ssehub
