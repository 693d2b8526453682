package ipmi

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/bougou/go-ipmi/pkg/open"
)

// deviceTimeout is how long this machine's BMC may take for one answer. The kernel's driver itself gives up after five seconds.
const deviceTimeout = 6 * time.Second

// givenUp is how long an answer takes at least that is not the BMC's: the kernel's driver has waited in vain, and says in the BMC's
// place that it took too long. A BMC says so of a sensor behind it much sooner.
const givenUp = 2 * time.Second

// device is this machine's BMC, by the kernel's driver.
type device struct{ backend *open.DeviceBackend }

func openDevice(ctx context.Context, number int32) (link, error) {
	d := &device{backend: new(open.DeviceBackend)}
	if err := d.backend.Connect(ctx, number); err != nil {
		return nil, err
	}
	return d, nil
}

// ask implements link.
func (d *device) ask(ctx context.Context, lun, netFn, command byte, data ...byte) ([]byte, error) {
	limit := deviceTimeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)) // so that the round ends in its time, with what it has
	}
	if ctx.Err() != nil || limit <= 0 {
		return nil, cmp.Or(context.Cause(ctx), context.DeadlineExceeded)
	}
	began := time.Now()
	answer, err := d.backend.Send(ctx, &open.Request{NetFn: netFn, Cmd: command, LUN: lun, Data: data, TargetAddr: bmc, MyAddr: bmc}, limit)
	return deviceAnswer(answer, err, time.Since(began), limit)
}

// deviceAnswer is what came of a command that took so long, and had the time limit. A BMC that hangs is silent as one on the network
// is, so that the rest of the round is not asked for.
func deviceAnswer(answer []byte, err error, took, limit time.Duration) ([]byte, error) {
	switch {
	case err != nil && took >= limit: // the error does not wrap that of the deadline
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
