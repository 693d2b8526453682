//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// plan says how much to measure, and how long.
type plan struct {
	seed         uint64
	heavy, small load

	warmUp, smallWarmUp, wireWarmUp time.Duration // after the first sample, before a window
	steady, smallFor, wire          time.Duration // windows
	outage                          time.Duration
	starts                          int // further starts, beside those of the other runs
}

// fullPlan takes up to 25 minutes with three agents.
func fullPlan() plan {
	return plan{
		seed:   1,
		heavy:  load{targets: 5, series: 10_000, interval: 5 * time.Second},
		small:  load{targets: 1, series: 500, interval: 15 * time.Second},
		warmUp: 20 * time.Second, steady: 100 * time.Second, outage: 90 * time.Second,
		smallWarmUp: 20 * time.Second, smallFor: 105 * time.Second,
		wireWarmUp: 10 * time.Second, wire: 30 * time.Second,
		starts: 5,
	}
}

// quick shortens a plan to at most four minutes: enough to see that everything works.
func (p plan) quick() plan {
	p.warmUp, p.steady, p.outage = 5*time.Second, 10*time.Second, 10*time.Second
	p.small.interval, p.smallWarmUp, p.smallFor = 5*time.Second, 2*time.Second, 10*time.Second
	p.wireWarmUp, p.wire = 2*time.Second, 5*time.Second
	p.starts = 0
	return p
}

// bench measures agents.
type bench struct {
	plan plan
	dir  string // for the agents' files, on the measured disk
	disk bool   // dir is on a disk
	say  func(format string, args ...any)

	by     map[string]figures // by agent
	starts map[string][]float64
	notes  []string // what could not be measured, and why
}

// part is measured in separate runs.
type part struct {
	name string
	run  func(b *bench, ctx context.Context, a agent) error
}

func parts() []part {
	return []part{
		{"steady", (*bench).ofSteady},
		{"small", (*bench).ofSmall},
		{"v2", (*bench).ofVersion2},
		{"zstd", (*bench).ofZstd},
		{"start", (*bench).ofStarts},
	}
}

// measure runs each part with one agent after the other. It notes failures and continues.
func (b *bench) measure(ctx context.Context, chosen []part, agents []agent) error {
	for _, p := range chosen {
		for _, a := range agents {
			if err := p.run(b, ctx, a); ctx.Err() != nil {
				return ctx.Err()
			} else if err != nil {
				b.note("%s, %s: %v", p.name, a.Name, err)
			}
		}
	}
	for name, all := range b.starts {
		b.by[name][startMean], b.by[name][startMax] = meanAndMax(all)
	}
	return nil
}

func (b *bench) note(format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	b.notes = append(b.notes, note)
	b.say("not measured: %s", note)
}

func meanAndMax(all []float64) (mean, most float64) {
	for _, x := range all {
		mean += x / float64(len(all))
		most = max(most, x)
	}
	return mean, most
}

// with starts an agent, waits for its first sample and lets it warm up, then measures.
func (b *bench) with(ctx context.Context, a agent, l load, to receiving, warmUp time.Duration, measure func(*rig) error) (err error) {
	r, err := newRig(a, l, to, b.plan.seed, b.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := b.scraped(ctx, a, r); err != nil {
		return err
	}
	limit := 2*l.interval + time.Minute
	if err := r.until(ctx, limit, "no sample has come", func() bool { return r.receiver.samples.Load() > 0 }); err != nil {
		return err
	}
	if err := r.wait(ctx, max(warmUp, 2*l.interval)); err != nil { // each series has come twice
		return err
	}
	return measure(r)
}

// scraped waits for the first scrape and records how long it took. Small agents scrape at another interval, so theirs
// do not count.
func (b *bench) scraped(ctx context.Context, a agent, r *rig) error {
	var took time.Duration
	limit := 2*r.load.interval + time.Minute
	err := r.until(ctx, limit, "no target has been scraped", func() (ok bool) {
		took, ok = r.firstScrape()
		return ok
	})
	if err == nil && r.load == b.plan.heavy {
		b.starts[a.Name] = append(b.starts[a.Name], took.Seconds())
	}
	return err
}

// ofSteady measures the heavy load, then the outage.
func (b *bench) ofSteady(ctx context.Context, a agent) error {
	b.say("%s: %d targets of %d series each %s, for %s after %s", a.Name, b.plan.heavy.targets, b.plan.heavy.series, b.plan.heavy.interval, b.plan.steady, b.plan.warmUp)
	return b.with(ctx, a, b.plan.heavy, receiving{version: v1}, b.plan.warmUp, func(r *rig) error {
		got, err := r.window(ctx, b.plan.steady)
		if err != nil {
			return err
		}
		f := b.by[a.Name]
		f[steadyCPU], f[wire1] = perMillion(got), float64(got.wire)/float64(got.samples)
		f[steadyRSS], f[steadyAnon] = got.memory.rss/1e6, got.memory.anon/1e6
		b.written(a, steadyDisk, got)
		b.sayWindow(a, got)
		return b.ofOutage(ctx, a, r)
	})
}

// ofOutage stops the receiver for a while. Everything that the agent does between the receiver's return and the arrival
// of the backlog counts as draining: it continues to scrape meanwhile.
func (b *bench) ofOutage(ctx context.Context, a agent, r *rig) error {
	b.say("%s: the receiver is away for %s", a.Name, b.plan.outage)
	r.receiver.down()
	before := r.receiver.samples.Load()
	if err := r.wait(ctx, b.plan.outage); err != nil {
		return err
	}
	begin, err := r.usage()
	if err != nil {
		return err
	}
	backlog := begin.served - before
	back := time.Now()
	if err := r.receiver.up(); err != nil {
		return err
	}
	const limit = 3 * time.Minute
	if err := r.until(ctx, limit, "no sample has come after the outage", func() bool { return r.receiver.samples.Load() > before }); err != nil {
		return err
	}
	first := time.Unix(0, r.receiver.first.Load()).Sub(back)
	if err := r.until(ctx, limit, "the backlog has not been drained", func() bool { return r.receiver.samples.Load()-before >= backlog }); err != nil {
		return err
	}
	took := time.Since(back)
	end, err := r.usage()
	if err != nil {
		return err
	}
	got := end.since(begin)
	f := b.by[a.Name]
	f[firstAfter], f[drained], f[drainCPU] = first.Seconds(), took.Seconds(), perMillion(got)
	b.say("%s: first sample after %.2f s, %d samples after %.2f s, %.2f CPU s per million", a.Name, first.Seconds(), got.samples, took.Seconds(), perMillion(got))
	return nil
}

func (b *bench) ofSmall(ctx context.Context, a agent) error {
	b.say("%s: %d series each %s, for %s after %s", a.Name, b.plan.small.perRound(), b.plan.small.interval, b.plan.smallFor, b.plan.smallWarmUp)
	return b.with(ctx, a, b.plan.small, receiving{version: v1}, b.plan.smallWarmUp, func(r *rig) error {
		got, err := r.window(ctx, b.plan.smallFor)
		if err != nil {
			return err
		}
		f := b.by[a.Name]
		f[smallCPU], f[smallRSS], f[smallAnon] = perMillion(got), got.memory.rss/1e6, got.memory.anon/1e6
		b.written(a, smallDisk, got)
		b.sayWindow(a, got)
		return nil
	})
}

func (b *bench) ofVersion2(ctx context.Context, a agent) error {
	if !a.v2 {
		return nil
	}
	return b.ofWire(ctx, a, receiving{version: v2}, v2+" snappy", wire2, cpu2)
}

func (b *bench) ofZstd(ctx context.Context, a agent) error {
	if !a.zstd {
		return nil
	}
	return b.ofWire(ctx, a, receiving{version: v1, zstd: true}, v1+" zstd", wireZstd, cpuZstd)
}

// ofWire measures bytes and CPU of the heavy load in one form of requests, if the agent
// sends all in that form.
func (b *bench) ofWire(ctx context.Context, a agent, to receiving, form string, bytes, cpu figure) error {
	b.say("%s: remote write %s, for %s", a.Name, form, b.plan.wire)
	return b.with(ctx, a, b.plan.heavy, to, b.plan.wireWarmUp, func(r *rig) error {
		got, err := r.window(ctx, b.plan.wire)
		if err != nil {
			return err
		}
		if len(got.encodings) != 1 || got.encodings[form] == 0 {
			return fmt.Errorf("it does not send %s, but %v", form, got.encodings)
		}
		f := b.by[a.Name]
		f[bytes], f[cpu] = float64(got.wire)/float64(got.samples), perMillion(got)
		b.sayWindow(a, got)
		return nil
	})
}

// ofStarts starts the agent a few more times: the time of the first scrape depends on a target's address, which differs
// each time.
func (b *bench) ofStarts(ctx context.Context, a agent) error {
	for range b.plan.starts {
		if err := b.ofStart(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) ofStart(ctx context.Context, a agent) (err error) {
	r, err := newRig(a, b.plan.heavy, receiving{version: v1}, b.plan.seed, b.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := b.scraped(ctx, a, r); err != nil {
		return err
	}
	all := b.starts[a.Name]
	b.say("%s: first scrape %.2f s after its start", a.Name, all[len(all)-1])
	return nil
}

// written records the bytes written to disk per sample.
func (b *bench) written(a agent, f figure, got usage) {
	if b.disk {
		b.by[a.Name][f] = float64(got.disk) / float64(got.samples)
	}
}

func (b *bench) sayWindow(a agent, got usage) {
	b.say("%s: %d samples in %d requests, %.2f CPU s per million, RSS %.1f MB (%.1f), %.1f bytes a sample on the wire, %.1f on disk; %v",
		a.Name, got.samples, got.requests, perMillion(got), got.memory.rss/1e6, got.memory.anon/1e6,
		float64(got.wire)/float64(got.samples), float64(got.disk)/float64(got.samples), got.encodings)
}

// perMillion returns CPU seconds per million delivered samples.
func perMillion(u usage) float64 { return u.cpu.Seconds() / float64(u.samples) * 1e6 }
