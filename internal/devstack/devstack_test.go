package devstack_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"usher/internal/devstack"
)

// TestMain lets this binary be a process of its own that holds a stack, so that
// a test can kill it.
func TestMain(m *testing.M) {
	if dir := os.Getenv("DEVSTACK_TEST_HOLD"); dir != "" {
		hold(dir)
	}
	os.Exit(m.Run())
}

func hold(dir string) {
	ctx := context.Background()
	pg, err := devstack.Postgres(ctx, dir, true)
	if err != nil {
		panic(err)
	}
	rd, err := devstack.Redis(ctx, dir, true)
	if err != nil {
		panic(err)
	}
	fmt.Println(pg.Pid(), rd.Pid()) // flushed: standard output is a pipe without a buffer
	select {}
}

func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "us")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(data), ") Z ")
}

func goneSoon(t *testing.T, pids ...int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d is left running", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func query(t *testing.T, url, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Two stacks beside each other, and the data of one over a restart.
func TestStacksAreApartAndKeep(t *testing.T) {
	t.Parallel()
	dirs := []string{openDir(t), openDir(t)}
	var pids []int
	for round := 1; round <= 2; round++ {
		var servers []*devstack.Server
		for i, dir := range dirs {
			pg, err := devstack.Postgres(t.Context(), dir, true)
			if err != nil {
				t.Fatal(err)
			}
			rd, err := devstack.Redis(t.Context(), dir, true)
			if err != nil {
				t.Fatal(err)
			}
			servers = append(servers, pg, rd)
			o, err := redis.ParseURL(rd.URL)
			if err != nil {
				t.Fatal(err)
			}
			rdb := redis.NewClient(o)
			if round == 1 {
				query(t, pg.URL, fmt.Sprintf(`WITH x AS (SELECT %d AS n) SELECT n FROM x`, i))
				conn, err := pgx.Connect(t.Context(), pg.URL)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := conn.Exec(t.Context(), fmt.Sprintf(`CREATE TABLE t AS SELECT %d AS n`, i)); err != nil {
					t.Fatal(err)
				}
				_ = conn.Close(t.Context())
				rdb.Set(t.Context(), "n", i, 0)
			}
			if n := query(t, pg.URL, `SELECT n FROM t`); n != i {
				t.Errorf("round %d, stack %d: postgres has %d", round, i, n)
			}
			if n, err := rdb.Get(t.Context(), "n").Int(); err != nil || n != i {
				t.Errorf("round %d, stack %d: redis has %d, %v", round, i, n, err)
			}
			_ = rdb.Close()
		}
		for _, s := range servers {
			pids = append(pids, s.Pid())
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			_ = s.Stop() // twice is harmless
			select {
			case <-s.Done():
			default:
				t.Error("stopped, and not done")
			}
		}
	}
	goneSoon(t, pids...)
}

// The parent is killed like a crash; as root and, when we are root, as somebody
// else too.
func TestServersDieWithTheirParent(t *testing.T) {
	t.Parallel()
	users := map[string]*syscall.Credential{"as we are": nil}
	if os.Geteuid() == 0 {
		users["without rights"] = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for name, cred := range users {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := openDir(t)
			bin := copyOfTest(t, dir)
			work := filepath.Join(dir, "w")
			if err := os.Mkdir(work, 0o755); err != nil {
				t.Fatal(err)
			}
			if cred != nil {
				if err := os.Chown(work, int(cred.Uid), int(cred.Gid)); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(bin)
			cmd.Env = append(os.Environ(), "DEVSTACK_TEST_HOLD="+work)
			cmd.Dir = work
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pg, rd int
			if _, err := fmt.Fscan(out, &pg, &rd); err != nil {
				_ = cmd.Wait()
				t.Fatalf("%v\n%s", err, errs.String())
			}
			if !alive(pg) || !alive(rd) {
				t.Fatal("the servers do not run")
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			goneSoon(t, pg, rd)
		})
	}
}

// What an interrupted start left must not be in the way of the next.
func TestInterruptedInitdb(t *testing.T) {
	t.Parallel()
	starts := func(t *testing.T, dir string) {
		t.Helper()
		pg, err := devstack.Postgres(t.Context(), dir, true)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = pg.Stop() }()
		if n := query(t, pg.URL, `SELECT 7`); n != 7 {
			t.Errorf("got %d", n)
		}
		if _, err := os.Stat(filepath.Join(dir, "pg.tmp")); err == nil {
			t.Error("the half-made folder is still there")
		}
	}
	t.Run("left behind", func(t *testing.T) {
		t.Parallel()
		dir := openDir(t)
		if err := os.MkdirAll(filepath.Join(dir, "pg.tmp", "base"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "pg.tmp", "PG_VERSION"), []byte("17\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		starts(t, dir)
	})
	t.Run("killed in the middle", func(t *testing.T) {
		t.Parallel()
		dir := openDir(t)
		cmd := exec.Command(copyOfTest(t, openDir(t)))
		cmd.Env = append(os.Environ(), "DEVSTACK_TEST_HOLD="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(20 * time.Second)
		for {
			if m, _ := filepath.Glob(filepath.Join(dir, "pg*", "PG_VERSION")); len(m) > 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Error("initdb did not begin")
				break
			}
			time.Sleep(time.Millisecond)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		starts(t, dir)
	})
}

// A stop that has no time left does not wait for a server that hangs.
func TestStopWithin(t *testing.T) {
	t.Parallel()
	rd, err := devstack.Redis(t.Context(), openDir(t), false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(rd.Pid())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	start := time.Now()
	if err := rd.StopWithin(ctx); err != nil || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
	goneSoon(t, rd.Pid())
}

// copyOfTest puts this binary where a user without rights may run it.
func copyOfTest(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "hold")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFolderThatCannotBeEntered(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root starts servers as somebody else")
	}
	dir := openDir(t)
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := devstack.Redis(t.Context(), filepath.Join(closed, "data"), false); err == nil || !strings.Contains(err.Error(), closed) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("got %v", err)
	}
}

// A start that is broken off leaves nothing.
func TestStartBrokenOff(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := devstack.Redis(ctx, openDir(t), false); err == nil {
		t.Error("started after its context had ended")
	}
}
