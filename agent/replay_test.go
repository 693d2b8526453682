package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/inspect"
	"hwsagent/agent/queues"
)

// replayed returns an agent that keeps what is delivered, and a sink that has some of it.
func replayed(t *testing.T) (r *running, storage string, s *sink) {
	s, storage = newSink(t), t.TempDir()
	r = &running{t: t, file: t.TempDir() + "/agent.yaml", done: make(chan error, 1)}
	text := testProbes + "wal: {retain: 1h, min_free_bytes: 1MiB}\nglobal: {external_labels: {site: fra1}}\nremote_write:\n" + entry("a", s.URL, "")
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return startAgentWith(t, r, storage, ""), storage, s
}

// A window of what was delivered is sent once more, beside the running agent and without
// it, and the target's account knows nothing of it.
func TestReplay(t *testing.T) {
	r, storage, live := replayed(t)
	until(t, "it has delivered", func() bool { return live.last() > 20 })
	from := time.Now()
	until(t, "it has delivered more", func() bool { return live.last() > 50 })
	to := time.Now()
	until(t, "it has delivered all of that", func() bool { return live.last() > 60 })

	o := queues.ReplayOptions{ConfigFile: r.file, Storage: storage, Target: "a", From: from, To: to, Match: `hwsagent_canary{site="fra1"}`}
	for _, running := range []bool{true, false} {
		if !running {
			r.end()
		}
		before, err := queues.OfflineStatus(storage, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		o.DryRun = true
		dry, err := queues.Replay(t.Context(), o)
		if err != nil || dry.Samples == 0 || dry.Series != 1 || !dry.Complete || dry.Delivered != dry.Samples {
			t.Fatalf("dry run: %+v, %v", dry, err)
		}
		count, first := 0, 0.0
		sink := newSink(t)
		if !running { // beside the agent its own samples come, too
			live.Config.Handler = sink
		}
		o.DryRun = false
		var progress queues.ReplayProgress
		o.Progress = func(p queues.ReplayProgress) { progress = p }
		got, err := queues.Replay(t.Context(), o)
		if err != nil || got.Samples != dry.Samples || got.Delivered != dry.Samples || got.Series != 1 || got.Oldest.Before(from.Truncate(time.Millisecond)) || !got.Newest.Before(to) {
			t.Errorf("running=%v: %+v, %v; dry run %+v", running, got, err, dry)
		}
		if progress.Read == 0 || progress.Read > progress.Total {
			t.Errorf("progress %+v", progress)
		}
		after, err := queues.OfflineStatus(storage, time.Now())
		if err != nil || !after.Targets[0].Ledger.Balanced || !running && fmt.Sprint(after.Targets[0].Ledger) != fmt.Sprint(before.Targets[0].Ledger) {
			t.Errorf("running=%v: the account was %+v, is %+v, %v", running, before.Targets[0].Ledger, after.Targets[0].Ledger, err)
		}
		if !running {
			count, first = sink.count(), sink.values[0]
			if uint64(count) != dry.Samples || first <= 20 {
				t.Errorf("%d samples arrived, from %v on; %d were to be", count, first, dry.Samples)
			}
			sink.inOrder(t, first)
		}
	}
	o.Target = "nobody"
	if _, err := queues.Replay(t.Context(), o); !errors.Is(err, config.ErrNoSuchTarget) {
		t.Errorf("to nobody: %v", err)
	}
	o.Target, o.Match = "a", "{"
	if _, err := queues.Replay(t.Context(), o); !errors.Is(err, config.ErrUsage) {
		t.Errorf("of nonsense: %v", err)
	}
	o.Match, o.Storage = "", t.TempDir()
	if _, err := queues.Replay(t.Context(), o); !errors.Is(err, inspect.ErrNoLog) {
		t.Errorf("without a log: %v", err)
	}
}

// A replay that is refused does not disturb the queue beside it, and tells where it ended;
// one that is interrupted goes on there.
func TestReplayThatEndsEarly(t *testing.T) {
	r, storage, live := replayed(t)
	until(t, "it has delivered", func() bool { return live.last() > 60 })
	r.end()
	o := queues.ReplayOptions{ConfigFile: r.file, Storage: storage, Target: "a", From: time.Now().Add(-time.Hour), To: time.Now(), Match: "hwsagent_canary"}
	sink := newSink(t)
	sink.refuse = func(float64) bool { return true }
	live.Config.Handler = sink
	got, err := queues.Replay(t.Context(), o)
	if !errors.Is(err, queues.ErrReplayRefused) || got.Delivered != 0 || got.Complete || got.Stopped == "" {
		t.Errorf("%+v, %v", got, err)
	}
	sink.refuse = nil
	ctx, cancel := context.WithCancel(t.Context())
	o.Rate = 2000
	o.Progress = func(p queues.ReplayProgress) {
		if p.Selected >= 30 {
			cancel()
		}
	}
	got, err = queues.Replay(ctx, o)
	if !errors.Is(err, queues.ErrReplayInterrupted) || got.Complete || got.Samples < 30 {
		t.Errorf("%+v, %v", got, err)
	}
	o.After, o.Progress = got.After, nil
	rest, err := queues.Replay(t.Context(), o)
	if err != nil || got.Delivered+rest.Delivered != uint64(live.count()) || rest.After <= got.After {
		t.Errorf("first %+v, then %+v, %v; %d were collected", got, rest, err, live.count())
	}
	sink.inOrder(t, 1)
}
