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

	"golang.org/x/sync/errgroup"

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

	more string // for people, after the steps: the mistakes in the configuration with their source lines
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

	// NotTried names parts of the configuration that the check cannot try; never null.
	NotTried []string `json:"not_tried"`

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
	// Done, if not nil, is called for each group as soon as it is known, one call at a time. Targets, probes and jobs come in the order
	// in which they end.
	Done func(Group)
	// Waiting, if not nil, is called once with the names of the targets, probes and jobs that take longer than five seconds.
	Waiting func(names []string)
	// RunProbe runs one round of a probe, as the agent does; it must be safe for concurrent use. Only [Live] needs it. An error
	// means that there is no such probe.
	RunProbe func(context.Context, *config.Probe, *slog.Logger) (Round, error)
}

// Round is the outcome of one round of a probe.
type Round struct {
	probes.Status
	Why devices.Reason // why the device could not be reached; "" if it could, or is unknown
}

// parallel bounds how many targets, probes and jobs are checked at the same time.
const parallel = 8

// slow is after how much time the check names what it waits for.
const slow = 5 * time.Second

// Run tests everything that the agent needs for its work, with the same constructors as the agent itself. It changes
// nothing except for temporary files, which prove that the storage is writable, and sends no sample to any target.
//
// The error is ErrNoSuchTarget or ErrNoSuchProbe if the configuration lacks one of the names.
func Run(ctx context.Context, o Options) (Report, error) {
	r := Report{Schema: 1, Result: OK, Version: version.Version, File: o.ConfigFile, Groups: []Group{}, Errors: []config.Error{}, Warnings: []config.Warning{}, NotTried: []string{}, level: o.Level}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Done == nil {
		o.Done = func(Group) {}
	}
	cfg, loaded := r.checkConfig(o)
	if cfg == nil {
		r.add(o, loaded)
		return r, nil
	}
	chosen, err := only(cfg, o.Targets, o.Probes)
	if err != nil {
		return r, err
	}
	r.part = chosen != cfg
	if !r.part {
		r.add(o, loaded)
	}
	if files := checkFiles(chosen, time.Now()); o.Level > SyntaxOnly && (!r.part || files.Steps[0].Name != noFiles) {
		r.add(o, files)
	}
	if o.Level > SyntaxOnly && !r.part {
		r.add(o, checkStorage(ctx, cfg, o.StoragePath, o.Beside))
	}
	if o.Level == Live {
		for _, g := range checkLive(ctx, chosen, o) {
			r.Groups = append(r.Groups, g)
			r.Result = worse(r.Result, g.Result)
		}
		r.NotTried = append(r.NotTried, notTried(chosen)...)
	}
	return r, nil
}

// add adds a finished group.
func (r *Report) add(o Options, g Group) {
	g.judge()
	r.Groups = append(r.Groups, g)
	r.Result = worse(r.Result, g.Result)
	o.Done(g)
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

// judge computes the result of the group from those of its steps.
func (g *Group) judge() {
	g.Result = OK
	for _, s := range g.Steps {
		g.Result = worse(g.Result, s.Result)
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

// checkConfig loads the configuration; it is nil if it has mistakes.
func (r *Report) checkConfig(o Options) (*config.Config, Group) {
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
		r.Errors, g.more = many.Errors, many.Error()
		g.Steps = append(g.Steps, Step{Name: "load", Result: Fail, Text: fmt.Sprintf("%d mistakes", len(many.Errors))})
		if len(many.Errors) == 1 {
			g.Steps[0].Text = "1 mistake"
		}
	case err != nil:
		s := Step{Name: "load", Result: Fail, Text: err.Error(), Try: "name the file with --config.file, or write a first one: hwsagent init --url URL"}
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
			g.Steps = append(g.Steps, Step{Name: "list of devices", Result: Warn, Text: p.Error(), Try: "correct the file: a running agent reads it again when it changes, and keeps the previous list until then"})
		}
	}
	return cfg, g
}

// task tries one target, probe or job.
type task struct {
	group Group // without its steps
	steps func() []Step
}

// tasks returns what a live check tries, in the order of the configuration.
func tasks(ctx context.Context, cfg *config.Config, o Options) (all []task) {
	for _, t := range cfg.RemoteWrite {
		all = append(all, task{Group{Kind: GroupTarget, Name: t.TargetName(), About: t.URL.String()}, func() []Step { return checkTarget(ctx, t) }})
	}
	for i := range cfg.Probes {
		if p := &cfg.Probes[i]; p.Enabled && p.Type != "self" {
			about := strings.TrimSpace(p.Type + " " + p.Target)
			all = append(all, task{Group{Kind: GroupProbe, Name: p.Name, About: about}, func() []Step { return checkProbe(ctx, p, o) }})
		}
	}
	if jobs := cfg.ScrapeJobs(); jobs != nil { // nil for a part of a configuration
		for _, job := range jobs.Names() {
			all = append(all, task{Group{Kind: GroupScrape, Name: job}, func() []Step { return checkJob(ctx, jobs, job) }})
		}
	}
	return all
}

// checkLive tries targets, probes and scrape jobs, several at a time. The groups have the order of the configuration.
func checkLive(ctx context.Context, cfg *config.Config, o Options) []Group {
	all := tasks(ctx, cfg, o)
	groups := make([]Group, len(all))
	var mu sync.Mutex // guards groups, and makes one call of o.Done or o.Waiting at a time
	late := time.AfterFunc(slow, func() {
		mu.Lock()
		defer mu.Unlock()
		var names []string
		for i := range groups {
			if groups[i].Kind == "" {
				names = append(names, all[i].group.Kind+" "+all[i].group.Name)
			}
		}
		if len(names) > 0 && o.Waiting != nil {
			o.Waiting(names)
		}
	})
	defer late.Stop()
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, task := range all {
		group.Go(func() error {
			g := task.group
			g.Steps = task.steps()
			g.judge()
			mu.Lock()
			defer mu.Unlock()
			groups[i] = g
			o.Done(g)
			return nil
		})
	}
	_ = group.Wait() // each group has its own errors
	return groups
}
