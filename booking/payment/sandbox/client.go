package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"usher/booking/payment"
)

// Options configure a Client; all but HTTP are needed.
type Options struct {
	BaseURL     string   // of the provider's server, without a trailing slash
	APIKey      string   // sent as Bearer
	Secrets     [][]byte // callback secrets, every one valid; at least 32 bytes each
	CallbackURL string   // where the provider delivers
	HTTP        *http.Client
}

// Client implements payment.Provider.
type Client struct{ opts Options }

var _ payment.Provider = (*Client)(nil)

// New builds a client; it calls nobody.
func New(o Options) (*Client, error) {
	var errs []error
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	for name, v := range map[string]string{"base URL": o.BaseURL, "callback URL": o.CallbackURL} {
		if u, err := url.Parse(v); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			errs = append(errs, fmt.Errorf("the %s must be an http(s) address", name))
		}
	}
	if o.APIKey == "" {
		errs = append(errs, errors.New("an API key is needed"))
	}
	if len(o.Secrets) == 0 {
		errs = append(errs, errors.New("a callback secret is needed"))
	}
	for _, s := range o.Secrets {
		if len(s) < 32 {
			errs = append(errs, errors.New("a callback secret has fewer than 32 bytes"))
		}
	}
	if o.HTTP == nil {
		t := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second}
		// The caller's context is the time limit; nothing here follows a redirect
		// with the API key in hand.
		o.HTTP = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("sandbox: options: %w", err)
	}
	return &Client{opts: o}, nil
}

// Name is what payments of this provider are recorded under.
func (c *Client) Name() string { return "sandbox" }

// Create opens a payment page.
func (c *Client) Create(ctx context.Context, r payment.CreateRequest) (payment.Created, error) {
	var p Payment
	err := c.call(ctx, http.MethodPost, "/v1/payments", CreateBody{
		IdempotencyKey: r.Key, Amount: r.Amount, Currency: r.Currency, Reference: r.Reference,
		Description: r.Description, ReturnURL: r.ReturnURL, CallbackURL: c.opts.CallbackURL, ExpiresAt: r.ExpiresAt,
	}, &p)
	if err != nil {
		return payment.Created{}, err
	}
	return payment.Created{ProviderPaymentID: p.ID, URL: p.URL}, nil
}

// Fetch tells what became of a payment.
func (c *Client) Fetch(ctx context.Context, id string) (payment.Outcome, error) {
	var p Payment
	if err := c.call(ctx, http.MethodGet, "/v1/payments/"+url.PathEscape(id), nil, &p); err != nil {
		return payment.Outcome{}, err
	}
	return outcome(p)
}

// Expire closes a page nobody has paid on.
func (c *Client) Expire(ctx context.Context, id string) (payment.Outcome, error) {
	var p Payment
	if err := c.call(ctx, http.MethodPost, "/v1/payments/"+url.PathEscape(id)+"/expire", struct{}{}, &p); err != nil {
		return payment.Outcome{}, err
	}
	return outcome(p)
}

// Refund gives money back.
func (c *Client) Refund(ctx context.Context, r payment.RefundRequest) (string, error) {
	var out Refund
	err := c.call(ctx, http.MethodPost, "/v1/payments/"+url.PathEscape(r.ProviderPaymentID)+"/refunds",
		RefundBody{IdempotencyKey: r.Key, Amount: r.Amount}, &out)
	return out.ID, err
}

// ParseCallback verifies and reads one delivery.
func (c *Client) ParseCallback(header func(string) string, raw []byte, now time.Time) (payment.Event, error) {
	id, err := Verify(c.opts.Secrets, header, raw, now)
	if err != nil {
		return payment.Event{}, fmt.Errorf("%w: %w", payment.ErrSignature, err)
	}
	var e Event
	if err := json.Unmarshal(raw, &e); err != nil {
		// Signed by the provider and not readable: record it, do not ask for it again.
		return payment.Event{ID: id, Kind: "unreadable"}, nil //nolint:nilerr // see above
	}
	o, err := outcome(e.Payment)
	if err != nil {
		return payment.Event{ID: id, Kind: e.Type}, nil //nolint:nilerr // a kind of event we do not act on
	}
	return payment.Event{ID: id, Kind: e.Type, Outcome: o}, nil
}

func outcome(p Payment) (payment.Outcome, error) {
	s := payment.Status(p.State)
	switch s {
	case payment.StatusOpen, payment.StatusProcessing, payment.StatusPaid, payment.StatusDeclined, payment.StatusExpired:
	default:
		return payment.Outcome{}, fmt.Errorf("sandbox: unknown state %q", p.State)
	}
	return payment.Outcome{ProviderPaymentID: p.ID, Reference: p.Reference, Status: s, Amount: p.CapturedAmount, Currency: p.Currency}, nil
}

// answerLimit bounds what is read of an answer.
const answerLimit = 64 << 10

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("sandbox: encode: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.opts.BaseURL+path, body)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.opts.APIKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.opts.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("sandbox: %s %s: %w", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, answerLimit))
	if err != nil {
		return fmt.Errorf("sandbox: %s %s: %w", method, path, err)
	}
	switch {
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("sandbox: %s: %w", path, payment.ErrNotKnown)
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		return fmt.Errorf("sandbox: %s %s: %w: status %d", method, path, payment.ErrNotAllowed, res.StatusCode)
	case res.StatusCode == http.StatusRequestTimeout || res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500:
		return fmt.Errorf("sandbox: %s %s: status %d", method, path, res.StatusCode)
	case res.StatusCode >= 300:
		return fmt.Errorf("sandbox: %s %s: %w: status %d: %.200q", method, path, payment.ErrRefused, res.StatusCode, raw)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("sandbox: %s %s: answer: %w", method, path, err)
	}
	return nil
}
