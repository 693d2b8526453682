package scrape

import (
	"io"
	"testing"
	"time"
)

// TestDownSince: a target is down since the first of the failed scrapes in a row.
func TestDownSince(t *testing.T) {
	var s state
	at := func(minute int) time.Time { return time.Unix(int64(60*minute), 0) }
	for minute, c := range []struct {
		err  error
		want time.Time
	}{{nil, time.Time{}}, {io.EOF, at(1)}, {io.EOF, at(1)}, {nil, time.Time{}}, {io.EOF, at(4)}} {
		s.report(at(minute), time.Second, c.err)
		if got := s.downSince(); !got.Equal(c.want) {
			t.Errorf("after the scrape of minute %d: down since %s, want %s", minute, got, c.want)
		}
	}
}
