package schema_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"usher/booking/schema"
	"usher/internal/devstack/devstacktest"
)

func TestMain(m *testing.M) { os.Exit(devstacktest.Main(m)) }

// Many starters at once (every process of a deployment) migrate once.
func TestUpIsSafeFromEveryNode(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := devstacktest.PostgresURL(t, "", nil)
	gate := make(chan struct{})
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			<-gate
			errs[i] = schema.Up(ctx, url)
		})
	}
	close(gate)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	list, err := schema.List(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatal("no migrations listed")
	}
	for _, s := range list {
		if !s.Applied {
			t.Errorf("migration %d %s is not applied", s.Version, s.Name)
		}
	}
}
