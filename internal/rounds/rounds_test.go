package rounds

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// One that is under way is not begun again; one that failed is not waited for, and its
// failure is told until it has succeeded.
func TestARoundWaitsForWhatAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := Rounds[string]{Width: 8, Grace: 250 * time.Millisecond, Patience: 2 * time.Second}
		down := errors.New("down")
		var dead atomic.Bool
		var mu sync.Mutex
		begun := map[string]int{}
		step := func(ctx context.Context, k string) error {
			mu.Lock()
			begun[k]++
			mu.Unlock()
			if strings.HasPrefix(k, "dead") && dead.Load() {
				<-ctx.Done()
				return down
			}
			return nil
		}
		var all []string
		for i := range 20 {
			all = append(all, fmt.Sprint("dead-", i))
		}
		all = append(all, "alive")
		round := func() (took time.Duration, err error) {
			start := time.Now()
			err = q.Run(t.Context(), all, step)
			took = time.Since(start)
			synctest.Wait()
			return took, err
		}
		if took, err := round(); took != 0 || err != nil {
			t.Fatalf("all alive: %s, %v", took, err)
		}
		dead.Store(true)
		if took, err := round(); took != q.Grace || err != nil {
			t.Errorf("the first silence: %s, %v", took, err)
		}
		if took, err := round(); took != 0 || err != nil {
			t.Errorf("still under way: %s, %v", took, err)
		}
		mu.Lock()
		if begun["alive"] != 3 || begun["dead-0"] != 2 || begun["dead-19"] != 2 {
			t.Errorf("begun %v", begun)
		}
		mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if took, err := round(); took != 0 || !errors.Is(err, down) {
			t.Errorf("known to be silent: %s, %v", took, err)
		}
		q.Wait()
		if begun["dead-19"] != 3 {
			t.Errorf("a silent one is not tried again: %v", begun)
		}
		dead.Store(false)
		if _, err := round(); !errors.Is(err, down) {
			q.Wait()
			if _, err = round(); err != nil {
				t.Errorf("all alive again: %v", err)
			}
		}
		q.Wait()
	})
}
