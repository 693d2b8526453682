package replay

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/pace"
	"hwsagent/remotewrite/wire"
)

// sendBatch sends the first samples of the batch, as many as fit one request. They leave
// the batch when all of them have their outcome.
func (r *Replay) sendBatch(ctx context.Context) error {
	if r.leaveOut(); len(r.batch) == 0 {
		return nil
	}
	n, extra, again := r.size(), extraRequests, r.mayBeStored(r.batch[0])
	if again {
		extra = 2 * n // enough to send each alone
	}
	r.newest = nil
	taken, single := r.count.Delivered, r.single
	last, err := r.deliver(ctx, r.batch[:n:n], &extra)
	if errors.Is(err, errNotNewer) {
		r.version = wire.V1
		err := r.sendBatch(ctx)
		if older, ok := errors.AsType[*Error](err); ok && older.First && older.Answer.Status == client.StatusUnsupported && last.Status != client.StatusUnsupported {
			older.Answer = last // the receiver takes 2.0 only, so its answer to that is the reason
		}
		return err
	}
	if err != nil {
		return err
	}
	switch {
	case r.o.Sender == nil || r.count.Delivered > taken:
		r.tested, r.barren = true, 0
	case again && last.SaysLate(): // no reason to end
		if !r.tested {
			r.refused(r.batch[0], last)
		}
	case !r.tested:
		return r.stopped(r.batch[0], last)
	default:
		if r.barren++; r.barren == 1 {
			r.fertile = r.batch[0].commit - 1
		}
		if r.barren == barrenRequests {
			switch well, err := r.takesAgain(ctx); {
			case err != nil:
				return err
			case !well:
				return r.stopped(r.batch[0], last)
			}
			r.barren = 0 // the samples were at fault: those of one series may fill several requests
		}
	}
	if again {
		r.single = single // these refusals say nothing about the later samples
	}
	r.batch = append(r.batch[:0], r.batch[n:]...)
	return nil
}

// mayBeStored reports whether the replay that this one continues may have delivered a sample: it ended within the commit. A
// receiver that takes samples in order refuses such samples as late, except each series' last.
func (r *Replay) mayBeStored(p sample) bool { return r.o.After > 0 && p.commit == r.o.After+1 }

// cutCommit returns how many of the first n samples of the batch are of the commit of the first.
func (r *Replay) cutCommit(n int) int {
	if i := slices.IndexFunc(r.batch[:n], func(p sample) bool { return p.commit != r.batch[0].commit }); i >= 0 {
		return i
	}
	return n
}

// size returns how many of the first samples of the batch the next request has.
func (r *Replay) size() int {
	n := min(len(r.batch), r.limit)
	switch {
	case !r.tested && r.o.Sender != nil:
		return 1
	case r.mayBeStored(r.batch[0]):
		return r.uniquePrefix(r.cutCommit(n))
	case r.single:
		return r.uniquePrefix(n)
	}
	return n
}

// takesAgain sends the last accepted sample once more, and reports whether the receiver accepts it: then it refuses samples, and not
// everything.
func (r *Replay) takesAgain(ctx context.Context) (bool, error) {
	if r.good.series == nil {
		return false, nil
	}
	a, err := r.send(ctx, []sample{r.good})
	return err == nil && verdict(a) == client.Delivered, err
}

// leaveOut removes and counts the samples that the version cannot carry.
func (r *Replay) leaveOut() {
	r.batch = slices.DeleteFunc(r.batch, func(p sample) bool {
		carried := r.version == wire.V2 || p.isFloat() || r.o.Config.CarriesHistogram(p.h, p.fh)
		if !carried {
			r.count.Unsupported++
		}
		return !carried
	})
}

// stopped returns the error for a sample that the target does not accept.
func (r *Replay) stopped(p sample, a client.Answer) error {
	return &Error{First: !r.tested, Answer: a, Series: p.series.labels().String(), Time: time.UnixMilli(p.t)}
}

// deliver sends samples until each has its outcome, and bisects a refused request.
// It returns the last answer that was a refusal.
func (r *Replay) deliver(ctx context.Context, samples []sample, extra *int) (refusal client.Answer, err error) {
	a, err := r.send(ctx, samples)
	if err != nil {
		return a, err
	}
	n := uint64(len(samples))
	switch v := verdict(a); {
	case v == client.Delivered:
		written := n
		if a.Written.Known {
			written = uint64(a.Written.Stored(len(samples)))
		}
		r.count.Delivered += written
		if written == n {
			r.good = samples[n-1]
		}
		r.count.Unconfirmed += n - written
		return client.Answer{}, nil
	case !r.tested && r.version == wire.V2 && (v == client.Older || v == client.Suspect && !a.Written.Known || v == client.Retry && a.Status >= 500): // 408, 425 and 429 say nothing about the version
		return a, errNotNewer
	case v == client.Hold, v == client.Discard, v == client.Older, v == client.Retry: // Retry: send gave up
		return a, r.stopped(samples[0], a)
	case n == 1:
		if r.tested {
			r.refused(samples[0], a)
		}
		return a, nil
	case v == client.Split:
		r.limit = max(min(r.limit, len(samples)/2), 1)
	case *extra < 2:
		r.count.Unconfirmed += n
		return a, nil
	default:
		*extra -= 2
		r.blame(samples)
	}
	half := len(samples) / 2
	for _, part := range [2][]sample{samples[:half], samples[half:]} {
		b, err := r.deliver(ctx, part, extra)
		if err != nil {
			return b, err
		}
		if b.Status != 0 {
			a = b
		}
	}
	return a, nil
}

// blame records the samples of a refused request that a refusal alone can prove bad: the last
// of each series. The receiver may have stored the good part of the request, and then it refuses
// older samples of a series as late.
func (r *Replay) blame(samples []sample) {
	r.single = true
	if r.newest != nil {
		return // the samples are a part of that request
	}
	r.newest = map[uint64]int64{}
	for _, p := range samples {
		r.newest[p.series.hash] = p.t
	}
}

// verdict says what an answer means. The entry's settings for 429 and refusals do not apply: they decide what its queue drops.
func verdict(a client.Answer) client.Verdict {
	return client.Classify(a, config.Policy{})
}

// send sends one request and retries temporary failures. The error is ctx's.
func (r *Replay) send(ctx context.Context, samples []sample) (client.Answer, error) {
	r.encode(samples)
	if r.o.Sender == nil {
		r.count.Requests++
		r.count.Bytes += uint64(len(r.body))
		return client.Answer{Status: 204}, ctx.Err()
	}
	if err := r.pace(ctx, len(samples)); err != nil {
		return client.Answer{}, err
	}
	began := time.Now()
	for attempt := 0; ; attempt++ {
		a := r.post(ctx, len(samples), attempt)
		switch {
		case ctx.Err() != nil && a.Status == 0:
			return a, ctx.Err()
		case verdict(a) != client.Retry:
			r.backoff.Ease(r.o.Rand())
			return a, nil
		}
		pause := max(r.backoff.Next(r.o.Rand(), a.Status == 0), pace.RetryLate(a.RetryAfter, r.o.Rand()))
		if time.Since(began)+pause > patience {
			return a, nil
		}
		if attempt == 0 && r.o.Retrying != nil {
			r.o.Retrying(a)
		}
		if err := pace.Sleep(ctx, pause); err != nil {
			return a, err
		}
	}
}

// post sends the body. When ctx ends, the request gets grace to finish.
func (r *Replay) post(ctx context.Context, n, attempt int) client.Answer {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-sending.Done():
		case <-t.C:
			cancel()
		}
	})
	defer stop()
	r.count.Requests++
	r.count.Bytes += uint64(len(r.body))
	a := r.o.Sender.Send(sending, client.Request{Body: r.body, Version: r.version, Samples: n, Attempt: attempt})
	a.Version, a.Samples = r.version, n
	return a
}

// pace waits until the rate limit allows n samples.
func (r *Replay) pace(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil || r.o.Rate <= 0 {
		return err
	}
	now := time.Now()
	if r.next.Before(now) {
		r.next = now
	}
	wait := r.next.Sub(now)
	r.next = r.next.Add(time.Duration(min(float64(n)/r.o.Rate*float64(time.Second), math.MaxInt64/4)))
	if wait == 0 {
		return nil
	}
	return pace.Sleep(ctx, wait)
}
