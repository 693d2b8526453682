package host

import (
	"context"

	"hwsagent/probes"
)

// once performs a single read in its own goroutine under guard: a file of procfs can block on a lock of the kernel.
type once struct {
	guard guard[answer]

	// query may run concurrently with itself if it hangs: it must not change anything that it did not create. It
	// returns errAbsent if there is nothing to read.
	query func() (samples, error)
}

// answer is the result of a query.
type answer struct {
	samples samples
	err     error
}

func newOnce(e *environment, query func() (samples, error)) *once {
	return &once{guard: guard[answer]{limit: e.limit, panics: e.panics}, query: query}
}

func (o *once) read(ctx context.Context, r *probes.Round) error {
	got := o.guard.all(ctx, []string{"all"}, func(string) answer {
		s, err := o.query()
		return answer{s, err}
	})[0]
	if got.err != nil {
		return got.err
	}
	for _, s := range got.value.samples {
		r.AddSample(s)
	}
	return got.value.err
}
