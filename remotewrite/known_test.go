package remotewrite

import (
	"context"
	"testing"

	"hwsagent/remotewrite/config"
)

// TestSeriesOfACommitShareTheirNewestSample: the series of a commit whose samples have one time share one fact about it, of the
// last commit, in each shard; a series is small only as long as they do.
func TestSeriesOfACommitShareTheirNewestSample(t *testing.T) {
	const series = 2000 // a full batch, which does not wait for more
	m := newTreadmill(series)
	cfg := config.DefaultConfig()
	cfg.Queue.MaxShards = 1
	q, err := New(Options{Name: "shared", Config: cfg, Source: m, Sender: &yes{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); q.Run(ctx) }()
	for range 3 {
		m.step <- struct{}{}
		<-m.done
	}
	cancel()
	<-ended
	facts, n := map[*known]bool{}, 0
	for _, s := range q.live.cache.forSlot.All() {
		facts[s.known] = true
		n++
	}
	if n != series || len(facts) != 1 {
		t.Errorf("%d series have %d facts, want %d with one", n, len(facts), series)
	}
	for fact := range facts {
		if fact == nil || fact.in != m.entry.End.Commit || fact.newest != m.entry.MaxT {
			t.Errorf("the fact is %+v; the commit is %d, of %d", fact, m.entry.End.Commit, m.entry.MaxT)
		}
	}
}
