package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/replay"
	"hwsagent/remotewrite/wire"
)

// replayRig is a log and a receiver, and replays of the one to the other.
type replayRig struct {
	t   *testing.T
	log *memLog
	to  *fakeReceiver
	o   replay.Options
}

// newReplayRig makes a log of rounds, a second apart, of series s0, s1, ….
func newReplayRig(t *testing.T, rounds, series int, to *fakeReceiver) *replayRig {
	r := &replayRig{t: t, log: newMemLog(t), to: to}
	for i := range rounds {
		var all []smp
		for k := range series {
			all = append(all, smp{fmt.Sprintf("s%d", k), int64(i+1) * 1000, float64(i)})
		}
		r.log.append(all...)
	}
	c := config.DefaultConfig()
	c.Queue.MaxSamplesPerSend = 100
	r.o = replay.Options{Config: c, Sender: to, From: time.UnixMilli(0), To: time.UnixMilli(1 << 40), Rand: func() float64 { return 0.5 }}
	return r
}

// run replays the log after a commit.
func (r *replayRig) run(ctx context.Context, after uint64) (replay.Count, error) {
	r.t.Helper()
	r.o.After = after
	p, err := replay.New(r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range r.log.entries {
		if e.End.Commit <= after {
			continue
		}
		if err := p.Add(ctx, e); err != nil {
			return p.Count(), err
		}
	}
	err = p.End(ctx)
	return p.Count(), err
}

// has checks how many samples the receiver has, in the order of each series' times.
func (r *replayRig) has(want int) {
	r.t.Helper()
	n := 0
	for name, all := range r.to.stored {
		n += len(all)
		for i := range all[1:] {
			if all[i].t >= all[i+1].t {
				r.t.Errorf("%s is out of order: %v", name, all)
			}
		}
	}
	if n != want {
		r.t.Errorf("the receiver has %d samples, want %d", n, want)
	}
}

func TestReplaySelects(t *testing.T) {
	r := newReplayRig(t, 50, 20, &fakeReceiver{})
	r.o.ExternalLabels = labels.FromStrings("site", "fra1")
	r.o.Config.WriteRelabelConfigs = []*relabel.Config{{
		SourceLabels: model.LabelNames{"__name__"}, Regex: relabel.MustNewRegexp("s1[0-9]"), Action: relabel.Drop, NameValidationScheme: config.NameValidation,
	}}
	r.o.From, r.o.To = time.UnixMilli(10_000), time.UnixMilli(30_000)
	r.o.Matchers = []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchEqual, "site", "fra1"), labels.MustNewMatcher(labels.MatchRegexp, "__name__", "s[0-4]|s12"),
	}
	for _, dry := range []bool{true, false} {
		if r.o.Sender = r.to; dry {
			r.o.Sender = nil
		}
		c, err := r.run(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if c.Selected != 100 || c.Series != 5 || c.Delivered != 100 || c.Filtered != 200 || c.Refused != 0 || c.Done != 50 || c.Bytes == 0 {
			t.Errorf("dry=%v: %+v", dry, c)
		}
		if !c.Oldest.Equal(time.UnixMilli(10_000)) || !c.Newest.Equal(time.UnixMilli(29_000)) {
			t.Errorf("from %s to %s", c.Oldest, c.Newest)
		}
		if dry && r.to.count() != 0 {
			t.Error("a dry run sends something")
		}
	}
	r.has(100)
	if first := r.to.log()[0]; len(first.samples) != 1 {
		t.Errorf("the first request has %d samples", len(first.samples))
	}
}

// TestReplayTestsOneSampleFirst: if the first sample is not accepted, no other is sent, and the error says why.
func TestReplayTestsOneSampleFirst(t *testing.T) {
	for _, a := range []client.Answer{{Status: 400, Text: "out of bounds"}, {Status: 401, Text: "no token"}, {Status: 404}, {Status: 413}} {
		r := newReplayRig(t, 50, 20, &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) { return a, true }})
		c, err := r.run(t.Context(), 0)
		var stopped *replay.Error
		if !errors.As(err, &stopped) || !stopped.First || stopped.Answer.Status != a.Status || stopped.Series != `{__name__="s0", job="test"}` || !strings.Contains(err.Error(), a.Text) {
			t.Errorf("%d: %v", a.Status, err)
		}
		if n := r.to.count(); n != 1 || c.Delivered+c.Refused != 0 || c.Done != 0 {
			t.Errorf("%d: %d requests, %+v", a.Status, n, c)
		}
	}
}

// TestReplayLeavesBadSamplesBehind: one bad sample costs only itself, at receivers of each kind; stored samples do not
// count as refused.
func TestReplayLeavesBadSamplesBehind(t *testing.T) {
	for name, to := range map[string]*fakeReceiver{
		"stores nothing of a refused request": {}, "stores the good part": {keepsGood: true}, "in any order": {keepsGood: true, anyOrder: true},
	} {
		t.Run(name, func(t *testing.T) {
			to.poison = func(s smp) bool { return s.series == "s7" && s.t%20_000 == 5000 }
			r := newReplayRig(t, 100, 30, to)
			c, err := r.run(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Delivered + c.Refused + c.Unconfirmed; got != c.Selected || c.Selected != 3000 {
				t.Errorf("%d of %d samples have an outcome: %+v", got, c.Selected, c)
			}
			if c.Refused < 4 || c.Refused > 5 || c.Unconfirmed > 100 {
				t.Errorf("%+v", c)
			}
			for _, f := range c.Refusals {
				if !strings.HasPrefix(f.Text, "bad sample s7@") || f.Status != 400 || f.Samples != 1 {
					t.Errorf("%+v", f)
				}
			}
			r.has(2995)
			if n := to.count(); n > 160+5*64 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestReplayGoesOn: a receiver that accepts no more samples ends the replay, and another replay after that commit
// delivers the rest.
func TestReplayGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, a := range map[string]client.Answer{
			"unauthorized": {Status: 401}, "bad request": {Status: 400, Text: "no"}, "down": {Err: errors.New("connection refused")}, "overloaded": {Status: 503, RetryAfter: time.Second},
		} {
			to := &fakeReceiver{anyOrder: true}
			r := newReplayRig(t, 50, 30, to)
			to.script = func(q fakeRequest) (client.Answer, bool) { return a, q.n >= 5 }
			began := time.Now()
			c, err := r.run(t.Context(), 0)
			var stopped *replay.Error
			if !errors.As(err, &stopped) || stopped.First || c.Done == 0 || c.Done >= 50 {
				t.Errorf("%s: %v, %+v", what, err, c)
			}
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("%s: it ended after %s", what, took)
			}
			to.script = nil
			if _, err := r.run(t.Context(), c.Done); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			r.has(1500)
			if to.again > 130 {
				t.Errorf("%s: %d samples came twice", what, to.again)
			}
		}
	})
}

// TestReplayWaits: a replay waits for failures that pass.
func TestReplayWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{maxSamples: 40}
		r := newReplayRig(t, 50, 30, to)
		told := 0
		r.o.Retrying = func(a client.Answer) {
			if told++; a.Status != 503 {
				t.Errorf("told of %s", a)
			}
		}
		began := time.Now()
		to.script = func(fakeRequest) (client.Answer, bool) {
			return client.Answer{Status: 503}, time.Since(began) < time.Minute
		}
		c, err := r.run(t.Context(), 0)
		if err != nil || c.Delivered != 1500 || c.Refused+c.Unconfirmed != 0 {
			t.Errorf("%+v, %v", c, err)
		}
		if told != 1 {
			t.Errorf("told of the failing request %d times, want once", told)
		}
		r.has(1500)
		for _, q := range to.log()[5:] {
			if q.status == 204 && len(q.samples) > 40 {
				t.Errorf("%d samples in a request", len(q.samples))
			}
		}
	})
}

func TestReplayRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplayRig(t, 50, 30, &fakeReceiver{})
		r.o.Rate = 100
		began := time.Now()
		if _, err := r.run(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 14*time.Second || took > 15*time.Second {
			t.Errorf("1500 samples at 100 a second took %s", took)
		}
	})
}

// TestReplayInterrupted: a replay that is interrupted, at any point, ends within moments, and another one continues
// there: no sample is missing.
func TestReplayInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for cut := range 17 {
			ctx, cancel := context.WithCancel(t.Context())
			to := &fakeReceiver{anyOrder: true, latency: time.Second}
			r := newReplayRig(t, 50, 30, to)
			to.script = func(q fakeRequest) (client.Answer, bool) {
				if q.n == cut {
					cancel()
				}
				return client.Answer{}, false
			}
			if cut%3 == 0 { // it hangs
				to.latency = time.Hour
				time.AfterFunc(time.Minute, cancel)
			}
			began := time.Now()
			c, err := r.run(ctx, 0)
			if cancelled := ctx.Err() != nil; cancelled && c.Done < 50 && !errors.Is(err, context.Canceled) {
				t.Errorf("cut %d: %v", cut, err)
			}
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("cut %d: it took %s", cut, took)
			}
			cancel()
			to.script, to.latency = nil, 0
			if _, err := r.run(t.Context(), c.Done); err != nil {
				t.Errorf("cut %d: %v", cut, err)
			}
			r.has(1500)
			if to.again > 200 {
				t.Errorf("cut %d: %d samples came twice", cut, to.again)
			}
		}
	})
}

// TestReplayVersions: an entry that asks for 2.0 gets 2.0, or 1.0 where the receiver does not accept it.
func TestReplayVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for speaks, want := range map[speech]wire.Version{speaksBoth: wire.V2, speaksOne: wire.V1, speaksOneSilent: wire.V1, speaksOne400: wire.V1, speaksOne500: wire.V1, speaksTwo: wire.V2} {
			to := &fakeReceiver{speaks: speaks}
			r := newReplayRig(t, 50, 30, to)
			r.o.Config.ProtobufMessage = config.MessageV2
			c, err := r.run(t.Context(), 0)
			if err != nil || c.Delivered != 1500 || c.Selected != 1500 {
				t.Errorf("%v: %+v, %v", speaks, c, err)
			}
			r.has(1500)
			all := to.log()
			if last := all[len(all)-1]; last.version != want {
				t.Errorf("%v: the last request is %s, want %s", speaks, last.version, want)
			}
		}
	})
}
