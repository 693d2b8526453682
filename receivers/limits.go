package receivers

import "time"

// Limits bound the requests of one receiver. All are above 0, see [DefaultLimits].
type Limits struct {
	BodyBytes    int64 // of a request as received
	DecodedBytes int64 // of a request after decompression
	MemoryBytes  int64 // of all requests in flight together, including their decoded objects

	Series  int // of one request; a series that is split counts each time
	Samples int // of one request, histograms included
	// ActiveSeries bounds how many different series may arrive within one to two hours; one counts once more for each 2
	// KiB of its labels. Further series are refused one by one.
	ActiveSeries int

	Labels          int // of one series, its name not counted
	LabelNameBytes  int
	LabelValueBytes int

	Requests    int // decoded and committed at the same time
	Connections int
}

// DefaultLimits are far above what Prometheus, vmagent and the OpenTelemetry SDKs send with
// their defaults.
func DefaultLimits() Limits {
	return Limits{
		BodyBytes: 8 << 20, DecodedBytes: 32 << 20, MemoryBytes: 128 << 20,
		Series: 50_000, Samples: 200_000, ActiveSeries: 200_000,
		Labels: 64, LabelNameBytes: 512, LabelValueBytes: 4096,
		Requests: 4, Connections: 4096,
	}
}

// Time limits of a request. They bound how long a request without progress keeps its resources.
const (
	headerTimeout = 5 * time.Second
	stallTimeout  = 5 * time.Second        // between two pieces of a body
	bodyTimeout   = 30 * time.Second       // of a whole body
	unreadTimeout = 5 * time.Second        // from the beginning of a request, for a body that no handler reads
	lingerTimeout = 500 * time.Millisecond // after a refusal, for data in flight
	slotTimeout   = 5 * time.Second        // how long a whole body waits for its turn
	readTimeout   = 30 * time.Second       // how long decoding may take then
	writeTimeout  = 90 * time.Second       // from the head of a request to the end of its answer; a slow disk takes its time
	idleTimeout   = 2 * time.Minute

	maxHeaderBytes = 32 << 10
)
