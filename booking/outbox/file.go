package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// FileSink appends events to a file, one line of JSON each. A line is there for good
// before its event counts as sent. It is for a machine without a broker; several
// processes may append to one file on one machine.
type FileSink struct {
	mu   sync.Mutex
	file *os.File
}

// OpenFile opens the sink, and makes the file (0600: the events tell who bought what).
func OpenFile(path string) (*FileSink, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("outbox: event file: %w", err)
	}
	return &FileSink{file: f}, nil
}

// Name tells the file.
func (s *FileSink) Name() string { return "file " + s.file.Name() }

// Close closes the file.
func (s *FileSink) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.file.Close()
}

// Send appends all of the messages or reports that none may count as sent.
func (s *FileSink) Send(_ context.Context, messages []Message) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.append(messages)
	errs := make([]error, len(messages))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func (s *FileSink) append(messages []Message) error {
	var lines bytes.Buffer
	torn, err := s.torn()
	if err != nil {
		return err
	}
	if torn { // a machine died in the middle of a line; its event was not marked and comes again
		lines.WriteByte('\n')
	}
	for _, m := range messages {
		if err := json.Compact(&lines, m.Payload); err != nil {
			return fmt.Errorf("outbox: event %s: %w", m.EventID, err)
		}
		lines.WriteByte('\n')
	}
	if _, err := s.file.Write(lines.Bytes()); err != nil {
		return fmt.Errorf("outbox: event file: %w", err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("outbox: event file: %w", err)
	}
	return nil
}

// torn reports whether the file ends inside a line.
func (s *FileSink) torn() (bool, error) {
	info, err := s.file.Stat()
	if err != nil {
		return false, fmt.Errorf("outbox: event file: %w", err)
	}
	if info.Size() == 0 {
		return false, nil
	}
	var last [1]byte
	if _, err := s.file.ReadAt(last[:], info.Size()-1); err != nil {
		return false, fmt.Errorf("outbox: event file: %w", err)
	}
	return last[0] != '\n', nil
}
