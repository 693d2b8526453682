package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// Bounds of the growing pauses between failing requests.
const (
	shortestPause = time.Second
	longestPause  = 30 * time.Second
)

// update is a message of a reflector.
type update struct {
	from    *reflector
	whole   bool // objects is the complete list
	objects []object
	gone    []object
	failed  bool   // problem is set
	problem string // why the resource cannot be read; "" if it can
}

// reflector reports the objects of one resource in one namespace, or in all, and their changes. It belongs to one
// goroutine, except for its api's connection.
type reflector struct {
	api     api
	out     chan<- update
	failed  func() // counts a failure
	event   func(k kind, what string)
	pause   time.Duration // length of the next pause
	least   time.Duration // the shortest
	room    *room
	problem string
}

// run lists and watches until ctx ends.
func (r *reflector) run(ctx context.Context) {
	version := "0"
	for ctx.Err() == nil {
		all, newest, err := r.api.list(ctx, version)
		if err == nil {
			version = newest
			r.room = newRoom(r.api.where())
			for _, o := range all {
				_ = r.room.take(o) // cannot fail: the list checked the limits
			}
			if !r.send(ctx, update{from: r, whole: true, objects: all}) {
				return
			}
			version, err = r.follow(ctx, version)
		} else {
			r.tell(ctx, "list", err)
		}
		if expired(err) {
			version = ""
		}
		r.rest(ctx, err)
	}
}

// follow watches from a version until a new list is needed, and returns the version for that list.
func (r *reflector) follow(ctx context.Context, version string) (string, error) {
	barren := 0
	for ctx.Err() == nil {
		begin := time.Now()
		fresh := false
		last := watchTime + rand.N(watchTime).Truncate(time.Second) // #nosec G404 -- it spreads requests
		err := r.api.watch(ctx, version, last, func() { r.tell(ctx, "watch", nil) }, func(c change) error {
			fresh = true
			version = c.version
			return r.pass(ctx, c)
		})
		if ctx.Err() != nil {
			return version, nil
		}
		barren++
		if fresh || time.Since(begin) > longestPause {
			r.pause, barren = r.least, 0
		}
		if barren >= maxBarren && (err == nil || cut(err)) {
			err = &barrenError{err}
		}
		_, full := errors.AsType[*tooMuchError](err) // may be due to former states: the next list decides
		if err != nil && !expired(err) && !cut(err) && !full && !errors.Is(err, errMoved) {
			r.tell(ctx, "watch", err)
		}
		if relist(err) {
			return version, err
		}
		r.rest(ctx, err)
	}
	return version, nil
}

// pass sends a change on.
func (r *reflector) pass(ctx context.Context, c change) error {
	n := update{from: r}
	switch {
	case c.object == nil:
		return nil
	case c.gone:
		r.event(r.api.kind, "delete")
		r.room.free()
		n.gone = []object{c.object}
	case c.added:
		r.event(r.api.kind, "add")
		if err := r.room.take(c.object); err != nil {
			return err
		}
		n.objects = []object{c.object}
	default:
		r.event(r.api.kind, "update")
		if err := r.room.grow(c.object); err != nil {
			return err
		}
		n.objects = []object{c.object}
	}
	r.send(ctx, n)
	return nil
}

// relist reports whether a watch that ended with err leaves a gap, or is impossible.
func relist(err error) bool {
	_, answered := errors.AsType[*statusError](err)
	_, wrong := errors.AsType[*eventMistake](err)
	_, full := errors.AsType[*tooMuchError](err)
	_, barren := errors.AsType[*barrenError](err)
	return answered || wrong || full || barren || errors.Is(err, errMoved)
}

// maxBarren is how many watches in a row may end at once without a change, before lists replace them.
const maxBarren = 5

// barrenError means that watches end at once.
type barrenError struct{ last error }

func (e *barrenError) Error() string {
	text := "the server, or something before it, ends each watch at once"
	if e.last != nil {
		text += ": " + e.last.Error()
	}
	return text
}

// cut reports whether err is the end of a working connection: the next request shows whether there is a problem.
func cut(err error) bool {
	_, opened := errors.AsType[*cutError](err)
	_, barren := errors.AsType[*barrenError](err)
	return opened && !barren
}

// send sends an update, and reports whether it succeeded before ctx ended.
func (r *reflector) send(ctx context.Context, n update) bool {
	select {
	case r.out <- n:
		return true
	case <-ctx.Done():
		return false
	}
}

// tell reports why the resource cannot be read, or that it can.
func (r *reflector) tell(ctx context.Context, verb string, err error) {
	if ctx.Err() != nil {
		return
	}
	now := ""
	if err != nil {
		r.failed()
		now = fmt.Sprintf("%s %s: %v%s", verb, r.api.where(), err, r.hint(err))
	}
	if now != r.problem {
		r.problem = now
		r.send(ctx, update{from: r, failed: true, problem: now})
	}
}

// rest waits before the next request, longer after each failure.
func (r *reflector) rest(ctx context.Context, err error) {
	if r.pause == 0 {
		r.pause = r.least
	}
	d := r.pause/2 + rand.N(r.pause) // #nosec G404 -- it spreads requests
	if e, ok := errors.AsType[*statusError](err); ok {
		d = max(d, min(e.wait, longestPause))
	}
	r.pause = min(2*r.pause, longestPause)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// hint returns the remedy for err.
func (r *reflector) hint(err error) string {
	e, ok := errors.AsType[*statusError](err)
	if !ok {
		return ""
	}
	res := r.api.kind.resource()
	switch e.code {
	case http.StatusUnauthorized:
		return "; the API server does not accept the token, certificate or password: renew it"
	case http.StatusForbidden:
		rule := "ClusterRole"
		if res.namespaced && r.api.namespace != "" {
			rule = "Role in namespace " + r.api.namespace
		}
		return fmt.Sprintf("; give the agent's account a %s with apiGroups: [%q], resources: [%s], verbs: [list, watch]", rule, res.group, res.name)
	case http.StatusNotFound:
		return fmt.Sprintf("; the address is not that of an API server, or it does not have %s of %s/v1", res.name, groupName(res.group))
	}
	return ""
}

func groupName(group string) string {
	if group == "" {
		return "core"
	}
	return group
}
