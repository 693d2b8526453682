package host

import (
	"context"

	"hwsagent/probes"
)

// once reads something in one go, in a goroutine of its own under guard: a file of procfs can wait for a
// lock of the kernel.
type once struct {
	guard guard[answer]

	// query may run concurrently with itself when it hangs: it changes nothing that it did
	// not make. errAbsent where there is nothing to read.
	query func() (samples, error)
}

// answer is what a query returned.
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
