package remotewrite

import (
	"context"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// Source is one target's cursor in the log, or in its backlog. *wal.Lane implements it. One goroutine calls Next,
// Rewind and Release; the other methods are safe for concurrent use.
type Source interface {
	// Next blocks until there is a commit after the last one returned, and returns it. The entry is valid until the
	// next call. The error is ctx's, wal.ErrClosed, or wal.ErrCaughtUp at the end of a backlog. Damage is skipped and
	// reported in the entry.
	Next(ctx context.Context) (*wal.Entry, error)

	// Rewind makes Next restart after the savepoint's acknowledged mark.
	Rewind()

	// Release frees memory before a long pause without a call of Next. The last entry is not valid any more.
	Release()

	// Reserve records, so that a kill keeps it, that everything up to high may have been sent. Samples beyond must not be
	// sent before. It returns at once when an earlier reservation covers high.
	Reserve(high wal.Mark) error

	// Advance records that all samples up to and including to have their final outcome; outcome counts the samples
	// since the previous mark. It is durable within a second. Advance ignores marks that the log has dropped meanwhile:
	// their samples are counted already.
	//
	// Invariant: outcome.Sum() = to.Total - previous.Total.
	Advance(to wal.Mark, outcome queue.Outcome)

	// Reach returns how far delivery has come, including progress that is not durable yet. It is not ok for a backlog
	// that does not exist.
	Reach() (reach queue.Reach, ok bool)

	// Head returns the mark of the last commit in the log.
	Head() wal.Mark
}

// Sender sends one request and returns the answer. It never retries, except once if a kept connection turns out to be
// broken before the request was read. It is safe for concurrent use. *client.Client implements it.
type Sender interface {
	Send(ctx context.Context, r client.Request) client.Answer
}

// DeadLetters stores samples that a receiver refused. Put returns when the letters are durable; only then may the
// savepoint pass their samples. List also returns the letters of earlier processes, as many as are kept.
type DeadLetters interface {
	Put(letters []Letter) error // the letters are durable if it returns nil
	List() ([]Letter, error)    // oldest first
}

// Letter is one refused sample in the dead-letter store, or several if a refused batch could not be divided within the
// limit.
type Letter struct {
	Time      time.Time `json:"time"`              // when it was refused
	Series    string    `json:"series"`            // labels as sent, in the exposition notation
	Timestamp int64     `json:"timestamp_ms"`      // the sample's
	Value     string    `json:"value"`             // formatted so that NaN and stale markers survive
	Reason    string    `json:"reason"`            // a queue.Reason
	Status    int       `json:"status"`            // the HTTP status of the refusal, 0 if there was no answer
	Text      string    `json:"text"`              // the server's text, at most 1 KiB; without an answer, why there was none
	Samples   int       `json:"samples,omitempty"` // how many samples the letter stands for, if not one
}
