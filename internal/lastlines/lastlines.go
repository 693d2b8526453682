// Package lastlines keeps the last lines of a log in memory, for a report about a fault.
package lastlines

import (
	"bytes"
	"sync"
)

// maxLine bounds a kept line, in bytes; the rest of a longer one is left out.
const maxLine = 4 << 10

// Buffer is an [io.Writer] that keeps the last lines written to it. The zero value keeps none. It is safe for concurrent use.
type Buffer struct {
	most int // bytes

	mu    sync.Mutex
	lines [][]byte // each with its line break
	size  int      // of all lines, in bytes
}

// New returns a buffer of at most that many bytes.
func New(most int) *Buffer { return &Buffer{most: most} }

// Write keeps the lines of p, which a log writes whole. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range bytes.Lines(p) {
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > maxLine {
			line = line[:maxLine]
		}
		b.lines = append(b.lines, append(bytes.Clone(line), '\n'))
		b.size += len(line) + 1
	}
	drop := 0
	for b.size > b.most {
		b.size -= len(b.lines[drop])
		b.lines[drop] = nil
		drop++
	}
	b.lines = b.lines[drop:]
	return len(p), nil
}

// Bytes returns the kept lines, oldest first.
func (b *Buffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Join(b.lines, nil)
}
