package remotewrite

import (
	"context"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/wal"
)

// Source is one target's end of the log, or that of its backlog. *wal.Lane implements it. One goroutine
// calls Next and Rewind; the other methods may be called from any.
type Source interface {
	// Next blocks until there is a commit after the last one returned, and returns
	// it. The entry is valid until the following call. The error is ctx's, or
	// wal.ErrClosed, or at the end of a backlog wal.ErrCaughtUp; damage is skipped and reported in the entry.
	Next(ctx context.Context) (*wal.Entry, error)

	// Rewind makes Next start again after the savepoint's acknowledged mark.
	Rewind()

	// Reserve makes durable that everything up to high may have been sent. It returns
	// at once when an earlier reservation covers high. Nothing beyond a reservation
	// may be sent.
	Reserve(high wal.Mark) error

	// SetShards says how many shards send what is reserved from now on; it is durable
	// with the next reservation. After a crash it tells how samples up to High were spread.
	SetShards(n int)

	// Advance records that everything up to and including to has its final outcome;
	// outcome counts the samples since the mark advanced to before. It is durable
	// within a second. Marks that the log has let go meanwhile are ignored: their
	// samples are counted already.
	//
	// Invariant: outcome.Sum() = to.Total - previous.Total.
	Advance(to wal.Mark, outcome wal.Outcome)

	// Reach is how far delivery has come, including what is not durable yet. It is not ok
	// for a backlog if there is none.
	Reach() (reach wal.Reach, ok bool)

	// Head is the mark of the last commit in the log.
	Head() wal.Mark
}

// Sender sends one request and reports what came of it. It never retries, except
// once where a kept connection turned out to be broken before the request was read.
// It is safe for concurrent use. *Client implements it.
type Sender interface {
	Send(ctx context.Context, r client.Request) client.Answer
}

// DeadLetters keeps samples that a receiver refused. Put returns when the letters
// are durable; only then may the savepoint pass them. List returns those of earlier
// processes, too, as many as are kept.
type DeadLetters interface {
	Put(letters []Letter) error
	List() ([]Letter, error)
}

// Letter is one refused sample in the dead-letter store, or several where a refused
// batch could not be taken apart within the limit.
type Letter struct {
	Time      time.Time `json:"time"`              // when it was refused
	Series    string    `json:"series"`            // labels as sent, in the exposition notation
	Timestamp int64     `json:"timestamp_ms"`      // the sample's
	Value     string    `json:"value"`             // formatted so that NaN and stale markers survive
	Reason    string    `json:"reason"`            // a wal.Reason
	Status    int       `json:"status"`            // the HTTP status of the refusal, 0 if there was no answer
	Text      string    `json:"text"`              // what the server said, at most 1 KiB; without an answer, why there was none
	Samples   int       `json:"samples,omitempty"` // how many samples the letter stands for, if not one
}
