package ipmi

import "github.com/bougou/go-ipmi/pkg/open"

// newBackend returns the kernel's driver ipmi_devintf, at /dev/ipmi0.
func newBackend() backend { return new(open.DeviceBackend) }
