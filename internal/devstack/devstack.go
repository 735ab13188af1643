// Package devstack finds and starts a private Postgres and a private Redis (or
// Valkey): for `usher dev` and for the tests. It runs the servers' own binaries
// as direct children, on unix sockets in a folder of its own, so that nothing
// listens on the network and two stacks never collide.
//
// Decisions. A server refuses to run as root, so a root caller runs them as an
// unprivileged user (postgres, else nobody). Each child carries Pdeathsig, and
// is forked from a goroutine locked to its thread for the child's whole life,
// because the kernel sends that signal when the forking *thread* ends. No
// embedded downloads and no mock stores: what behaves differently from
// production hides exactly the accidents the tests are for.
package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrNotInstalled is wrapped when a server's binary is neither on PATH nor in
// the usual folders; the message names what is missing and the way to get it.
var ErrNotInstalled = errors.New("not installed; run `make deps`")

// Server is one running child process.
type Server struct {
	// URL is what the store's client takes (postgres://… or unix://…).
	URL string
	// Dir is the folder that holds the server's data.
	Dir string

	name string
	cmd  *exec.Cmd
	sig  os.Signal
	tail *tailBuffer
	done chan struct{} // closed once the child has been waited for
	err  error
}

// Pid is the child's process id.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Done is closed when the child has ended, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.done }

// Output is the last few kilobytes the server wrote, for error messages.
func (s *Server) Output() string { return s.tail.String() }

// Stop asks the server to end and waits; after ten seconds it kills it.
// Stopping twice, or a nil Server, is harmless.
func (s *Server) Stop() error { return s.stop(nil) }

// StopWithin is Stop with an end of its own: the server is killed when ctx ends.
func (s *Server) StopWithin(ctx context.Context) error { return s.stop(ctx.Done()) }

func (s *Server) stop(hurry <-chan struct{}) error {
	if s == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(s.sig)
	select {
	case <-s.done:
		return nil
	case <-hurry:
	case <-time.After(10 * time.Second):
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	return nil
}

// Kill ends the server at once, as a crash would (for fault tests).
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// Postgres starts a Postgres whose data is in dir (made and initialised when
// empty) and waits until it answers. durable=false turns fsync off, which only
// tests may do. The database "usher" is there when it returns.
func Postgres(ctx context.Context, dir string, durable bool) (*Server, error) {
	initdb, err := find("initdb", postgresFolders()...)
	if err != nil {
		return nil, fmt.Errorf("devstack: postgres: %w", err)
	}
	postgres, err := find("postgres", postgresFolders()...)
	if err != nil {
		return nil, fmt.Errorf("devstack: postgres: %w", err)
	}
	cred, err := unprivileged()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "pg")
	if err := ownedDir(cred, dir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err != nil {
		if err := initialise(ctx, initdb, data, cred, durable); err != nil {
			return nil, err
		}
	}
	sock, err := socketDir(cred)
	if err != nil {
		return nil, err
	}
	args := []string{
		"-D", data, "-k", sock, "-c", "listen_addresses=", "-c", "max_connections=200",
		"-c", "shared_buffers=128MB", "-c", "log_min_messages=fatal", "-c", "timezone=UTC",
	}
	if !durable {
		args = append(args, "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
	}
	// SIGINT is Postgres' fast shutdown: it ends sessions instead of awaiting them.
	s, err := start(ctx, "postgres", cred, dir, syscall.SIGINT, sock, postgres, args...)
	if err != nil {
		return nil, err
	}
	s.URL = fmt.Sprintf("postgres://usher@/usher?host=%s&sslmode=disable", sock)
	admin := fmt.Sprintf("postgres://usher@/postgres?host=%s&sslmode=disable", sock)
	if err := s.await(ctx, func(ctx context.Context) error { return ensureDatabase(ctx, admin, "usher") }); err != nil {
		return nil, err
	}
	return s, nil
}

// initialise makes the data folder beside its place and moves it there once it
// is whole: initdb writes PG_VERSION early, and one that is killed in the middle
// would otherwise leave what looks like a database and never starts.
func initialise(ctx context.Context, initdb, data string, cred *syscall.Credential, durable bool) error {
	tmp := data + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return fmt.Errorf("devstack: what an interrupted start left: %w", err)
	}
	if err := ownedDir(cred, tmp); err != nil {
		return err
	}
	args := []string{"-D", tmp, "-U", "usher", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions"}
	if !durable {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, initdb, args...) //nolint:gosec // the binary that find found
	cmd.Dir = filepath.Dir(data)
	cmd.Env = childEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	dieWithParent(cmd.SysProcAttr, syscall.SIGKILL) // else it writes on into what the next start removes
	type result struct {
		out []byte
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: Pdeathsig follows this thread
		out, err := cmd.CombinedOutput()
		done <- result{out, err}
	}()
	if r := <-done; r.err != nil {
		return fmt.Errorf("devstack: initdb: %w\n%s", errors.Join(ctx.Err(), r.err), r.out)
	}
	if err := os.Rename(tmp, data); err != nil {
		return fmt.Errorf("devstack: %w", err)
	}
	return nil
}

// Redis starts a redis-server or valkey-server whose data is in dir and waits
// until it answers. It keeps everything (noeviction) and appends to a file, as
// a production line must; durable=false turns the file off.
func Redis(ctx context.Context, dir string, durable bool) (*Server, error) {
	bin, err := find("redis-server", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
	if err != nil {
		if bin, err = find("valkey-server", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"); err != nil {
			return nil, fmt.Errorf("devstack: redis-server or valkey-server: %w", ErrNotInstalled)
		}
	}
	cred, err := unprivileged()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "redis")
	if err := ownedDir(cred, dir, data); err != nil {
		return nil, err
	}
	sock, err := socketDir(cred)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(sock, "redis.sock")
	args := []string{
		"--port", "0", "--unixsocket", path, "--unixsocketperm", "777", "--dir", data,
		"--save", "", "--maxmemory-policy", "noeviction", "--daemonize", "no", "--loglevel", "warning",
	}
	if durable {
		args = append(args, "--appendonly", "yes")
	}
	s, err := start(ctx, "redis", cred, dir, syscall.SIGTERM, sock, bin, args...)
	if err != nil {
		return nil, err
	}
	s.URL = "unix://" + path
	if err := s.await(ctx, func(context.Context) error { return redisPing(path) }); err != nil {
		return nil, err
	}
	return s, nil
}

func start(ctx context.Context, name string, cred *syscall.Credential, dir string, sig os.Signal, sock, bin string, args ...string) (*Server, error) {
	s := &Server{Dir: dir, name: name, sig: sig, tail: &tailBuffer{}, done: make(chan struct{})}
	s.cmd = exec.Command(bin, args...) //nolint:gosec,noctx // the binary found above; its life is Stop's, not a context's
	s.cmd.Dir = dir
	s.cmd.Env = childEnv()
	s.cmd.Stdout, s.cmd.Stderr = s.tail, s.tail
	// A process group of its own: Ctrl-C in the terminal reaches Usher alone,
	// which then stops its servers in order.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Setpgid: true}
	if name == "postgres" {
		dieWithParent(s.cmd.SysProcAttr, syscall.SIGQUIT) // the postmaster takes its children along
	} else {
		dieWithParent(s.cmd.SysProcAttr, syscall.SIGKILL)
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: Pdeathsig follows this thread
		if err := s.cmd.Start(); err != nil {
			started <- err
			close(s.done)
			return
		}
		started <- nil
		s.err = s.cmd.Wait()
		_ = os.RemoveAll(sock)
		close(s.done)
	}()
	if err := <-started; err != nil {
		_ = os.RemoveAll(sock)
		return nil, fmt.Errorf("devstack: start %s: %w", name, err)
	}
	if err := ctx.Err(); err != nil {
		_ = s.Stop()
		return nil, err
	}
	return s, nil
}

// await polls ready until it succeeds, the child ends, or 30 s have gone.
func (s *Server) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("devstack: %s ended while starting: %w\n%s", s.name, s.err, s.tail.String())
		case <-ctx.Done():
			_ = s.Stop()
			return fmt.Errorf("devstack: %s did not answer: %w\n%s", s.name, errors.Join(ctx.Err(), err), s.tail.String())
		case <-tick.C:
		}
	}
}

// find looks for a binary on PATH, then in folders.
func find(name string, folders ...string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	for _, f := range folders {
		p := filepath.Join(f, name)
		if st, err := os.Stat(p); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrNotInstalled)
}

// postgresFolders lists the places packages put Postgres' own binaries, newest
// version first: Debian keeps them off PATH.
func postgresFolders() []string {
	var found []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	} {
		m, _ := filepath.Glob(pattern)
		found = append(found, m...)
	}
	version := func(p string) int {
		digits := strings.FieldsFunc(p, func(r rune) bool { return r < '0' || r > '9' })
		if len(digits) == 0 {
			return 0
		}
		n, _ := strconv.Atoi(digits[0])
		return n
	}
	sort.SliceStable(found, func(i, j int) bool { return version(found[i]) > version(found[j]) })
	return found
}

// unprivileged is nil for an ordinary user; for root it is the user the servers
// run as, since Postgres refuses root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("devstack: user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("devstack: running as root, and neither user postgres nor nobody exists to run the servers as")
}

// ownedDir makes the folders and hands them to the user the server runs as.
func ownedDir(cred *syscall.Credential, dirs ...string) error {
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("devstack: %w", err)
		}
		if cred == nil {
			continue
		}
		if err := os.Chown(d, int(cred.Uid), int(cred.Gid)); err != nil {
			return fmt.Errorf("devstack: %w", err)
		}
	}
	return reachable(cred, dirs...)
}

// reachable reports a parent folder the unprivileged user may not enter (a
// checkout under /root, say), which otherwise shows as a cryptic chdir error.
func reachable(cred *syscall.Credential, dirs ...string) error {
	if cred == nil {
		return nil
	}
	for _, d := range dirs {
		abs, err := filepath.Abs(d)
		if err != nil {
			return fmt.Errorf("devstack: %w", err)
		}
		for p := filepath.Dir(abs); p != "/" && p != "."; p = filepath.Dir(p) {
			st, err := os.Stat(p)
			if err != nil {
				return fmt.Errorf("devstack: %w", err)
			}
			sys, ok := st.Sys().(*syscall.Stat_t)
			if !ok || st.Mode()&0o001 != 0 || sys.Uid == cred.Uid || (sys.Gid == cred.Gid && st.Mode()&0o010 != 0) {
				continue
			}
			return fmt.Errorf("devstack: running as root, so the servers run as uid %d, which may not enter %s; choose another folder with --data", cred.Uid, p)
		}
	}
	return nil
}

// socketDir makes a folder with a short name: a unix socket's path must stay
// under 108 bytes, and the folder of the data may not.
func socketDir(cred *syscall.Credential) (string, error) {
	d, err := os.MkdirTemp(shortTemp(), "usher-")
	if err != nil {
		return "", fmt.Errorf("devstack: %w", err)
	}
	if err := ownedDir(cred, d); err != nil {
		return "", err
	}
	return d, nil
}

func shortTemp() string {
	if t := os.TempDir(); len(t) <= 40 {
		return t
	}
	return "/tmp"
}

// childEnv keeps PG* variables of the developer's shell away from the private
// servers.
func childEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") {
			env = append(env, kv)
		}
	}
	return append(env, "LC_ALL=C")
}

// tailBuffer keeps the last 8 kB written to it.
type tailBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var _ io.Writer = (*tailBuffer)(nil)

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - 8<<10; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
