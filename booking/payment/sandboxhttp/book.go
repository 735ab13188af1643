package sandboxhttp

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"usher/booking/payment"
	"usher/booking/payment/sandbox"
)

// record is one payment with everything the provider knows about it.
type record struct {
	sandbox.Payment
	Key         string                    `json:"key"`
	Description string                    `json:"description"`
	ReturnURL   string                    `json:"returnUrl"`
	CallbackURL string                    `json:"callbackUrl"`
	LateAt      time.Time                 `json:"lateAt,omitzero"` // when a processing payment is taken
	Events      []event                   `json:"events,omitempty"`
	Refunds     map[string]sandbox.Refund `json:"refunds,omitempty"` // by key
}

// event is a callback to deliver, Copies times at the same moment.
type event struct {
	ID     string          `json:"id"`
	Body   json.RawMessage `json:"body"`
	Copies int             `json:"copies"`
	Done   bool            `json:"done"`
}

// age closes a page whose time is over; a payment on its way stays.
func (r *record) age(now time.Time) {
	if r.State == string(payment.StatusOpen) && !now.Before(r.ExpiresAt) {
		r.State = string(payment.StatusExpired)
	}
}

var (
	errNoPayment    = errors.New("sandboxhttp: no such payment")
	errKeyReused    = errors.New("sandboxhttp: the key was used for another request")
	errOverRefund   = errors.New("sandboxhttp: more than was taken")
	errNothingTaken = errors.New("sandboxhttp: nothing was taken")
)

// book holds every payment. Each change happens under its lock and, where there
// is a file, is on disk before anybody is told of it.
type book struct {
	mu    sync.Mutex
	byID  map[string]*record
	byKey map[string]string
	byRef map[string]string // the merchant's references that nobody guesses
	file  *os.File
}

func openBook(path string) (*book, error) {
	b := &book{byID: map[string]*record{}, byKey: map[string]string{}, byRef: map[string]string{}}
	if path == "" {
		return b, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("sandboxhttp: state: %w", err)
	}
	good, err := b.load(f)
	if err == nil {
		// A last line cut short by a crash was told to nobody: drop it.
		if err = f.Truncate(good); err == nil {
			_, err = f.Seek(good, io.SeekStart)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("sandboxhttp: state: %w", err)
	}
	b.file = f
	return b, nil
}

// load reads whole lines and returns where they end.
func (b *book) load(r io.Reader) (good int64, err error) {
	in := bufio.NewReader(r)
	for line := 1; ; line++ {
		raw, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return good, nil
		}
		if err != nil {
			return 0, err
		}
		var rec record
		if err := json.Unmarshal(bytes.TrimSpace(raw), &rec); err != nil {
			return 0, fmt.Errorf("line %d: %w", line, err)
		}
		good += int64(len(raw))
		b.index(&rec)
	}
}

// index makes rec findable; the caller holds the lock.
func (b *book) index(rec *record) {
	b.byID[rec.ID] = rec
	b.byKey[rec.Key] = rec.ID
	// The first payment of a reference keeps it: which page an address opens must
	// not change with what happens to the payments.
	if _, taken := b.byRef[rec.Reference]; !taken && secretReference(rec.Reference) {
		b.byRef[rec.Reference] = rec.ID
	}
}

// secretReference tells a reference that may open a payment page from one that
// could be guessed, such as an order number. A UUID of version 4 or 7 has at
// least 62 random bits, by our merchant's library 74 with version 7.
func secretReference(ref string) bool {
	id, err := uuid.Parse(ref)
	return err == nil && id.String() == ref && (id.Version() == 4 || id.Version() == 7)
}

// resolve is the payment's id for what stands in a page's address: that id, or
// the merchant's reference. What is neither comes back as it is.
func (b *book) resolve(ref string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id, ok := b.byRef[ref]; ok {
		return id
	}
	return ref
}

func (b *book) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	f := b.file
	b.file = nil
	return f.Close()
}

// save writes rec; the caller holds the lock.
func (b *book) save(rec *record) error {
	b.index(rec)
	if b.file == nil {
		return nil
	}
	line, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("sandboxhttp: state: %w", err)
	}
	if _, err := b.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("sandboxhttp: state: %w", err)
	}
	return nil
}

// change runs f on the payment under the lock and saves what it did; it returns
// a copy. f must not keep the record.
func (b *book) change(id string, now time.Time, f func(*record) error) (record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rec, ok := b.byID[id]
	if !ok {
		return record{}, errNoPayment
	}
	before, err := json.Marshal(rec)
	if err != nil {
		return record{}, fmt.Errorf("sandboxhttp: state: %w", err)
	}
	rec.age(now)
	if err := f(rec); err != nil {
		return *rec, err
	}
	after, err := json.Marshal(rec)
	if err != nil {
		return record{}, fmt.Errorf("sandboxhttp: state: %w", err)
	}
	if bytes.Equal(before, after) {
		return *rec, nil
	}
	return *rec, b.save(rec)
}

// create opens a payment, or finds the one the key has opened.
func (b *book) create(rec record) (record, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id, ok := b.byKey[rec.Key]; ok {
		old := b.byID[id]
		if old.Amount != rec.Amount || old.Currency != rec.Currency || old.Reference != rec.Reference {
			return record{}, false, errKeyReused
		}
		return *old, false, nil
	}
	return rec, true, b.save(&rec)
}

// all is a copy of every payment.
func (b *book) all() []record {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]record, 0, len(b.byID))
	for _, r := range b.byID {
		out = append(out, *r)
	}
	return out
}

// newID is prefix and 128 random bits.
func newID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it would end the program
	return prefix + hex.EncodeToString(b[:])
}
