package payment

import (
	"context"
	"errors"
	"time"
)

// Provider moves money. An adapter is safe for concurrent use and keeps no state
// of its own: what it says may be asked again. Every call is made outside a
// database transaction and must end with its context.
type Provider interface {
	// Name is what payments are recorded under; it never changes.
	Name() string
	// Create opens a payment page. Two calls with one Key are one payment.
	Create(ctx context.Context, r CreateRequest) (Created, error)
	// Fetch tells what became of a payment; ErrNotKnown when there is none.
	Fetch(ctx context.Context, providerPaymentID string) (Outcome, error)
	// Expire ends a payment nobody has paid yet and tells what became of it: a
	// payment that was paid, or is being paid, stays as it is.
	Expire(ctx context.Context, providerPaymentID string) (Outcome, error)
	// Refund gives money back and returns the refund's id at the provider. Two
	// calls with one Key are one refund.
	Refund(ctx context.Context, r RefundRequest) (string, error)
	// ParseCallback verifies the signature over raw and reads the event;
	// ErrSignature when it is not the provider's or older than the tolerance.
	ParseCallback(header func(string) string, raw []byte, now time.Time) (Event, error)
}

// CreateRequest describes one attempt to pay.
type CreateRequest struct {
	Key         string // idempotency key: the payment's id, so one per attempt
	Reference   string // comes back in callbacks and outcomes: the payment's id
	Amount      int64  // minor units
	Currency    string // ISO 4217
	Description string // what the fan reads on the payment page
	ReturnURL   string // where the fan is sent afterwards, whatever happened
	ExpiresAt   time.Time
}

// Created is an open payment page.
type Created struct {
	ProviderPaymentID string
	URL               string
}

// Status is what a provider says about a payment.
type Status string

// The statuses. All but Open and Processing are final.
const (
	StatusOpen       Status = "open"       // nobody has paid yet
	StatusProcessing Status = "processing" // the fan has chosen; the money is on its way
	StatusPaid       Status = "paid"       // the money has been taken
	StatusDeclined   Status = "declined"
	StatusExpired    Status = "expired"
	StatusRefused    Status = "refused" // never opened: the provider will not have it
)

// Outcome is a payment as the provider sees it now.
type Outcome struct {
	ProviderPaymentID string
	Reference         string // what CreateRequest carried
	Status            Status
	Amount            int64 // taken; minor units, 0 unless Paid
	Currency          string
}

// Event is one verified callback.
type Event struct {
	ID   string // the provider's own; a second delivery bears the same
	Kind string // the provider's word for it, recorded
	Outcome
}

// RefundRequest gives part or all of a payment back.
type RefundRequest struct {
	Key               string // idempotency key: the refund's id
	ProviderPaymentID string
	Amount            int64
	Currency          string
}

var (
	// ErrSignature: the callback is not signed by the provider, or is too old.
	ErrSignature = errors.New("payment: the callback's signature is not valid")
	// ErrNotKnown: the provider has no such payment.
	ErrNotKnown = errors.New("payment: the provider does not know this payment")
	// ErrRefused: the provider understood the call and will never do it.
	ErrRefused = errors.New("payment: the provider refused")
	// ErrNotAllowed: the provider does not accept our credentials. That is a fault
	// of the configuration and says nothing about the payment: ask again.
	ErrNotAllowed = errors.New("payment: the provider does not accept our credentials")
)
