package booking

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// SeatMap is one version of a showtime's map. It is immutable.
type SeatMap struct {
	ETag string // strong, with its quotes; of the content
	body []byte
	zip  *zipped
}

type zipped struct {
	once sync.Once
	data []byte
}

// JSON is the map's document.
func (m SeatMap) JSON() []byte { return m.body }

// Gzip is the document compressed, once for everybody who asks.
func (m SeatMap) Gzip() []byte {
	m.zip.once.Do(func() {
		var buf bytes.Buffer
		z, _ := gzip.NewWriterLevel(&buf, 5) // the level is valid
		_, _ = z.Write(m.body)               // to memory
		_ = z.Close()
		m.zip.data = buf.Bytes()
	})
	return m.zip.data
}

// SeatMap reads a showtime's map, at most MapEvery old; ErrUnknownShowtime.
func (o *Office) SeatMap(ctx context.Context, showtimeID string) (SeatMap, error) {
	w, err := o.maps.fresh(ctx, showtimeID)
	if err != nil {
		return SeatMap{}, err
	}
	return w.encode()
}

// staticMap is what of a map does not change with sales, encoded once.
type staticMap struct {
	showtime *Showtime
	head     []byte   // up to and with `"seats":[`
	seats    [][]byte // each up to its status' opening quote
	digest   [sha256.Size]byte
}

func (w *watch) encode() (SeatMap, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.static == nil || w.static.showtime != w.showtime {
		next, err := encodeStatic(w.showtime, w.layout)
		if err != nil {
			return SeatMap{}, err
		}
		if w.static == nil || w.static.digest != next.digest {
			w.current = nil
		}
		w.static = next
	}
	t := time.Now()
	states := make([]byte, len(w.states))
	size := len(w.static.head) + 2
	for i := range w.states {
		states[i] = byte(w.now(i, t))
		size += len(w.static.seats[i]) + len(SeatAvailable) + 3
	}
	sum := sha256.New()
	_, _ = sum.Write(w.static.digest[:])
	_, _ = sum.Write(states)
	etag := `"` + hex.EncodeToString(sum.Sum(nil)[:12]) + `"`
	if w.current != nil && w.current.ETag == etag {
		return *w.current, nil
	}
	body := append(make([]byte, 0, size), w.static.head...)
	for i, s := range states {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, w.static.seats[i]...)
		body = append(body, seatState(s).String()...)
		body = append(body, '"', '}')
	}
	body = append(body, ']', '}')
	w.current = &SeatMap{ETag: etag, body: body, zip: &zipped{}}
	return *w.current, nil
}

type seatDoc struct {
	Code       string  `json:"code"`
	Section    string  `json:"section"`
	Row        string  `json:"row"`
	Number     string  `json:"number"`
	X          float32 `json:"x"`
	Y          float32 `json:"y"`
	PriceClass string  `json:"priceClass"`
	Accessible bool    `json:"accessible"`
	Standing   bool    `json:"standing,omitempty"`
	Status     string  `json:"status"` // last: encode appends it
}

type priceDoc struct {
	Code   string `json:"code"`
	Name   string `json:"name"`
	Amount int64  `json:"amount"`
	Color  string `json:"color"`
}

func encodeStatic(st *Showtime, l *Layout) (*staticMap, error) {
	prices := []priceDoc{}
	for _, p := range st.PriceClasses {
		prices = append(prices, priceDoc(p))
	}
	head, err := json.Marshal(struct {
		ShowtimeID    string          `json:"showtimeId"`
		LayoutVersion string          `json:"layoutVersion"`
		Currency      string          `json:"currency"`
		MaxPerHold    int             `json:"maxPerHold"`
		PriceClasses  []priceDoc      `json:"priceClasses"`
		Shape         json.RawMessage `json:"shape"`
	}{st.ID, l.ID, st.Currency, st.MaxPerHold, prices, l.Shape})
	if err != nil {
		return nil, fmt.Errorf("booking: encode map: %w", err)
	}
	m := &staticMap{showtime: st, head: append(head[:len(head)-1], `,"seats":[`...)}
	sum := sha256.New()
	_, _ = sum.Write(m.head)
	m.seats = make([][]byte, len(l.Seats))
	for i, s := range l.Seats {
		b, err := json.Marshal(seatDoc{
			Code: s.Code, Section: s.Section, Row: s.Row, Number: s.Number, X: s.X, Y: s.Y,
			PriceClass: s.PriceClass, Accessible: s.Accessible, Standing: s.Standing,
		})
		if err != nil {
			return nil, fmt.Errorf("booking: encode map: %w", err)
		}
		m.seats[i] = b[:len(b)-2] // without `"}`
		_, _ = sum.Write(m.seats[i])
	}
	sum.Sum(m.digest[:0])
	return m, nil
}
