package remotewrite

import (
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/metadata"
)

// Limits of the metadata kept from remote write 1.0.
const (
	maxFamilies      = 10_000
	maxMetadataBytes = 4096 // of one family: name, help and unit
)

// families keeps the metadata of metric families from senders. It is safe for concurrent use.
type families struct {
	mu    sync.RWMutex
	known map[string]metadata.Metadata
}

func newFamilies() *families { return &families{known: map[string]metadata.Metadata{}} }

// note stores the metadata of a family, and reports whether there was room.
func (f *families) note(name string, m metadata.Metadata) bool {
	if len(name)+len(m.Help)+len(m.Unit) > maxMetadataBytes {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.known[name]; !ok && len(f.known) >= maxFamilies {
		return false
	}
	f.known[name] = m
	return true
}

// empty reports whether no metadata has come yet.
func (f *families) empty() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.known) == 0
}

// of returns the family of a series by its name: the name itself, or without the suffix of a histogram's, summary's or
// counter's series.
func (f *families) of(series string) (family string, m metadata.Metadata) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if m, ok := f.known[series]; ok {
		return series, m
	}
	for _, end := range [...]string{"_bucket", "_count", "_sum", "_total", "_info", "_created"} {
		if name, ok := strings.CutSuffix(series, end); ok {
			if m, ok := f.known[name]; ok {
				return name, m
			}
		}
	}
	return "", m
}
