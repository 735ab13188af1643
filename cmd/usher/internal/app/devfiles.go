package app

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"usher/admission/pass"
	"usher/internal/devstack"
)

// devSecrets is what `usher dev` makes for itself and keeps in its folder.
type devSecrets struct {
	Place    string `json:"placeSecret"`
	Session  string `json:"sessionSecret"`
	Tickets  string `json:"ticketSecret"`
	Payment  string `json:"paymentSecret"`
	APIKey   string `json:"paymentApiKey"`
	Operator string `json:"operatorToken"`
}

// devFolder is the folder of one `usher dev`.
type devFolder struct {
	path    string
	kept    bool
	lock    *os.File
	secrets devSecrets
}

// openDevFolder makes or opens the folder: dir when given, else a temporary one
// that close removes. Only one `usher dev` works in a folder at a time.
func openDevFolder(dir string) (*devFolder, error) {
	f := &devFolder{path: dir, kept: dir != ""}
	var err error
	if f.kept {
		if f.path, err = filepath.Abs(dir); err == nil {
			err = os.MkdirAll(f.path, 0o755) //nolint:gosec // the servers' unprivileged user enters it
		}
	} else if f.path, err = os.MkdirTemp("", "usher-dev-"); err == nil {
		err = os.Chmod(f.path, 0o711) //nolint:gosec // as above; what is secret in it is 0600
	}
	if err != nil {
		return nil, fmt.Errorf("dev: %w", err)
	}
	if err := f.fill(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *devFolder) fill() error {
	var err error
	if f.lock, err = os.OpenFile(f.file("lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	if err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.kept = true // whoever holds it keeps it
		return fmt.Errorf("dev: another usher dev works in %s; choose another folder with --data", f.path)
	}
	if err := f.readSecrets(); err != nil {
		return fmt.Errorf("dev: secrets: %w", err)
	}
	if _, err := os.Stat(f.keysFile()); errors.Is(err, fs.ErrNotExist) {
		ring, err := pass.NewRing(time.Now())
		if err != nil {
			return err
		}
		return WriteRing(f.keysFile(), ring)
	}
	return nil
}

func (f *devFolder) readSecrets() error {
	data, err := os.ReadFile(f.file("secrets.json"))
	if err == nil {
		err = json.Unmarshal(data, &f.secrets)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	missing := false // all of them in a new folder, some in one of an older Usher
	for _, s := range []*string{&f.secrets.Place, &f.secrets.Session, &f.secrets.Tickets, &f.secrets.Payment, &f.secrets.APIKey, &f.secrets.Operator} {
		if *s == "" {
			*s, missing = newSecret(), true
		}
	}
	if !missing {
		return nil
	}
	if data, err = json.MarshalIndent(f.secrets, "", "  "); err != nil { //nolint:gosec // the file of secrets is what this makes, 0600
		return err
	}
	return writeSecretFile(f.file("secrets.json"), append(data, '\n'))
}

func (f *devFolder) file(name string) string { return filepath.Join(f.path, name) }
func (f *devFolder) keysFile() string        { return f.file("keys.json") }

// close gives the folder up, and removes it when nobody asked to keep it.
func (f *devFolder) close() error {
	var err error
	if !f.kept {
		err = os.RemoveAll(f.path)
	}
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

// newSecret is 32 random bytes as text.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// WriteRing writes pass keys for their owner's eyes, whole or not at all: a
// process that reads while a rotation writes must not see half of it.
func WriteRing(path string, r pass.Ring) error {
	data, err := r.MarshalJSON()
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	if err := writeSecretFile(path, append(data, '\n')); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return nil
}

func writeSecretFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-") // 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}

// KeptPostgres starts the Postgres that a stopped `usher dev` left in dir.
func KeptPostgres(ctx context.Context, dir string) (url string, stop func(), err error) {
	if _, err := os.Stat(filepath.Join(dir, "stores", "pg", "PG_VERSION")); err != nil {
		return "", nil, fmt.Errorf("no usher dev has kept its data in %s", dir)
	}
	f, err := openDevFolder(dir)
	if err != nil {
		return "", nil, err
	}
	s, err := devstack.Postgres(ctx, f.file("stores"), true)
	if err != nil {
		return "", nil, errors.Join(err, f.close())
	}
	return s.URL, func() { _ = s.Stop(); _ = f.close() }, nil
}
