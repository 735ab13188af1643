package sandbox

import "time"

// CreateBody is the body of POST /v1/payments.
type CreateBody struct {
	IdempotencyKey string    `json:"idempotencyKey"`
	Amount         int64     `json:"amount"` // minor units
	Currency       string    `json:"currency"`
	Reference      string    `json:"reference"`
	Description    string    `json:"description"`
	ReturnURL      string    `json:"returnUrl"`
	CallbackURL    string    `json:"callbackUrl"`
	ExpiresAt      time.Time `json:"expiresAt"`
}

// Payment is what every payment call answers.
type Payment struct {
	ID             string    `json:"id"`
	URL            string    `json:"url"`
	State          string    `json:"state"` // open, processing, paid, declined, expired
	Reference      string    `json:"reference"`
	Amount         int64     `json:"amount"` // asked for
	CapturedAmount int64     `json:"capturedAmount"`
	RefundedAmount int64     `json:"refundedAmount"`
	Currency       string    `json:"currency"`
	ExpiresAt      time.Time `json:"expiresAt"`
}

// RefundBody is the body of POST /v1/payments/{id}/refunds.
type RefundBody struct {
	IdempotencyKey string `json:"idempotencyKey"`
	Amount         int64  `json:"amount"`
}

// Refund is its answer.
type Refund struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
}

// Event is the body of a callback.
type Event struct {
	Type      string    `json:"type"` // payment.paid, payment.declined, payment.expired
	CreatedAt time.Time `json:"createdAt"`
	Payment   Payment   `json:"payment"`
}
