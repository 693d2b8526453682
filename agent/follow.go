package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/follow"
	"hwsagent/agent/inputs"
	"hwsagent/agent/selector"
	"hwsagent/agent/status"
	"hwsagent/internal/panics"
	"hwsagent/internal/text"
	"hwsagent/remotewrite"
	remoteconfig "hwsagent/remotewrite/config"
)

// observer passes samples of inputs and queues to their followers.
type observer struct {
	hub   *follow.Hub
	guard *panics.Guard // a panic costs followers a batch, but does not stop the target's queue
}

func (o observer) Active() bool { return o.hub.Active() }

func (o observer) Taken(kind, name string, samples iter.Seq[inputs.Shown]) {
	o.hub.Taken(kind, name, func(yield func(follow.Sample) bool) {
		for s := range samples {
			if !yield(follow.Sample(s)) {
				return
			}
		}
	})
}

func (o observer) Delivered(target string, samples iter.Seq[remotewrite.Sample]) {
	_ = o.guard.Run(func() { // the guard logs a panic
		o.hub.Delivered(target, func(yield func(follow.Sample) bool) {
			for s := range samples {
				if !yield(follow.Sample(s)) {
					return
				}
			}
		})
	})
}

// FollowOptions select what to follow; see [follow.Options].
type FollowOptions struct {
	Point         follow.Point
	Target, Input string
	Match         string // a selector of series; empty: all
	Rate          int
	Limit         int // ends after that many samples; 0: no limit
}

// Follow follows samples of the agent that runs on the storage directory. It ends when ctx ends, the limit is reached,
// each returns an error, or the agent ends, which is control.ErrNotRunning.
func Follow(ctx context.Context, storage string, o FollowOptions, each func(follow.Item) error) error {
	if _, err := selector.Parse(o.Match); err != nil {
		return fmt.Errorf("%w: %w", config.ErrUsage, err)
	}
	q := url.Values{"point": {string(o.Point)}, "target": {o.Target}, "input": {o.Input}, "match": {o.Match}, "rate": {strconv.Itoa(o.Rate)}}
	code, body, err := control.Stream(ctx, storage, "/control/tap?"+q.Encode())
	if err != nil {
		return err
	}
	defer body.Close()
	if code != http.StatusOK {
		var no control.Refusal
		if err := json.NewDecoder(body).Decode(&no); err != nil || no.Error == "" {
			return fmt.Errorf("ask the agent: %d", code)
		}
		return no.Err()
	}
	lines := json.NewDecoder(body)
	for n := 0; o.Limit == 0 || n < o.Limit; {
		var item follow.Item
		if err := lines.Decode(&item); err != nil {
			switch {
			case ctx.Err() != nil:
				return nil
			case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
				return fmt.Errorf("%w: it has stopped", control.ErrNotRunning)
			}
			return fmt.Errorf("read the agent's answer: %w", err)
		}
		if item.Labels != nil {
			n++
		}
		if item.Labels == nil && item.Missed == 0 {
			continue // only proves that the agent lives
		}
		if err := each(item); err != nil {
			return err
		}
	}
	return nil
}

// WriteFollowed prints an item for people, in one line.
func WriteFollowed(w io.Writer, i follow.Item) error {
	if i.Labels == nil {
		_, err := fmt.Fprintf(w, "… %d further samples: beyond --rate, or faster than they are read\n", i.Missed)
		return err
	}
	name := i.Labels[model.MetricNameLabel]
	rest := labels.NewBuilder(labels.FromMap(i.Labels)).Del(model.MetricNameLabel).Labels()
	if !rest.IsEmpty() || name == "" {
		name += rest.String()
	}
	_, err := fmt.Fprintln(w, text.Printable(i.Time.Local().Format("15:04:05.000")+" "+i.Of+"  "+name+" "+i.Value))
	return err
}

// tellMissed is how often the agent tells a reader how many samples it missed; the line also proves that the agent
// lives.
const tellMissed = time.Second

// slowReader bounds how long a reader may block a write.
const slowReader = 10 * time.Second

// answerFollow serves POST /control/tap: a line of JSON for each sample, until the reader goes or the agent stops.
func (a *Agent) answerFollow(w http.ResponseWriter, h *http.Request) {
	o, err := a.followOptions(h.URL.Query())
	if err != nil {
		control.Reply(w, nil, err)
		return
	}
	t, err := a.followers.Open(o)
	if err != nil {
		control.Reply(w, nil, err)
		return
	}
	defer a.followers.Close(t)
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, enc := http.NewResponseController(w), json.NewEncoder(w)
	tick := time.NewTicker(tellMissed)
	defer tick.Stop()
	for err := out.Flush(); err == nil; {
		select {
		case <-h.Context().Done():
			return
		case <-a.changes.quit:
			return
		case item := <-t.Items():
			err = errors.Join(out.SetWriteDeadline(time.Now().Add(slowReader)), enc.Encode(item))
			for err == nil && len(t.Items()) > 0 {
				err = enc.Encode(<-t.Items())
			}
		case <-tick.C:
			err = errors.Join(out.SetWriteDeadline(time.Now().Add(slowReader)), enc.Encode(follow.Item{Missed: t.Missed()}))
		}
		err = errors.Join(err, out.Flush())
	}
}

// shownInputs bounds the names in an error.
const shownInputs = 20

// knownInput returns ErrNoSuchInput if no input has that name, alone or behind its kind: its samples would never come. "" stands for all.
func knownInput(s status.Status, name string) error {
	var all []string
	for _, p := range s.Probes {
		all = append(all, "probe "+p.Name)
	}
	for _, j := range s.Scrape {
		all = append(all, "scrape "+j.Job)
	}
	for _, in := range s.Inputs {
		all = append(all, in.Kind+" "+in.Name)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if name == "" || slices.ContainsFunc(all, func(input string) bool { return input == name || strings.HasSuffix(input, " "+name) }) {
		return nil
	}
	return fmt.Errorf("%w: %q; the inputs are %s", config.ErrNoSuchInput, name, strings.Join(all[:min(len(all), shownInputs)], ", "))
}

// followOptions parses the options of a request.
func (a *Agent) followOptions(q url.Values) (follow.Options, error) {
	o := follow.Options{Point: follow.Point(q.Get("point")), Target: q.Get("target"), Input: q.Get("input")}
	if !slices.Contains(follow.Points(), o.Point) {
		return o, fmt.Errorf("unknown point %q", o.Point)
	}
	var err error
	if o.Match, err = selector.Parse(q.Get("match")); err != nil {
		return o, err
	}
	if o.Rate, err = strconv.Atoi(q.Get("rate")); err != nil {
		return o, fmt.Errorf("parse rate: %w", err)
	}
	if err := knownInput(a.Status(), o.Input); err != nil {
		return o, err
	}
	if o.Target == "" {
		return o, nil
	}
	a.mu.Lock()
	cfg := a.cfg
	a.mu.Unlock()
	c, err := cfg.Target(o.Target)
	if err != nil {
		return o, err
	}
	if o.Point == follow.Relabelled {
		rules := remoteconfig.NewRelabeler(cfg.Global.Labels(), c.WriteRelabelConfigs)
		o.Relabel = func(ls labels.Labels) labels.Labels {
			if b := rules.Apply(ls); b != nil {
				return b.Labels()
			}
			return labels.EmptyLabels()
		}
	}
	return o, nil
}
