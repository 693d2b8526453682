//go:build race

package client

// underRace says that the race detector is on. It makes sync.Pool drop a part of the buffers
// that are put into it, so code that uses pools allocates more.
const underRace = true
