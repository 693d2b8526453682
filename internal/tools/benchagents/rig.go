//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hwsagent/internal/tools/benchagents/hardware"
)

// load describes the targets of an agent.
type load struct {
	targets  int
	series   int // of each target
	interval time.Duration
	entries  int // see job
}

// parseLoad reads a load as the flag -load has it.
func parseLoad(text string) (l load, err error) {
	targets, rest, ok1 := strings.Cut(text, "x")
	series, interval, ok2 := strings.Cut(rest, "@")
	l.targets, err = strconv.Atoi(targets)
	if err == nil {
		l.series, err = strconv.Atoi(series)
	}
	if err == nil {
		l.interval, err = time.ParseDuration(interval)
	}
	if !ok1 || !ok2 || err != nil || l.targets < 1 || l.series < 1 || l.interval <= 0 {
		return l, fmt.Errorf("read the load %q: want targets, series of each and an interval, as in 5x10000@5s", text)
	}
	return l, nil
}

func (l load) perRound() int64 { return int64(l.targets * l.series) }

// rig is one run of one agent: the targets, the agent, and the receiver.
type rig struct {
	load     load
	targets  []*hardware.Target
	servers  []*http.Server
	receiver *receiver
	process  *process
	dir      string
}

// receiving says which requests the receiver of a run accepts.
type receiving struct {
	version string
	zstd    bool
}

// newRig starts targets, a receiver and an agent with its files below dir. The caller must close it.
func newRig(a agent, l load, to receiving, seed uint64, dir string) (r *rig, err error) {
	r = &rig{load: l}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.dir, err = os.MkdirTemp(dir, a.Name+"-"); err != nil {
		return r, err
	}
	if r.dir, err = filepath.Abs(r.dir); err != nil {
		return r, err
	}
	var addresses []string
	for i := range l.targets {
		t := hardware.NewTarget(seed, i, l.series)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return r, fmt.Errorf("listen as a target: %w", err)
		}
		server := &http.Server{Handler: t, ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = server.Serve(listener) }() // ended by close
		r.targets, r.servers, addresses = append(r.targets, t), append(r.servers, server), append(addresses, listener.Addr().String())
	}
	if r.receiver, err = newReceiver(to.version, to.zstd); err != nil {
		return r, err
	}
	if err := r.receiver.up(); err != nil {
		return r, err
	}
	args, err := a.setUp(job{targets: addresses, interval: l.interval, url: r.receiver.url(), version: to.version, zstd: to.zstd, entries: l.entries}, r.dir)
	if err != nil {
		return r, fmt.Errorf("write the configuration of %s: %w", a.Name, err)
	}
	r.process, err = start(a.program, args, r.dir)
	return r, err
}

// close ends the agent and removes its files. A second call does nothing.
func (r *rig) close() error {
	var all []error
	if r.process != nil {
		all = append(all, r.process.stop())
		r.process = nil
	}
	if r.receiver != nil {
		if r.receiver.server != nil {
			r.receiver.down()
		}
		r.receiver.close()
		r.receiver = nil
	}
	for _, s := range r.servers {
		all = append(all, s.Close())
	}
	r.servers = nil
	if r.dir != "" {
		all = append(all, os.RemoveAll(r.dir))
	}
	return errors.Join(all...)
}

// served returns how many samples all targets have served.
func (r *rig) served() (n int64) {
	for _, t := range r.targets {
		n += t.Served()
	}
	return n
}

// firstScrape returns how long after the agent's start its first scrape came, if it has.
func (r *rig) firstScrape() (took time.Duration, ok bool) {
	for _, t := range r.targets {
		if at, scraped := t.First(); scraped && (!ok || at.Sub(r.process.began) < took) {
			took, ok = at.Sub(r.process.began), true
		}
	}
	return took, ok
}

// until polls until ok returns true, the agent ends, or the time is over.
func (r *rig) until(ctx context.Context, limit time.Duration, what string, ok func() bool) error {
	const pace = 5 * time.Millisecond
	ask := time.NewTicker(pace)
	defer ask.Stop()
	end := time.NewTimer(limit)
	defer end.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.process.done:
			return r.process.gone()
		case <-end.C:
			return fmt.Errorf("after %s %s; the agent said last:\n%s", limit, what, r.process.tail())
		case <-ask.C:
		}
	}
	return nil
}

// wait lets time pass while the agent runs.
func (r *rig) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.process.done:
		return r.process.gone()
	case <-time.After(d):
		return nil
	}
}

// usage is an agent's use of resources up to a moment, or in a window.
type usage struct {
	cpu                           time.Duration
	samples, requests, wire, disk int64
	served                        int64
	memory                        memory // the mean of a window
	encodings                     map[string]int
}

func (r *rig) usage() (usage, error) {
	cpu, err1 := r.process.cpu()
	disk, err2 := r.process.written()
	encodings, _ := r.receiver.seen()
	return usage{
		cpu: cpu, disk: disk, served: r.served(), encodings: encodings,
		samples: r.receiver.samples.Load(), requests: r.receiver.requests.Load(), wire: r.receiver.wire.Load(),
	}, errors.Join(err1, err2)
}

// since returns the usage after b.
func (u usage) since(b usage) usage {
	d := usage{
		cpu: u.cpu - b.cpu, disk: u.disk - b.disk, served: u.served - b.served,
		samples: u.samples - b.samples, requests: u.requests - b.requests, wire: u.wire - b.wire,
		encodings: make(map[string]int),
	}
	for form, n := range u.encodings {
		if n -= b.encodings[form]; n > 0 {
			d.encodings[form] = n
		}
	}
	return d
}

// window measures for that long, with the memory sampled each second.
func (r *rig) window(ctx context.Context, d time.Duration) (usage, error) {
	begin, err := r.usage()
	if err != nil {
		return usage{}, err
	}
	var sum memory
	n := max(1, int(d/time.Second))
	for range n {
		if err := r.wait(ctx, d/time.Duration(n)); err != nil {
			return usage{}, err
		}
		m, err := r.process.memory()
		if err != nil {
			return usage{}, err
		}
		sum.rss += m.rss
		sum.anon += m.anon
	}
	end, err := r.usage()
	if err != nil {
		return usage{}, err
	}
	got := end.since(begin)
	got.memory = memory{rss: sum.rss / float64(n), anon: sum.anon / float64(n)}
	return got, got.plausible(d, r.load)
}

// plausible returns why a window is not meaningful; nil if it is.
func (u usage) plausible(d time.Duration, l load) error {
	rounds := int64(d / l.interval)
	if want := max(1, (rounds-1)*l.perRound()); u.samples < want { // a round may fall on either end
		return fmt.Errorf("%d samples came in %s, %d were shown to the agent, and %d are due: it does not keep up", u.samples, d, u.served, want)
	}
	return nil
}
