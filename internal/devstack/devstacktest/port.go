package devstacktest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

var (
	firstPort = rand.IntN(portCount)
	nextPort  atomic.Int32
)

const lowestPort, portCount = 12_000, 16_000

// FreeAddr is a loopback address nobody listens on at the moment. It lies below the
// ports that systems give to connections and to listeners on :0: one of those would
// take it before the process that is meant to listen there, or while that restarts.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", lowestPort+(firstPort+int(nextPort.Add(1)))%portCount)
		ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
		if err != nil {
			continue
		}
		_ = ln.Close()
		return addr
	}
	t.Fatal("no port is free")
	return ""
}
