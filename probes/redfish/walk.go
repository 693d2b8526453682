package redfish

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"hwsagent/internal/panics"
	"hwsagent/probes/devices"
)

const (
	atOnce    = 2             // concurrent requests to one service: many controllers answer one at a time
	maxLevels = maxPages + 24 // links from the root
)

// source reads resources. It is safe for concurrent use.
type source interface {
	// read returns the resource of w, nil if there is none. A [*fatalError] ends the round.
	read(ctx context.Context, w want) (object, error)
	// stale requests that remembered resources be read again.
	stale()
	// at returns when the resource of that path was read, in milliseconds since 1970; 0 if in this round.
	at(path string) int64
}

// fatalError is an error after which further requests in the round are pointless.
type fatalError struct {
	err error
	why devices.Reason
}

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

// answer is the outcome of one want.
type answer struct {
	object object
	err    error
}

// walker reads a service.
type walker struct {
	source source
	guard  *panics.Guard
	// changed decides from the lines of [tree.health] whether the remembered resources must be read again.
	changed func(lines []string, ill bool) bool
}

// walk reads the service from its root. The tree is valid after an error, too; an error of one resource only loses that
// resource and those reached through it alone.
func (w *walker) walk(ctx context.Context) (*tree, error) {
	t := newTree()
	next := []want{{path: rootPath, role: "root"}}
	var failed failures
	asked, shown := false, 0
	for level := 0; len(next) > 0; level++ {
		if level == maxLevels {
			failed.add(fmt.Errorf("the links go further than %d levels from the root: the rest was not read", maxLevels))
			break
		}
		answers := w.fetch(ctx, next)
		var found []want
		for i, a := range answers {
			var fatal *fatalError
			switch {
			case errors.As(a.err, &fatal):
				failed.add(a.err)
				return t, failed.error()
			case a.err != nil:
				failed.add(fmt.Errorf("%s: %w", next[i].path, a.err))
			case a.object != nil:
				next[i].at = w.source.at(next[i].path)
				found = append(found, t.place(next[i], a.object)...)
			}
		}
		if lines, ill := t.health(); !asked && len(lines) > shown { // new lines may show a change
			shown = len(lines)
			if asked = w.changed(lines, ill); asked {
				w.source.stale()
			}
		}
		if len(found) == 0 {
			found = t.fallbacks()
		}
		next = found
	}
	if t.endless != "" {
		failed.add(fmt.Errorf("%s has more than %d pages: the rest was not read", t.endless, maxPages))
	}
	return t, failed.error()
}

// fetch reads several resources, atOnce at a time, and returns the answers in order.
func (w *walker) fetch(ctx context.Context, all []want) []answer {
	answers := make([]answer, len(all))
	if len(all) == 1 {
		answers[0].object, answers[0].err = w.source.read(ctx, all[0])
		return answers
	}
	group, over := errgroup.WithContext(context.WithoutCancel(ctx))
	group.SetLimit(atOnce)
	for i := range all {
		group.Go(func() error {
			if over.Err() != nil { // after a fatal error
				return nil
			}
			if err := w.guard.Run(func() { answers[i].object, answers[i].err = w.source.read(ctx, all[i]) }); err != nil {
				answers[i].err = err
			}
			if fatal, ok := errors.AsType[*fatalError](answers[i].err); ok {
				return fatal
			}
			return nil
		})
	}
	_ = group.Wait() // each answer has its own error
	return answers
}

// failures collects the errors of a round: a few in full, the rest as a count.
type failures struct {
	some []error
	more int
}

const maxShown = 4

func (f *failures) add(err error) {
	if len(f.some) == maxShown {
		f.more++
		return
	}
	f.some = append(f.some, err)
}

func (f *failures) error() error {
	if f.more > 0 {
		return errors.Join(append(f.some, fmt.Errorf("and %d more", f.more))...)
	}
	return errors.Join(f.some...)
}
