package limits

import (
	"net/netip"
)

// Names of buckets, as in metrics and refusals.
const (
	Fan     = "fan"
	Address = "address"
	Block   = "block"
	Room    = "room"
	Waiter  = "waiter"
)

// limitKey is the one place that names a bucket's key; the room's hash tag keeps
// it in the slot of the scripts that charge it.
func limitKey(room, bucket, who string) string {
	k := "usher:{" + room + "}:limit:" + bucket
	if who != "" {
		k += ":" + who
	}
	return k
}

// markKey is the key that says a proof or a wait ticket was accepted.
func markKey(room, mark string) string { return "usher:{" + room + "}:proof:" + mark }

// Blocks are the two networks an address counts for: IPv4 /32 and /24, IPv6 /64
// and /48. Both are "" for what is no address, which then has no such bucket.
func Blocks(addr string) (address, block string) {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return "", ""
	}
	a = a.Unmap().WithZone("")
	near, far := 64, 48
	if a.Is4() {
		near, far = 32, 24
	}
	return prefix(a, near), prefix(a, far)
}

func prefix(a netip.Addr, bits int) string {
	p, err := a.Prefix(bits)
	if err != nil {
		return ""
	}
	return p.String()
}
