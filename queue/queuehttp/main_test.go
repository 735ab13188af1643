package queuehttp

import (
	"log/slog"
	"os"
	"testing"

	"usher/internal/devstack/devstacktest"
)

func TestMain(m *testing.M) { os.Exit(devstacktest.Main(m)) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
