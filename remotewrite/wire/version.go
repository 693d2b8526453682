package wire

// Version is a version of the remote-write protocol.
type Version uint8

// The versions.
const (
	V1 Version = iota // 1.0, prometheus.WriteRequest
	V2                // 2.0, io.prometheus.write.v2.Request

	NumVersions
)

// String returns the version as in metrics, status and logs.
func (v Version) String() string { return [NumVersions]string{"1.0", "2.0"}[v] }
