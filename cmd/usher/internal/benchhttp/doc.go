// Package benchhttp measures the edge as it is served: real processes, real sockets. It
// holds only tests, which `make bench` runs; what they print is a table, and they fail
// when a bound is broken. Figures of one row come from one run, in turns, so that what
// the machine does besides falls on both sides; costs are counted in the server's
// processor time, so that a client on the same machine is not counted.
package benchhttp
