package ipmi

import "github.com/bougou/go-ipmi/pkg/open"

// newBackend returns Microsoft's driver ipmidrv, by the class Microsoft_IPMI of WMI; the number of the device has no meaning.
func newBackend() backend { return new(open.COMBackend) }
