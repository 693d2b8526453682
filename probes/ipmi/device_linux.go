package ipmi

import (
	"context"
	"fmt"
	"time"

	"github.com/bougou/go-ipmi/pkg/open"
)

// deviceTimeout is how long this machine's BMC may take for one answer. The kernel's driver itself gives up after five seconds.
const deviceTimeout = 6 * time.Second

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
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	answer, err := d.backend.Send(ctx, &open.Request{NetFn: netFn, Cmd: command, LUN: lun, Data: data, TargetAddr: bmc, MyAddr: bmc}, deviceTimeout)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask the kernel's driver: %w", err)
	case len(answer) == 0:
		return nil, errShort
	case answer[0] != 0:
		return nil, completion(answer[0])
	}
	return answer[1:], nil
}

// close implements link.
func (d *device) close(ctx context.Context) { _ = d.backend.Close(ctx) }
