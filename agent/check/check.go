package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"hwsagent/agent/config"
	"hwsagent/internal/version"
	"hwsagent/probes"
	"hwsagent/probes/devices"
)

// Level says how much a check covers.
type Level int

// The levels of a check. Each includes the ones before it.
const (
	SyntaxOnly Level = iota // the configuration file alone; files that it names need not exist
	NoNetwork               // files, certificates, permissions, storage
	Live                    // every target and every probe, for real
)

// Result is the outcome of one step. A step whose outcome cannot be determined is Skip, not OK.
type Result string

// The results of a step, and of a group: the worst of its steps.
const (
	OK   Result = "ok"
	Skip Result = "skip"
	Warn Result = "warn"
	Fail Result = "fail"
)

// The values of [Group.Kind].
const (
	GroupConfig  = "config"
	GroupFiles   = "files"
	GroupStorage = "storage"
	GroupTarget  = "target"
	GroupProbe   = "probe"
	GroupScrape  = "scrape" // a scrape job
)

// Step is one thing that was checked.
type Step struct {
	Name   string        `json:"name"` // dns, tcp, tls, write, clock, …
	Result Result        `json:"result"`
	Text   string        `json:"text"`
	Try    string        `json:"try,omitempty"` // what to do
	Took   time.Duration `json:"took_ns,omitempty"`
}

// Group holds the steps that concern one target, probe, job or part of the agent.
type Group struct {
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"` // of the target, probe or job
	About  string `json:"about,omitempty"`
	Result Result `json:"result"`
	Steps  []Step `json:"steps"`
}

// Report holds the results of a check.
type Report struct {
	Schema   int              `json:"schema"` // 1
	Version  string           `json:"version"`
	File     string           `json:"file"`
	Result   Result           `json:"result"`
	Groups   []Group          `json:"groups"`
	Errors   []config.Error   `json:"config_errors"`   // never null
	Warnings []config.Warning `json:"config_warnings"` // never null

	// ConfigText lists the mistakes in the configuration with their source lines.
	ConfigText string `json:"-"`

	level Level
	part  bool // only some targets and probes were checked
}

// Options select what to check.
type Options struct {
	ConfigFile  string
	StoragePath string
	Beside      []string // the directories of the storage path that are not part of the log
	Level       Level
	Env         func(string) (string, bool) // nil: os.LookupEnv
	Logger      *slog.Logger                // of probes and clients; nil: none
	// Targets and Probes are names. If there are any, the check covers only these targets and probes, and only their
	// files.
	Targets, Probes []string
	// RunProbe runs one round of a probe, as the agent does; it must be safe for concurrent use. Only [Live] needs it. An error
	// means that there is no such probe.
	RunProbe func(context.Context, *config.Probe, *slog.Logger) (Round, error)
}

// Round is the outcome of one round of a probe.
type Round struct {
	probes.Status
	Why devices.Reason // why the device could not be reached; "" if it could, or is unknown
}

// parallel bounds how many targets and probes are checked at the same time.
const parallel = 8

// Run tests everything that the agent needs for its work, with the same constructors as the agent itself. It changes
// nothing except for a temporary file, which proves that the storage is writable, and sends no sample to any target.
//
// The error is ErrNoSuchTarget or ErrNoSuchProbe if the configuration lacks one of the names.
func Run(ctx context.Context, o Options) (Report, error) {
	r := Report{Schema: 1, Version: version.Version, File: o.ConfigFile, Groups: []Group{}, Errors: []config.Error{}, Warnings: []config.Warning{}, level: o.Level}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	cfg := r.checkConfig(o)
	if cfg == nil {
		r.finish()
		return r, nil
	}
	chosen, err := only(cfg, o.Targets, o.Probes)
	if err != nil {
		return r, err
	}
	r.part = chosen != cfg
	if o.Level > SyntaxOnly {
		r.Groups = append(r.Groups, checkFiles(chosen, time.Now()))
	}
	if o.Level > SyntaxOnly && !r.part {
		r.Groups = append(r.Groups, checkStorage(ctx, cfg, o.StoragePath, o.Beside))
	}
	if o.Level == Live {
		r.Groups = append(r.Groups, checkLive(ctx, chosen, o)...)
	}
	r.finish()
	return r, nil
}

// only returns the part of a configuration that concerns the targets and probes with these names, or all of it if there
// are no names. For an entry with a list of devices, the name is that of the entry or of one device.
func only(c *config.Config, targets, probes []string) (*config.Config, error) {
	if len(targets)+len(probes) == 0 {
		return c, nil
	}
	part := &config.Config{File: c.File, Dir: c.Dir, Global: c.Global, WAL: c.WAL}
	for _, name := range targets {
		t, err := c.Target(name)
		if err != nil {
			return nil, err
		}
		part.RemoteWrite = append(part.RemoteWrite, t)
	}
	for _, name := range probes {
		known := len(part.Probes)
		for _, p := range c.Probes {
			if p.Type != "self" && (p.Name == name || p.Job == name) {
				p.Enabled = true // naming a probe means to check it
				part.Probes = append(part.Probes, p)
			}
		}
		if len(part.Probes) == known {
			_, err := c.Probe(name)
			return nil, cmp.Or(err, fmt.Errorf("%w that can be tried: %q reports the agent itself", config.ErrNoSuchProbe, name))
		}
	}
	return part, nil
}

// finish computes the results of groups and report from those of the steps.
func (r *Report) finish() {
	r.Result = OK
	for i := range r.Groups {
		g := &r.Groups[i]
		g.Result = OK
		for _, s := range g.Steps {
			g.Result = worse(g.Result, s.Result)
		}
		r.Result = worse(r.Result, g.Result)
	}
}

func worse(a, b Result) Result {
	order := []Result{Skip, OK, Warn, Fail}
	if b == Skip || slices.Index(order, a) >= slices.Index(order, b) {
		return a
	}
	return b
}

// Failed reports whether a group of that kind failed.
func (r *Report) Failed(kind string) bool {
	return slices.ContainsFunc(r.Groups, func(g Group) bool { return g.Kind == kind && g.Result == Fail })
}

func (r *Report) checkConfig(o Options) *config.Config {
	load := config.Load
	if o.Level == SyntaxOnly {
		load = config.LoadWithoutFiles // the machine that has the configuration need not have the secrets
	}
	cfg, warns, err := load(o.ConfigFile, o.Env)
	g := Group{Kind: GroupConfig, About: o.ConfigFile}
	r.Warnings = append(r.Warnings, warns...)
	var many *config.Errors
	switch {
	case errors.As(err, &many):
		r.Errors, r.ConfigText = many.Errors, many.Error()
		g.Steps = append(g.Steps, Step{Name: "load", Result: Fail, Text: fmt.Sprintf("%d mistakes", len(many.Errors))})
		if len(many.Errors) == 1 {
			g.Steps[0].Text = "1 mistake"
		}
	case err != nil:
		s := Step{Name: "load", Result: Fail, Text: err.Error(), Try: "name the file with --config.file"}
		if _, e := os.Stat(o.ConfigFile); e == nil { // then it is a file of conf.d
			s.Try = "put a readable file there, or remove the name"
		}
		g.Steps = append(g.Steps, s)
	default:
		g.Steps = append(g.Steps, Step{Name: "load", Result: OK, Text: cfg.Summary()})
	}
	for _, w := range warns {
		g.Steps = append(g.Steps, Step{Name: "warning", Result: Warn, Text: config.Error{File: w.File, Line: w.Line, Column: w.Column, Path: w.Path, Message: w.Message}.Error(), Try: w.Hint})
	}
	if cfg != nil {
		for _, p := range cfg.ListProblems() {
			g.Steps = append(g.Steps, Step{Name: "list of targets", Result: Warn, Text: p.Error(), Try: "correct the file: a running agent reads it again when it changes, and keeps the previous list until then"})
		}
	}
	r.Groups = append(r.Groups, g)
	return cfg
}

// checkLive checks targets and probes, and resolves the targets of scrape jobs, several at a time. The groups have the
// order of the configuration.
func checkLive(ctx context.Context, cfg *config.Config, o Options) []Group {
	var tasks []func() Group
	for _, t := range cfg.RemoteWrite {
		tasks = append(tasks, func() Group {
			return Group{Kind: GroupTarget, Name: t.TargetName(), About: t.URL.String(), Steps: checkTarget(ctx, t)}
		})
	}
	for i := range cfg.Probes {
		if p := &cfg.Probes[i]; p.Enabled && p.Type != "self" {
			tasks = append(tasks, func() Group {
				return Group{Kind: GroupProbe, Name: p.Name, About: strings.TrimSpace(p.Type + " " + p.Target), Steps: checkProbe(ctx, p, o)}
			})
		}
	}
	if cfg.ScrapeJobs() != nil {
		for _, job := range cfg.ScrapeJobs().Lookable() {
			tasks = append(tasks, func() Group {
				return Group{Kind: GroupScrape, Name: job, Steps: checkJob(ctx, cfg.ScrapeJobs(), job)}
			})
		}
	}
	groups := make([]Group, len(tasks))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, task := range tasks {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			groups[i] = task()
		})
	}
	wg.Wait()
	return groups
}
