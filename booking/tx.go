package booking

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Querier is what a pool, a connection and a transaction have in common.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// txAttempts bounds the repetition of a transaction the server itself undid.
const txAttempts = 5

// InTx runs fn in one READ COMMITTED transaction, whatever the server's default
// is: under REPEATABLE READ a statement after a lock would still count by the
// snapshot from before the wait. fn runs again when the server chose the
// transaction as a deadlock's or a serialization's victim, so it must have no
// effect outside tx. The rollback survives ctx: a transaction left open would
// keep its connection, and the pool's Close, waiting for ever.
// fn must not ask the pool for a second connection.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := inTx(ctx, pool, fn)
		if err == nil || !undoneByServer(err) || attempt == txAttempts {
			return err
		}
		pause := time.Duration(rand.Int64N(int64(attempt) * int64(10*time.Millisecond)))
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}

func inTx(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) (err error) {
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return fmt.Errorf("booking: begin: %w", err)
	}
	defer func() {
		if err == nil {
			return
		}
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = tx.Rollback(undo)
	}()
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("booking: commit: %w", err)
	}
	return nil
}

// undoneByServer: the server rolled the transaction back entirely and says so.
func undoneByServer(err error) bool {
	switch sqlState(err) {
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return true
	}
	return false
}

// sqlState is the error's SQLSTATE, "" when the server sent none.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// Unreachable reports whether err means that the database cannot be asked at the
// moment, as opposed to an answer of its own.
func Unreachable(err error) bool {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch code := sqlState(err); {
	case code == "":
		var network net.Error
		return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	case code[:2] == "57" || code[:2] == "53" || code[:2] == "08": // shut down or timed out, no room, connection
		return true
	}
	return false
}
