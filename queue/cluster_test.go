package queue

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/internal/devstack/devstacktest"
)

// clusterNode is one server of a cluster.
type clusterNode struct {
	addr string
	bus  string // port
	cmd  *exec.Cmd
	rdb  *redis.Client
}

func (n *clusterNode) kill() { _ = n.cmd.Process.Kill(); _ = n.cmd.Wait() }

// newCluster starts three masters with a replica each.
func newCluster(t *testing.T) (nodes []*clusterNode, rdb *redis.ClusterClient) {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		if bin, err = exec.LookPath("valkey-server"); err != nil {
			t.Fatal("redis-server or valkey-server is not installed; run `make deps`")
		}
	}
	for range 6 {
		nodes = append(nodes, startNode(t, bin))
	}
	ctx := t.Context()
	for i, n := range nodes { // as redis-cli does: nodes of one epoch may not agree on who follows whom
		if err := n.rdb.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range nodes {
		host, port, _ := net.SplitHostPort(nodes[0].addr)
		if i > 0 {
			if err := n.rdb.Do(ctx, "CLUSTER", "MEET", host, port, nodes[0].bus).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if i < 3 {
			if err := n.rdb.ClusterAddSlotsRange(ctx, i*5462, min(i*5462+5461, 16383)).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	info := func(n *clusterNode) string { s, _ := n.rdb.ClusterInfo(ctx).Result(); return s }
	for _, n := range nodes {
		eventually(t, 30*time.Second, "the nodes meet", func() bool { return strings.Contains(info(n), "cluster_known_nodes:6") })
	}
	for i := range 3 {
		id, err := nodes[i].rdb.Do(ctx, "CLUSTER", "MYID").Text()
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, 30*time.Second, "a replica follows", func() bool { return nodes[i+3].rdb.ClusterReplicate(ctx, id).Err() == nil })
	}
	var addrs []string
	for i, n := range nodes {
		addrs = append(addrs, n.addr)
		eventually(t, 30*time.Second, "the cluster serves", func() bool {
			link, _ := n.rdb.Info(ctx, "replication").Result()
			return strings.Contains(info(n), "cluster_state:ok") && (i < 3 || strings.Contains(link, "master_link_status:up"))
		})
	}
	rdb = redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, MaxRetries: -1, ContextTimeoutEnabled: true, ClusterStateReloadInterval: time.Second})
	t.Cleanup(func() { _ = rdb.Close() })
	return nodes, rdb
}

func startNode(t *testing.T, bin string) *clusterNode {
	t.Helper()
	addr := devstacktest.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	_, bus, _ := net.SplitHostPort(devstacktest.FreeAddr(t)) // of the cluster's own talk
	n := &clusterNode{addr: addr, bus: bus}
	n.cmd = exec.CommandContext(context.Background(), bin,
		"--bind", "127.0.0.1", "--port", port, "--cluster-port", bus, "--dir", t.TempDir(),
		"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000",
		"--save", "", "--appendonly", "no", "--loglevel", "warning", "--repl-diskless-sync-delay", "0")
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.kill)
	n.rdb = redis.NewClient(&redis.Options{Addr: n.addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = n.rdb.Close() })
	eventually(t, 20*time.Second, "a node answers", func() bool { return n.rdb.Ping(t.Context()).Err() == nil })
	return n
}

func TestALineRunsOnAClusterAndSurvivesAFailover(t *testing.T) {
	t.Parallel()
	nodes, rdb := newCluster(t)
	ctx := t.Context()
	edge := newLine(t, rdb, shortLives)
	if err := edge.loadScripts(ctx); err != nil {
		t.Fatal(err)
	}
	// Rooms in every part of the cluster, so that no verb can have a lucky slot.
	rooms := map[string][]Token{}
	var first string
	var master *clusterNode
	for len(rooms) < 8 {
		room := devstacktest.Name("hall")
		pg := newPostgres(edge, room, 2)
		pg.turn(t) // settings, report, recovery, first
		for i := range 12 {
			rooms[room] = append(rooms[room], join(t, edge, room, fmt.Sprint("fan-", i)).Token)
		}
		step(t, edge, room)
		a := claim(t, edge, room, rooms[room][0])
		pg.exchange(a)
		pg.turn(t)
		pg.end(a)
		pg.turn(t) // releases the slot
		if err := edge.Leave(ctx, room, rooms[room][1]); err != nil {
			t.Fatal(err)
		}
		p, _ := edge.verify(room, rooms[room][5])
		if back, err := edge.restore(ctx, edge.own(room), refresh(t, edge, room), p); err != nil || back.code != "there" {
			t.Fatal(err)
		}
		if err := edge.PutServed(ctx, room, []Served{{PlaceID: a.PlaceID, Began: time.Now()}}); err != nil {
			t.Fatal(err)
		}
		if b := refresh(t, edge, room).view; b.Inside != 0 || b.Waiting+b.Called != 10 {
			t.Fatalf("%s: %+v", room, b)
		}
		first = room
	}
	if err := edge.refreshAll(ctx); err != nil {
		t.Fatal(err)
	}
	if err := edge.callAll(ctx); err != nil {
		t.Fatal(err)
	}
	owner, err := rdb.MasterForKey(ctx, edge.own(first).keys[kWait])
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.addr == owner.Options().Addr {
			master = n
		}
	}
	// Everything acknowledged is at the replica: what a failover may lose, TestQ21 loses.
	// WAIT would not tell: it counts for the connection that wrote, and this is another.
	eventually(t, 30*time.Second, "the replica has everything", func() bool {
		info, err := master.rdb.Info(ctx, "replication").Result()
		have := regexp.MustCompile(`slave0:.*state=online,offset=(\d+)`).FindStringSubmatch(info)
		all := regexp.MustCompile(`master_repl_offset:(\d+)`).FindStringSubmatch(info)
		return err == nil && have != nil && all != nil && have[1] == all[1]
	})
	master.kill()
	eventually(t, time.Minute, "a replica takes over", func() bool {
		call, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return edge.refresh(call, edge.own(first)) == nil
	})
	for room, tokens := range rooms {
		for i, token := range tokens[2:] {
			v, err := edge.Status(ctx, room, token, 0)
			if err != nil || v.Status != Waiting && v.Status != Called {
				t.Errorf("%s, fan %d: %s, %v", room, i+2, v.Status, err)
			}
			again, err := edge.Join(ctx, room, Fan{ID: fmt.Sprint("fan-", i+2), Former: token})
			if err != nil || again.Token != token {
				t.Errorf("%s, fan %d has another place now, %v", room, i+2, err)
			}
		}
	}
}
