package main

import (
	"fmt"
	"net/http"
	"time"

	"usher/cmd/usher/internal/app"
	"usher/configs"
)

type configFlag struct {
	Config string `short:"c" env:"USHER_CONFIG" type:"existingfile" placeholder:"FILE" help:"Configuration (YAML); USHER_… variables win over it."`
}

type (
	edgeCmd    struct{ configFlag }
	bookingCmd struct{ configFlag }
	sandboxCmd struct{ configFlag }
)

func (c edgeCmd) Run(w *world) error    { return c.role(w, "edge") }
func (c bookingCmd) Run(w *world) error { return c.role(w, "booking") }
func (c sandboxCmd) Run(w *world) error { return c.role(w, "sandbox") }

func (c configFlag) role(w *world, role string) error {
	live, err := configs.NewLive(configs.Source{File: c.Config, Environ: w.environ, Role: role})
	if err != nil {
		return err
	}
	_ = w.level.UnmarshalText([]byte(live.Get().Log.Level)) // checked by configs
	a, err := app.New(app.Options{Role: role, Config: live, Log: w.log, Level: w.level})
	if err != nil {
		return err
	}
	return a.Run(w.ctx)
}

type devCmd struct {
	Data        string `env:"USHER_DATA" placeholder:"DIR" help:"Keep everything in this folder and go on from there; without it nothing is kept."`
	EdgeAddr    string `placeholder:"ADDR" help:"Waiting rooms (127.0.0.1:8080; :0 takes any free port)."`
	BookingAddr string `placeholder:"ADDR" help:"Box office (127.0.0.1:8081)."`
	SandboxAddr string `placeholder:"ADDR" help:"Sandbox payments (127.0.0.1:8082)."`
	AdminAddr   string `placeholder:"ADDR" help:"Health, metrics, admin API (127.0.0.1:9090)."`
	PostgresURL string `placeholder:"URL" help:"Use this Postgres instead of a private one."`
	RedisURL    string `placeholder:"URL" help:"Use this Redis instead of a private one."`
	LogLevel    string `placeholder:"LEVEL" help:"debug, info, warn (default) or error, as JSON on standard error."`
	ReadyFile   string `placeholder:"FILE" help:"Write the addresses and the operator token here, as JSON, once everything answers."`
}

func (c devCmd) Run(w *world) error {
	set := map[string]any{}
	for key, v := range map[string]string{
		"edge.addr": c.EdgeAddr, "booking.addr": c.BookingAddr, "sandbox.addr": c.SandboxAddr, "admin.addr": c.AdminAddr,
		"postgres.url": c.PostgresURL, "redis.url": c.RedisURL, "log.level": c.LogLevel,
	} {
		if v != "" {
			set[key] = v
		}
	}
	return app.Dev(w.ctx, app.DevOptions{
		Data: c.Data, Environ: w.environ, Overrides: set, Command: w.command, Out: w.out, ReadyFile: c.ReadyFile, Log: w.log, Level: w.level,
	})
}

// healthCmd is for images without a shell or curl.
type healthCmd struct {
	Admin string `env:"USHER_ADMIN_URL" default:"http://127.0.0.1:9090" placeholder:"URL" help:"The admin listener (default ${default})."`
}

func (c healthCmd) Run(w *world) error {
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, c.Admin+"/readyz", nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 2 * time.Second}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", res.Status)
	}
	return nil
}
