package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"hwsagent/agent/check"
	"hwsagent/agent/confdiff"
	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/events"
	"hwsagent/agent/web"
	"hwsagent/internal/panics"
	"hwsagent/internal/text"
)

// ErrReload means that a running agent could not use its configuration file.
var ErrReload = errors.New("the reload failed and changed nothing")

// Reloaded is the outcome of a reload; with DryRun, the outcome it would have.
type Reloaded struct {
	Schema   int               `json:"schema"`   // 1
	Reloaded bool              `json:"reloaded"` // false: nothing was changed
	DryRun   bool              `json:"dry_run"`
	File     string            `json:"file"`
	Changes  []confdiff.Change `json:"changes"`  // never null
	Warnings []config.Warning  `json:"warnings"` // never null

	// Files are the steps that fail in a check of the files that the configuration names. They do not stop a reload, because
	// the other targets and probes work without them. Never null.
	Files []check.Step `json:"files"`
}

// maxChanges bounds how many changes WriteText prints.
const maxChanges = 200

// WriteText prints the changes for people.
func (r Reloaded) WriteText(w io.Writer) error {
	var b strings.Builder
	for i, c := range r.Changes {
		if i == maxChanges {
			fmt.Fprintf(&b, "and %d further changes: --json has them all\n", len(r.Changes)-i)
			break
		}
		b.WriteString(text.Printable(c.String()) + "\n")
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", text.Printable(warning.String()))
	}
	did, nothing := "reloaded "+r.File, "; nothing has changed"
	if r.DryRun {
		did, nothing = "a reload of "+r.File+" would succeed", "; nothing would change"
	}
	if len(r.Changes) == 0 {
		did += nothing
	}
	b.WriteString(did + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteFiles prints the files that cannot be used, if there are any.
func (r Reloaded) WriteFiles(w io.Writer) error { return check.WriteUnusable(w, r.Files) }

// maxLogged bounds how many changes a line of the log names.
const maxLogged = 10

// summary names the changes in one line; "" if there are none.
func (r Reloaded) summary() string {
	var parts []string
	for _, c := range r.Changes[:min(len(r.Changes), maxLogged)] {
		parts = append(parts, c.String())
	}
	if more := len(r.Changes) - maxLogged; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// Reload reads the configuration file again and applies it. On an error nothing changes, and the status shows the error
// until a reload succeeds. If something hangs, the error [web.ErrNotBegun] or [web.ErrGoesOn] comes after ten seconds
// at most, and the status says what hangs.
func (a *Agent) Reload() error {
	_, err := a.reloadShown()
	return err
}

// reloadShown is Reload, and returns what changed.
func (a *Agent) reloadShown() (Reloaded, error) {
	done := make(chan Reloaded, 1)
	err := a.changes.do("the reload", func() error {
		r, err := a.tryReload()
		done <- r
		return err
	})
	switch {
	case errors.Is(err, web.ErrNotBegun):
		a.logger.Error("The configuration was not reloaded; the one in force stays", "file", a.o.ConfigFile, "err", err)
	case errors.Is(err, web.ErrGoesOn):
		a.logger.Error("The reload has not ended", "file", a.o.ConfigFile, "err", err)
	}
	if err != nil {
		return Reloaded{}, err
	}
	return <-done, nil
}

// tryReload is the part of Reload that runs as a change.
func (a *Agent) tryReload() (Reloaded, error) {
	a.o.Manager.Reloading()
	defer a.o.Manager.Ready() // also after a failure, because the configuration in force stays
	a.changes.at("reading the configuration")
	r, cfg, err := a.compared()
	if err == nil {
		err = a.reload(cfg, r.Warnings)
	}
	if err != nil {
		a.logger.Error("The configuration was not reloaded; the one in force stays", "file", a.o.ConfigFile, "err", err)
		a.mu.Lock()
		a.status.ReloadError, a.status.ReloadedAt, a.status.ReloadMistakes = err.Error(), time.Now(), 0
		if mistakes, ok := errors.AsType[*config.Errors](err); ok {
			a.status.ReloadMistakes = len(mistakes.Errors)
		}
		a.mu.Unlock()
		a.metrics.reloadFailed()
		a.events.Add(events.Event{Time: time.Now(), Kind: events.ReloadFailed, Subject: "config", Text: "the reload failed and changed nothing: " + text.FirstLine(err.Error())})
		return Reloaded{}, err
	}
	a.logger.Info("The configuration was reloaded", "file", a.o.ConfigFile, "changes", len(r.Changes), "changed", r.summary())
	a.events.Add(events.Event{Time: time.Now(), Kind: events.Reloaded, Subject: "config", Text: "loaded " + a.o.ConfigFile})
	r.Reloaded = true
	return r, nil
}

func (a *Agent) reload(cfg *config.Config, warns []config.Warning) error {
	logWarnings(a.logger, warns)
	a.mu.Lock()
	before, timestamps := a.cfg.Web, a.cfg.Global.ScrapeStartTimestamps
	a.mu.Unlock()
	if cfg.Web != before {
		a.logger.Warn("Keys below web changed; restart to apply them")
	}
	if cfg.Global.ScrapeStartTimestamps != timestamps {
		a.logger.Warn("Key global.scrape_start_timestamps changed; restart to apply it")
	}
	return a.put(cfg)
}

// compared reads the configuration file and returns it with its differences from the one in force.
func (a *Agent) compared() (Reloaded, *config.Config, error) {
	cfg, warns, err := config.Load(a.o.ConfigFile, a.o.Env)
	if err != nil {
		return Reloaded{}, nil, err
	}
	a.mu.Lock()
	before := a.cfg
	a.mu.Unlock()
	r := Reloaded{Schema: 1, File: cfg.File, Changes: []confdiff.Change{}, Warnings: append([]config.Warning{}, warns...), Files: []check.Step{}}
	changes, err := differences(before, cfg)
	r.Changes = append(r.Changes, changes...)
	return r, cfg, err
}

// differences returns the differences between before and after. A difference that must not be shown, such as a secret,
// appears as a change of its entry or section.
func differences(before, after *config.Config) ([]confdiff.Change, error) {
	var old, fresh yaml.Node
	if err := errors.Join(old.Encode(before), fresh.Encode(after)); err != nil {
		return nil, fmt.Errorf("compare configurations: %w", err)
	}
	changes := confdiff.Of(&old, &fresh)
	hidden := func(path string, same bool) {
		covered := func(c confdiff.Change) bool { return c.Path == path || strings.HasPrefix(c.Path, path+".") }
		if same || slices.ContainsFunc(changes, covered) {
			return
		}
		changes = append(changes, confdiff.Change{Path: path, Change: confdiff.Changed, Hidden: true})
	}
	hidden("global", reflect.DeepEqual(before.Global, after.Global))
	hidden("receivers", reflect.DeepEqual(before.Receivers, after.Receivers))
	for _, p := range after.Probes {
		for _, o := range before.Probes {
			if o.Name == p.Name {
				hidden(confdiff.Named("probes", p.Name), reflect.DeepEqual(o, p))
			}
		}
	}
	for _, t := range after.RemoteWrite {
		for _, o := range before.RemoteWrite {
			if shown := cmp.Or(t.Name, t.URL.String()); o.TargetName() == t.TargetName() && shown == cmp.Or(o.Name, o.URL.String()) {
				hidden(confdiff.Named("remote_write", shown), reflect.DeepEqual(o, t))
			}
		}
	}
	for _, job := range after.ScrapeJobs().Names() {
		hidden(confdiff.Named("scrape_configs", job), after.ScrapeJobs().Same(before.ScrapeJobs(), job))
	}
	for i := range changes {
		path := changes[i].Path
		changes[i].AtStart = strings.HasPrefix(path, "web.") || path == "global.scrape_start_timestamps"
	}
	return changes, nil
}

// answerReload serves POST /control/reload. The answers are those of POST /-/reload, except that success returns a
// [Reloaded].
func (a *Agent) answerReload(w http.ResponseWriter, h *http.Request) {
	var r Reloaded
	var cfg *config.Config
	var err error
	if h.URL.Query().Get("dry_run") == "true" {
		r, cfg, err = a.compared()
		r.DryRun = true
	} else if r, err = a.reloadShown(); err == nil {
		a.mu.Lock()
		cfg = a.cfg
		a.mu.Unlock()
	}
	if err != nil {
		web.AnswerReload(w, err)
		return
	}
	r.Files = a.unusableFiles(cfg)
	control.Reply(w, r, nil)
}

// unusableFiles checks the files that a configuration names. It is no part of the change, because reading a file may hang.
func (a *Agent) unusableFiles(cfg *config.Config) []check.Step {
	found := make(chan []check.Step, 1)
	go func() {
		var guard *panics.Guard
		_ = guard.Do(func() error { found <- check.Unusable(cfg, time.Now()); return nil }) // a panic leaves the answer below
	}()
	late := time.NewTimer(a.changes.within)
	defer late.Stop()
	select {
	case steps := <-found:
		return steps
	case <-late.C:
		return []check.Step{{Name: "files", Result: check.Fail, Text: "a file that the configuration names does not answer", Try: "hwsagent check --no-network shows the files"}}
	}
}

// RequestReload makes the agent that runs on the storage directory reload its configuration; with dryRun the agent only
// reports what would change. If the configuration is refused, the error is ErrReload with the agent's whole answer;
// control.ErrSilent if the agent does not answer at all. If something that hangs delays the answer, the error says so within
// ten seconds.
func RequestReload(ctx context.Context, storage string, dryRun bool) (Reloaded, error) {
	path := "/control/reload"
	if dryRun {
		path += "?dry_run=true"
	}
	var r Reloaded
	code, body, err := control.Ask(ctx, storage, http.MethodPost, path)
	if err != nil {
		return r, err
	}
	switch code {
	case http.StatusOK:
		if err := json.Unmarshal(body, &r); err != nil {
			return r, fmt.Errorf("read the agent's answer: %w", err)
		}
		return r, nil
	case http.StatusAccepted, http.StatusServiceUnavailable:
		return r, errors.New(strings.TrimRight(string(body), "\n"))
	}
	return r, fmt.Errorf("%w:\n%s", ErrReload, strings.TrimPrefix(strings.TrimRight(string(body), "\n"), web.ReloadFailed))
}

// logWarnings logs the warnings of a configuration that is being applied.
func logWarnings(logger *slog.Logger, warns []config.Warning) {
	for _, w := range warns {
		logger.Warn("Configuration warning", "warning", w.String())
	}
}
