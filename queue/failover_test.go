package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/internal/devstack/devstacktest"
	"usher/internal/faultproxy"
)

func proxyTo(t testing.TB, target string) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// through is a client as app makes it, that notices a dead connection soon and
// repeats nothing.
func through(t testing.TB, p *faultproxy.Proxy) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: p.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: 2 * time.Second, DialTimeout: 2 * time.Second,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestQ15_ARedisThatRestartsEmpty(t *testing.T) {
	t.Parallel()
	first := devstacktest.OwnRedis(t)
	p := proxyTo(t, first.URL)
	s := newSale(t, func() *redis.Client { return through(t, p) }, "hall")
	first.Kill()
	p.Cut()
	if v := s.fans[20].poll(t, s.edges[0], s.room); v.Status != Waiting || v.Position == 0 {
		t.Errorf("without Redis: %+v", v)
	}
	if _, err := s.edges[0].Claim(t.Context(), s.room, s.fans[5].token); !errors.Is(err, ErrStale) {
		t.Errorf("claimed without Redis: %v", err)
	}
	p.Point(devstacktest.OwnRedis(t).URL)
	eventually(t, 20*time.Second, "the bridge ships again", func() bool { return s.pg.tryTurn(t) == nil })
	s.recovers(10)
	s.sellOut()
}

// The master dies with a second of writes that never reached the replica: joins, calls
// and an admission. The replica is promoted, and the edges are pointed to it.
func TestQ21_AFailoverThatForgotTheLastSecond(t *testing.T) {
	t.Parallel()
	master, replica := devstacktest.OwnRedis(t), devstacktest.OwnRedis(t)
	link, front := proxyTo(t, master.URL), proxyTo(t, master.URL)
	second := dial(t, replica.URL)
	host, port, err := net.SplitHostPort(link.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := second.ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	s := newSale(t, func() *redis.Client { return through(t, front) }, "hall")
	inSync(t, dial(t, master.URL), second)
	link.Stall()

	for i := range 10 { // acknowledged, and nowhere but in the master
		s.join(fmt.Sprintf("late-%02d", i))
	}
	s.refresh()
	lost := s.admit(5) // takes the last slot
	late := s.fans[len(s.fans)-1]
	late.poll(t, s.edges[0], s.room)
	master.Kill()
	if err := second.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	front.Point(replica.URL)

	eventually(t, 10*time.Second, "the replica serves", func() bool { return s.edges[0].rdb.Ping(t.Context()).Err() == nil })
	// The very first claim of any edge that saw more must not admit.
	if _, err := s.edges[0].Claim(t.Context(), s.room, s.fans[6].token); err == nil {
		t.Error("admitted by a memory that has forgotten an admission")
	}
	s.pg.turn(t)
	s.refresh()
	if !s.edges[1].own(s.room).board.Load().view.Recovering {
		t.Fatal("the loss was not noticed")
	}
	if v := late.poll(t, s.edges[1], s.room); v.Status != Waiting {
		t.Errorf("a place of the lost second is %s", v.Status)
	}
	// The pass of the forgotten admission is exchanged: the fan is inside.
	s.pg.exchange(lost)
	s.inside = append(s.inside, lost)
	eventually(t, time.Minute, "the recovery ends", func() bool {
		s.pg.turn(t)
		s.refresh()
		for _, f := range s.fans[6:] {
			f.poll(t, s.edge(), s.room)
		}
		step(t, s.edge(), s.room)
		time.Sleep(50 * time.Millisecond)
		return !s.edges[0].own(s.room).board.Load().view.Recovering
	})
	if v := refresh(t, s.edges[0], s.room).view; v.Inside != 4 { // pending's pass has run out unused
		t.Errorf("%d inside, 4 sessions live", v.Inside)
	}
	for i := range 5 {
		s.join(fmt.Sprintf("new-%02d", i))
	}
	// pending never came: like any unused pass, the place is found again by joining.
	s.fans = append(s.fans[:4:4], s.fans[5:]...) // the fifth is now the one who was forgotten, and is inside
	s.pending, s.inside = lost, s.inside[:3]
	s.sellOut()
}

func inSync(t testing.TB, master, replica *redis.Client) {
	t.Helper()
	offset := func(c *redis.Client, field string) string {
		info, err := c.Info(t.Context(), "replication").Result()
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(info, field+":")
		value, _, _ := strings.Cut(rest, "\r\n")
		return value
	}
	eventually(t, 20*time.Second, "the replica has everything", func() bool {
		at := offset(master, "master_repl_offset")
		return offset(replica, "master_link_status") == "up" && offset(replica, "slave_repl_offset") == at
	})
}

// A reply that is lost after the script ran costs neither place nor slot, and admits
// nobody twice.
func TestQ14_LostRepliesCostNothing(t *testing.T) {
	t.Parallel()
	p := proxyTo(t, devstacktest.OwnRedis(t).URL)
	one := redis.NewClient(&redis.Options{ // one connection, which greets once
		Addr: p.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 1, Protocol: 2, DisableIdentity: true,
	})
	t.Cleanup(func() { _ = one.Close() })
	l := newLine(t, one)
	room := openRoom(t, l, 60, 1)
	if err := l.loadScripts(t.Context()); err != nil {
		t.Fatal(err)
	}
	losing := func(what string, do func() error) {
		t.Helper()
		if err := l.rdb.Ping(t.Context()).Err(); err != nil { // so that no greeting is cut instead
			t.Fatal(err)
		}
		before := p.Lost()
		p.CutReply(1)
		if err := do(); !errors.Is(err, ErrStale) {
			t.Fatalf("%s: %v", what, err)
		}
		if p.Lost() != before+1 {
			t.Fatalf("%s: no reply was lost", what)
		}
	}
	fan := Fan{ID: "ann"}
	losing("join", func() error { _, err := l.Join(t.Context(), room, fan); return err })
	v, err := l.Join(t.Context(), room, fan)
	if err != nil || v.Created || v.Position != 1 {
		t.Fatalf("joined again: %+v, %v", v, err)
	}
	other := join(t, l, room, "bob")
	if other.Position != 2 {
		t.Errorf("the second stands at %d", other.Position)
	}
	losing("call", func() error { return l.call(t.Context(), l.own(room)) })
	losing("claim", func() error { _, err := l.Claim(t.Context(), room, v.Token); return err })
	a, err := l.Claim(t.Context(), room, v.Token)
	if err != nil || a.First {
		t.Fatalf("claimed again: %+v, %v", a, err)
	}
	if b := refresh(t, l, room).view; b.Inside != 1 || b.Admitted != 1 || b.Recovering {
		t.Errorf("after a lost claim: %+v", b)
	}
	end := Report{At: time.Unix(1, 0), Ended: []SlotRef{{PlaceID: a.PlaceID, JTI: a.JTI}}}
	for n := 1; n <= 3; n++ { // stamp, slots, release
		losing(fmt.Sprint("report ", n), func() error { p.CutReply(n); return l.PutReport(t.Context(), room, end) })
	}
	if err := l.PutReport(t.Context(), room, end); err != nil {
		t.Fatal(err)
	}
	losing("leave", func() error { return l.Leave(t.Context(), room, other.Token) })
	if err := l.Leave(t.Context(), room, other.Token); err != nil {
		t.Fatal(err)
	}
	if b := refresh(t, l, room).view; b.Inside+b.Waiting+b.Called != 0 || b.Recovering {
		t.Errorf("left over: %+v", b)
	}
}

// A Redis that accepts and says nothing costs a bounded wait, and what was sent to it
// arrives late and does no harm.
func TestAStalledRedisIsWaitedForNoLongerThanAsked(t *testing.T) {
	t.Parallel()
	p := proxyTo(t, devstacktest.OwnRedis(t).URL)
	l := newLine(t, through(t, p))
	room := openRoom(t, l, 60, 1)
	v := join(t, l, room, "ann")
	step(t, l, room)
	p.Stall()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := l.Claim(ctx, room, v.Token); err == nil {
		t.Fatal("claimed through a stalled connection")
	}
	p.Resume()
	var a Admission
	eventually(t, 20*time.Second, "the claim goes through", func() bool {
		var err error
		a, err = l.Claim(t.Context(), room, v.Token)
		return err == nil
	})
	if b := refresh(t, l, room).view; b.Admitted != 1 || a.PlaceID != v.PlaceID {
		t.Errorf("admitted %d times", b.Admitted)
	}
}
