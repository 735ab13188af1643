package app

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"usher/configs"
	"usher/queue/customer"
	"usher/queue/queuehttp"
	"usher/queue/returnto"
)

// integrators are the rooms' integrators by the configuration in force, read anew when
// it changes.
type integrators struct {
	config func() *configs.Config
	log    *slog.Logger
	now    atomic.Pointer[integration]
	mu     sync.Mutex
	remote map[string]*customer.Remote // by address: what was fetched outlives a reload
}

type integration struct {
	of        *configs.Config
	customers map[string]queuehttp.Customers
	returns   map[string][]returnto.Entry
}

func newIntegrators(config func() *configs.Config, log *slog.Logger) *integrators {
	return &integrators{config: config, log: log, remote: map[string]*customer.Remote{}}
}

func (i *integrators) get() *integration {
	c := i.config()
	if n := i.now.Load(); n != nil && n.of == c {
		return n
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if n := i.now.Load(); n != nil && n.of == c {
		return n
	}
	n := &integration{of: c, customers: map[string]queuehttp.Customers{}, returns: map[string][]returnto.Entry{}}
	remote := map[string]*customer.Remote{}
	for room, e := range c.Edge.Customers {
		n.customers[room] = queuehttp.Customers{
			Trust:    &customer.Trust{Issuer: e.Issuer, Audience: e.Audience, Keys: i.keys(remote, e)},
			Required: e.Required,
		}
	}
	for room, list := range c.Edge.ReturnTo {
		for _, r := range list {
			n.returns[room] = append(n.returns[room], returnto.Entry{URL: r.URL, Handover: r.Handover})
		}
	}
	i.remote = remote
	i.now.Store(n)
	return n
}

// keys are an entry's; the configuration has been checked.
func (i *integrators) keys(remote map[string]*customer.Remote, e configs.Customers) customer.Keys {
	if e.JWKSURL != "" {
		if remote[e.JWKSURL] == nil {
			if remote[e.JWKSURL] = i.remote[e.JWKSURL]; remote[e.JWKSURL] == nil {
				remote[e.JWKSURL] = customer.NewRemote(e.JWKSURL, i.log)
			}
		}
		return remote[e.JWKSURL]
	}
	var keys customer.Static
	if e.JWKS != "" {
		set, err := customer.ParseJWKS([]byte(e.JWKS.Reveal()), true)
		if err != nil {
			i.log.Error("a key set cannot be read; no customer token of its rooms is taken", "err", err)
		}
		keys = set
	}
	for _, s := range e.Secrets {
		if k, err := customer.Secret([]byte(s.Reveal())); err == nil {
			keys = append(keys, k)
		}
	}
	return keys
}

// customers is a room's own entry, else the one of every room.
func (i *integrators) customersOf(room string) queuehttp.Customers {
	n := i.get()
	if c, ok := n.customers[room]; ok {
		return c
	}
	return n.customers["*"]
}

// returnsOf is a room's own list and the one of every room.
func (i *integrators) returnsOf(room string) []returnto.Entry {
	n := i.get()
	all := n.returns["*"]
	if own := n.returns[room]; room != "*" && len(own) > 0 {
		return append(own[:len(own):len(own)], all...)
	}
	return all
}
