package ipmi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bougou/go-ipmi/pkg/open"
)

// deviceTimeout bounds one answer of this machine's BMC. The kernel's driver itself gives up after five seconds.
const deviceTimeout = 6 * time.Second

// givenUp is the least duration of an answer that comes from the kernel's driver instead of the BMC: the driver waits in vain and
// then answers in the BMC's name that the command took too long. A BMC reports a slow sensor behind it much sooner.
const givenUp = 2 * time.Second

// backend is the operating system's driver of this machine's BMC.
type backend interface {
	Connect(ctx context.Context, number int32) error
	Send(ctx context.Context, r *open.Request, limit time.Duration) ([]byte, error)
	Close(ctx context.Context) error
}

// device is this machine's BMC, accessed through the driver.
type device struct{ backend backend }

func openDevice(ctx context.Context, number int32) (link, error) {
	d := &device{backend: newBackend()}
	if d.backend == nil {
		return nil, errors.New("a BMC of this machine is read on Linux and Windows only")
	}
	if err := d.backend.Connect(ctx, number); err != nil {
		return nil, err
	}
	return d, nil
}

// ask implements link.
func (d *device) ask(ctx context.Context, lun, netFn, command byte, data ...byte) ([]byte, error) {
	limit := deviceTimeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)) // so that the round ends in time, with a partial result
	}
	if ctx.Err() != nil || limit <= 0 {
		return nil, cmp.Or(context.Cause(ctx), context.DeadlineExceeded)
	}
	began := time.Now()
	answer, err := d.backend.Send(ctx, &open.Request{NetFn: netFn, Cmd: command, LUN: lun, Data: data, TargetAddr: bmc, MyAddr: bmc}, limit)
	return deviceAnswer(answer, err, time.Since(began), limit)
}

// deviceAnswer interprets the result of a command, given its duration and time limit. A BMC that hangs counts as silent, like one
// on the network, so that the rest of the round is skipped.
func deviceAnswer(answer []byte, err error, took, limit time.Duration) ([]byte, error) {
	switch {
	case err != nil && took >= limit: // err does not wrap the deadline's error
		return nil, fmt.Errorf("%w within %s", errSilent, limit.Round(time.Millisecond))
	case err != nil:
		return nil, fmt.Errorf("ask the kernel's driver: %w", err)
	case len(answer) == 0:
		return nil, errShort
	case completion(answer[0]) == tookTooLong && took >= givenUp:
		return nil, fmt.Errorf("%w: the kernel's driver gave it up after %s", errSilent, took.Round(time.Millisecond))
	case answer[0] != 0:
		return nil, completion(answer[0])
	}
	return answer[1:], nil
}

// close implements link.
func (d *device) close(ctx context.Context) { _ = d.backend.Close(ctx) }
