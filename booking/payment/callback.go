package payment

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"usher/booking"
)

const (
	sqlRecordEvent = `
		INSERT INTO provider_event (provider, event_id, payment_id, kind, body)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`
)

// Callback takes one delivery of the provider: raw is the body as it came. It
// returns nil only once whatever followed is committed, also when nothing did
// (a repetition, a payment nobody knows): the provider may then forget it. On
// ErrSignature nothing was recorded; on any other error the provider is to
// deliver again.
func (d *Desk) Callback(ctx context.Context, header func(string) string, raw []byte) error {
	e, err := d.provider.ParseCallback(header, raw, time.Now())
	if err != nil {
		if errors.Is(err, ErrSignature) {
			d.log.Warn("callback refused", "err", err)
			d.metrics.settled.WithLabelValues("callback", "signature-invalid").Inc()
		}
		return err
	}
	var s settlement
	err = booking.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		// A twin under way makes this wait for its commit, so a second delivery
		// is not acknowledged before the first is durable, and takes over when the
		// first is rolled back.
		tag, err := tx.Exec(ctx, sqlRecordEvent, d.provider.Name(), e.ID, reference(e.Outcome), e.Kind, printable(raw))
		if err != nil {
			return fmt.Errorf("payment: record event: %w", err)
		}
		if tag.RowsAffected() == 0 {
			s = settlement{verdict: verdictDuplicate}
			return nil
		}
		s, err = d.settle(ctx, tx, e.Outcome)
		return err
	})
	if err != nil {
		return err
	}
	d.finish("callback", e.Outcome, s)
	return nil
}

// finish does what waits for the commit.
func (d *Desk) finish(source string, o Outcome, s settlement) {
	d.announce(s)
	d.metrics.settled.WithLabelValues(source, s.verdict).Inc()
	if s.verdict == verdictUnknown {
		d.log.Error("the provider tells of a payment that is not ours", "providerPayment", o.ProviderPaymentID, "reference", o.Reference, "status", string(o.Status), "amount", o.Amount)
		return
	}
	d.log.Info("payment settled", "source", source, "verdict", s.verdict, "payment", o.Reference, "status", string(o.Status))
}

// reference is the payment's id when the provider sent one back.
func reference(o Outcome) *uuid.UUID {
	id, err := uuid.Parse(o.Reference)
	if err != nil {
		return nil
	}
	return &id
}

// printable is raw as the database takes it: text without NUL.
func printable(raw []byte) string {
	if utf8.Valid(raw) {
		s := make([]byte, 0, len(raw))
		for _, c := range raw {
			if c != 0 {
				s = append(s, c)
			}
		}
		return string(s)
	}
	return fmt.Sprintf("%q", raw)
}
