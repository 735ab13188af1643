package payment

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
)

// refundJob pays one refund out. It is inserted in the transaction that decides
// the refund, so neither exists without the other.
type refundJob struct {
	ShowtimeID string    `json:"showtimeId"`
	RefundID   uuid.UUID `json:"refundId"`
}

// Kind names the job in the job table; it never changes.
func (refundJob) Kind() string { return "payment_refund" }

// InsertOpts keep one live job a refund, so that the reconciler may insert again
// what a discarded job left behind. A completed or discarded job does not count.
func (refundJob) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue:       jobQueue,
		MaxAttempts: 25, // with the default backoff about three weeks
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateRetryable, rivertype.JobStateScheduled,
		}},
	}
}

const (
	jobQueue = "payment"
	// jobsStop bounds how long a running job may finish at the end.
	jobsStop = 5 * time.Second
	// rescueAfter must exceed every job's time limit.
	rescueAfter = 5 * time.Minute
)

type refundWorker struct {
	river.WorkerDefaults[refundJob]
	desk *Desk
}

func (w *refundWorker) Work(ctx context.Context, job *river.Job[refundJob]) error {
	return w.desk.payOut(ctx, job.Args.ShowtimeID, job.Args.RefundID)
}

// Timeout leaves room for the provider's time limit and one transaction.
func (w *refundWorker) Timeout(*river.Job[refundJob]) time.Duration {
	return w.desk.opts.ProviderTimeout + 20*time.Second
}

// newJobs builds the job client; it starts nothing.
func newJobs(d *Desk) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &refundWorker{desk: d}); err != nil {
		return nil, fmt.Errorf("payment: jobs: %w", err)
	}
	c, err := river.NewClient(riverpgxv5.New(d.pool), &river.Config{
		Logger:  slog.New(quiet{d.log.Handler()}),
		Queues:  map[string]river.QueueConfig{jobQueue: {MaxWorkers: 4}},
		Workers: workers,
		// A job whose process died reads "running" until this is over; the default of
		// an hour is long for somebody's money.
		RescueStuckJobsAfter: rescueAfter,
	})
	if err != nil {
		return nil, fmt.Errorf("payment: jobs: %w", err)
	}
	return c, nil
}

// runJobs works jobs until ctx ends, then lets running ones finish for a while.
// A job cut short is picked up by another process; its key makes that harmless.
func (d *Desk) runJobs(ctx context.Context) error {
	// Not ctx: its end would cancel the jobs in the middle of their call.
	if err := d.jobs.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("payment: start jobs: %w", err)
	}
	<-ctx.Done()
	soft, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobsStop)
	defer cancel()
	if err := d.jobs.Stop(soft); err == nil {
		return nil
	}
	hard, cancelHard := context.WithTimeout(context.WithoutCancel(ctx), jobsStop)
	defer cancelHard()
	if err := d.jobs.StopAndCancel(hard); err != nil {
		return fmt.Errorf("payment: stop jobs: %w", err)
	}
	return nil
}

// quiet passes warnings and errors on; the job library's news is not ours.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}
func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }
func (q quiet) WithGroup(n string) slog.Handler      { return quiet{q.Handler.WithGroup(n)} }
