package app

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"usher/internal/basehttp"
)

// listen opens every address of the role, before anything slow happens.
func (a *App) listen(ctx context.Context) error {
	c := a.config()
	addrs := map[string]string{
		"edge": c.Edge.Addr, "booking": c.Booking.Addr, "sandbox": c.Sandbox.Addr, "admin": c.Admin.Addr,
	}
	names := []string{"admin"}
	for _, p := range a.parts {
		if p.listener != "" {
			names = append(names, p.listener)
		}
	}
	for _, name := range names {
		body := 0
		if name == "admin" {
			body = adminBody
		}
		s := basehttp.NewServer(basehttp.Options{
			BodyLimit: body,
			Name:      name, Log: a.opts.Log, TrustedProxies: c.HTTP.TrustedProxies, Concurrency: c.HTTP.Concurrency,
			Observe: a.metrics.observer(name), Quiet: quiet(name),
		})
		addr, err := s.Listen(ctx, addrs[name])
		if err != nil {
			return err
		}
		a.servers[name], a.addrs[name] = s, addr
		a.teardown.push(name+" listener", s.Shutdown)
	}
	return nil
}

// serveAdmin answers on the admin listener as soon as the stores are open, and
// until they close: health and metrics matter most while things start and stop.
func (a *App) serveAdmin(context.Context) error {
	a.buildAdmin()
	a.serveOne("admin")
	return nil
}

// serve answers on the public listeners and registers the drain, which is then
// the first thing an exit does.
func (a *App) serve(context.Context) error {
	var public []*basehttp.Server
	for name, s := range a.servers {
		if name != "admin" {
			a.serveOne(name)
			public = append(public, s)
		}
	}
	a.teardown.push("drain", func(ctx context.Context) error { return a.drain(ctx, public) })
	return nil
}

func (a *App) serveOne(name string) {
	s := a.servers[name]
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(); err != nil {
			select {
			case a.fatal <- fmt.Errorf("app: %w", err):
			default:
			}
		}
	}()
	a.teardown.push(name+" server", func(ctx context.Context) error {
		err := s.Shutdown(ctx)
		select {
		case <-served:
		case <-ctx.Done():
		}
		return err
	})
}

// drain ends the public listeners without losing a request: first "not ready",
// then a moment in which every answer asks its connection to close, then no new
// connection, then the wait for what is running.
func (a *App) drain(ctx context.Context, servers []*basehttp.Server) error {
	a.ready.Store(false)
	for _, s := range servers {
		s.Drain()
	}
	if a.leave != nil {
		a.leave() // streams end by no answer of theirs; their clients come back spread over some seconds
	}
	select {
	case <-time.After(a.config().Shutdown.DrainDelay):
	case <-ctx.Done():
	}
	// What is left of the time belongs to the loops and the stores as well.
	ctx, cancel := context.WithTimeout(ctx, a.config().Shutdown.Timeout*6/10)
	defer cancel()
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = s.Shutdown(ctx) })
	}
	wg.Wait()
	return joined(errs)
}

// urlOf is a listener's address as a browser reaches it: the configured one, or
// the one its port became on this machine.
func (a *App) urlOf(listener, configured string) string {
	if configured != "" {
		return configured
	}
	addr := a.Addr(listener)
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
