package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/follow"
)

// TestTap: samples are followed past each point of a running agent, over a reload that changes the target, until the agent ends.
func TestTap(t *testing.T) {
	a := newSink(t)
	relabelled := ", write_relabel_configs: [{source_labels: [__name__], regex: hwsagent_canary, target_label: added, replacement: yes}]"
	r := startAgent(t, t.TempDir(), entry("a", a.URL, relabelled))
	until(t, "it receives", func() bool { return a.last() > 3 })
	for _, c := range []struct {
		o     FollowOptions
		of    string
		added string
	}{
		{FollowOptions{Point: follow.Inputs}, "probe count", ""},
		{FollowOptions{Point: follow.Inputs, Input: "count"}, "probe count", ""},
		{FollowOptions{Point: follow.Relabelled, Target: "a"}, "probe count", "yes"},
		{FollowOptions{Point: follow.Sent, Target: "a"}, "target a", "yes"},
	} {
		t.Run(string(c.o.Point)+c.o.Input, func(t *testing.T) {
			c.o.Match, c.o.Rate, c.o.Limit = `{__name__="hwsagent_canary"}`, 100, 3
			n := 0
			err := Follow(t.Context(), r.o.StoragePath, c.o, func(i follow.Item) error {
				n++
				if i.Of != c.of || i.Labels["__name__"] != "hwsagent_canary" || i.Labels["added"] != c.added || i.Value == "" || time.Since(i.Time) > time.Minute {
					t.Errorf("got %+v", i)
				}
				var text strings.Builder
				if err := WriteFollowed(&text, i); err != nil || !strings.Contains(text.String(), c.of+"  hwsagent_canary{") || !strings.HasSuffix(text.String(), " "+i.Value+"\n") {
					t.Errorf("%v: %q", err, text.String())
				}
				return nil
			})
			if err != nil || n != 3 {
				t.Errorf("%d samples, %v", n, err)
			}
			until(t, "the agent knows that the reader has gone", func() bool { return !r.followers.Active() })
		})
	}
	for want, o := range map[error]FollowOptions{
		config.ErrUsage:        {Point: follow.Inputs, Match: "{", Rate: 1},
		config.ErrNoSuchTarget: {Point: follow.Sent, Target: "x", Rate: 1},
	} {
		if err := Follow(t.Context(), r.o.StoragePath, o, nil); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", o, err, want)
		}
	}
	err := Follow(t.Context(), r.o.StoragePath, FollowOptions{Point: follow.Inputs, Input: "cuont", Rate: 1}, nil)
	if !errors.Is(err, config.ErrNoSuchInput) || !strings.Contains(err.Error(), `no such input: "cuont"; the inputs are probe count`) {
		t.Errorf("an input that does not exist: %v", err)
	}
	// Samples beyond the rate are counted; after a reload the follower gets the target's new queue; the end of the agent
	// ends the following.
	missed, reloaded := false, false
	err = Follow(t.Context(), r.o.StoragePath, FollowOptions{Point: follow.Sent, Target: "a", Rate: 1}, func(i follow.Item) error {
		switch {
		case i.Missed > 0:
			missed = true
		case missed && !reloaded:
			r.configure(entry("a", a.URL, ", remote_timeout: 9s"))
			if err := r.Reload(); err != nil {
				t.Error(err)
			}
			reloaded = true
		case reloaded && i.Labels["added"] == "":
			go r.stop()
		}
		return nil
	})
	if !errors.Is(err, control.ErrNotRunning) || !missed || !reloaded {
		t.Errorf("it ended with %v; missed %v, reloaded %v", err, missed, reloaded)
	}
}
