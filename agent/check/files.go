package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v4"

	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/status"
	"hwsagent/internal/files"
	"hwsagent/internal/version"
	"hwsagent/receivers"
	"hwsagent/remotewrite/client"
	remoteconfig "hwsagent/remotewrite/config"
	"hwsagent/wal"
)

// checkTokenDir checks the directory with the tokens of an entry's tenants.
func checkTokenDir(t *remoteconfig.Config) (Step, bool) {
	if t.Target.Tenant == nil || t.Target.Tenant.CredentialsDir == "" {
		return Step{}, false
	}
	dir := t.Target.Tenant.CredentialsDir
	if _, err := os.ReadDir(dir); err != nil {
		return Step{Name: dir, Result: Fail, Text: "for target " + t.TargetName() + ": " + err.Error(), Try: "make the directory, with a file for each tenant that holds its token"}, true
	}
	return Step{}, false
}

// opensPage reports whether the page listens beyond this host while its configuration file requires no authentication.
func opensPage(w config.Web) (bool, error) {
	if !w.Reachable() {
		return false, nil // a bad listen is reported with the configuration
	}
	text, err := os.ReadFile(w.ConfigFile)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", w.ConfigFile, err)
	}
	var c struct {
		Users map[string]any `yaml:"basic_auth_users"`
		TLS   struct {
			ClientAuth string `yaml:"client_auth_type"`
		} `yaml:"tls_server_config"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return false, fmt.Errorf("parse %s: %w", w.ConfigFile, err)
	}
	return len(c.Users) == 0 && c.TLS.ClientAuth != "RequireAndVerifyClientCert", nil
}

// checkWebFile checks the file with TLS and users of a listener. what says what the listener shows.
func checkWebFile(key, what string, w config.Web) Step {
	if files.Check(w.ConfigFile) != nil {
		return Step{Name: w.ConfigFile, Result: Fail, Text: key + ": is not a regular file", Try: "replace it by a file: a directory or a pipe cannot be read"}
	}
	if err := toolkit.Validate(w.ConfigFile); err != nil {
		return Step{Name: w.ConfigFile, Result: Fail, Text: key + ": " + err.Error()}
	}
	open, err := opensPage(w)
	switch {
	case err != nil:
		return Step{Name: w.ConfigFile, Result: Fail, Text: key + ": " + err.Error()}
	case open:
		return Step{Name: w.ConfigFile, Result: Warn, Text: what + " can be read by everybody who can reach " + w.Listen + ": the file asks for no user and no client certificate",
			Try: "add basic_auth_users, or tls_server_config.client_auth_type: RequireAndVerifyClientCert with client_ca_file"}
	}
	return Step{Name: w.ConfigFile, Result: OK, Text: "read"}
}

// noFiles is the name of the only step if the configuration names no files.
const noFiles = "none"

// Unusable returns the steps that fail in a check of the files that the configuration names; never null.
func Unusable(c *config.Config, now time.Time) []Step {
	g := checkFiles(c, now)
	return slices.DeleteFunc(g.Steps, func(s Step) bool { return s.Result != Fail })
}

// WriteUnusable prints what [Unusable] returns as a check prints it, and nothing without steps.
func WriteUnusable(w io.Writer, steps []Step) error {
	if len(steps) == 0 {
		return nil
	}
	g := Group{Kind: GroupFiles, Steps: steps}
	g.judge()
	return g.WriteText(w)
}

// checkFiles checks every file that the configuration names.
func checkFiles(c *config.Config, now time.Time) Group {
	g := Group{Kind: GroupFiles}
	for _, f := range c.NamedFiles() {
		g.Steps = append(g.Steps, checkFile(f, now)...)
	}
	if c.Web.ConfigFile != "" {
		g.Steps = append(g.Steps, checkWebFile("web.config_file", "the page", c.Web))
	}
	if c.Pull != nil && c.Pull.WebConfigFile != "" {
		g.Steps = append(g.Steps, checkWebFile("pull.web_config_file", "every value", config.Web{Listen: c.Pull.Listen, ConfigFile: c.Pull.WebConfigFile}))
	}
	for _, l := range c.Receivers.Listeners() {
		if l.WebConfigFile == "" {
			continue
		}
		if err := receivers.CheckWebConfig(l.WebConfigFile, l.Listen); err != nil && !l.InsecureListen {
			g.Steps = append(g.Steps, Step{Name: l.WebConfigFile, Result: Fail, Text: "receivers." + l.Path + ": " + err.Error()})
		}
	}
	g.Steps = append(g.Steps, checkCommands(c)...)
	g.Steps = append(g.Steps, checkModules(c)...)
	for _, t := range c.RemoteWrite {
		if s, ok := checkTokenDir(t); ok {
			g.Steps = append(g.Steps, s)
		}
	}
	if len(g.Steps) == 0 {
		g.Steps = []Step{{Name: noFiles, Result: OK, Text: "the configuration names no files"}}
	}
	if c.ScrapeJobs() != nil {
		if err := c.ScrapeJobs().Check(); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			g.Steps = append(g.Steps, Step{Name: "scrape_configs", Result: Fail, Text: err.Error(), Try: "put files there that belong together"})
		}
	}
	for _, t := range c.RemoteWrite {
		if s, ok := checkCredentials(t); ok {
			g.Steps = append(g.Steps, s)
		}
	}
	return g
}

// checkCredentials asks the client whether it could work with a target's files, for example whether certificate and key
// belong together.
func checkCredentials(t *remoteconfig.Config) (Step, bool) {
	c, err := client.New(t, client.Options{Version: version.Version})
	if err == nil {
		err = c.CredentialError()
		c.Close()
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return Step{}, false // the file itself is reported already
	}
	return Step{Name: "target " + t.TargetName(), Result: Fail, Text: err.Error(), Try: "put files there that belong together"}, true
}

func checkFile(f config.NamedFile, now time.Time) []Step {
	fail := func(text, try string) []Step {
		return []Step{{Name: f.Path, Result: Fail, Text: "for " + f.Owner + ": " + text, Try: try}}
	}
	body, err := f.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("does not exist", "create it; no reload is needed")
	case errors.Is(err, fs.ErrPermission):
		return fail(fmt.Sprintf("may not be read by this user (uid %d)", os.Getuid()), "make the agent's user its owner: chown")
	case err != nil:
		return fail(err.Error(), "")
	case len(bytes.TrimSpace(body)) == 0:
		return fail("is empty", "put the token, password or certificate into it; no reload is needed")
	}
	steps := []Step{{Name: f.Path, Result: OK, Text: "readable"}}
	if info, err := os.Stat(f.Path); err == nil && f.Secret && runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		steps = append(steps, Step{Name: f.Path, Result: Warn, Text: fmt.Sprintf("holds a secret and every user of this host may read it (%#o)", info.Mode().Perm()), Try: "chmod 600 " + f.Path})
	}
	if e, ends := client.ExpiryOf(body); ends {
		left := e.Until.Sub(now)
		steps[0].Text = e.What + " valid for " + days(left)
		switch {
		case left < 0:
			steps[0].Result, steps[0].Text, steps[0].Try = Fail, "for "+f.Owner+": "+e.What+" expired on "+e.Until.UTC().Format(time.DateTime)+" UTC", "replace it; no reload is needed"
		case !now.Before(e.WarnAt()):
			steps[0].Result, steps[0].Text, steps[0].Try = Warn, "for "+f.Owner+": "+e.What+" expires in "+days(left), "replace it before that; no reload is needed"
		}
	}
	return steps
}

func days(d time.Duration) string {
	if d < 48*time.Hour {
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// checkStorage proves that the log can be written in its directory. beside are the other directories there.
func checkStorage(ctx context.Context, c *config.Config, dir string, beside []string) Group {
	g := Group{Kind: GroupStorage, About: dir}
	add := func(s Step) { g.Steps = append(g.Steps, s) }
	if dir == "" {
		add(Step{Name: "path", Result: Skip, Text: "no --storage.path was given"})
		return g
	}
	at := dir
	info, err := os.Stat(dir)
	refused := wal.CheckDirectory(dir, beside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// The agent would create the directory in the nearest parent that exists.
		for at = filepath.Clean(dir); ; at = filepath.Dir(at) {
			if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
				break
			}
		}
		add(Step{Name: "path", Result: OK, Text: "does not exist yet; the agent will create it"})
	case err != nil:
		add(Step{Name: "path", Result: Fail, Text: err.Error()})
		return g
	case !info.IsDir():
		add(Step{Name: "path", Result: Fail, Text: "is not a directory"})
		return g
	case refused != nil:
		add(unsafeStorage(refused))
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		add(Step{Name: "path", Result: Warn, Text: fmt.Sprintf("other users of this host have access (%#o)", info.Mode().Perm()), Try: "chmod 700 " + dir})
	}
	g.Steps = append(g.Steps, tryWrites(at, slices.Concat(wal.Directories(), beside))...)
	if free, err := wal.FreeBytes(at); err == nil {
		s := Step{Name: "space", Result: OK, Text: status.Size(free) + " free"}
		if least := int64(c.WAL.MinFreeBytes); free < least {
			s.Result, s.Text = Fail, s.Text+", less than wal.min_free_bytes, "+status.Size(least)
			s.Try = "make room, or lower wal.min_free_bytes"
		} else if free < least+int64(c.WAL.MaxBytes) {
			s.Result, s.Text = Warn, s.Text+", too little for wal.max_bytes, "+status.Size(int64(c.WAL.MaxBytes))+", in an outage"
			s.Try = "make room, or lower wal.max_bytes"
		}
		add(s)
	}
	switch status, _, err := control.Ask(ctx, dir, "GET", "/-/healthy"); {
	case err == nil && status == 200:
		add(Step{Name: "agent", Result: OK, Text: "in use by a running agent"})
	case errors.Is(err, control.ErrSilent):
		add(Step{Name: "agent", Result: Warn, Text: "in use by an agent that does not answer: " + err.Error(), Try: "hwsagent status"})
	}
	return g
}

// unsafeStorage reports that this user's agent would refuse the storage directory. If root checks for another user, whose
// the directory is, that user's agent takes it.
func unsafeStorage(err error) Step {
	s := Step{Name: "path", Result: Fail, Text: err.Error(), Try: "do what the error says: the agent does not start with this directory"}
	if _, other := errors.AsType[*wal.OwnerError](err); other && os.Geteuid() == 0 {
		s.Result, s.Try = Warn, "run the agent, and this check, as the owner of the directory"
	}
	return s
}

// tryWrites writes to the directory, to those inside it that exist, and to the ones that they hold: each may have a mode or a mount
// of its own. It returns the steps that found something, else the one of the directory itself.
func tryWrites(dir string, inside []string) []Step {
	top := tryWrite(dir)
	if top.Result != OK {
		return []Step{top}
	}
	var wrong []Step
	for _, inner := range inside {
		_ = filepath.WalkDir(filepath.Join(dir, inner), func(path string, e fs.DirEntry, err error) error { // it returns no error
			s := Step{Name: "write", Result: OK}
			switch {
			case errors.Is(err, fs.ErrNotExist): // the agent makes it
			case err != nil:
				s.Result, s.Text, s.Try = Fail, err.Error(), letWrite
			case e.IsDir():
				s = tryWrite(path)
			}
			if s.Result != OK {
				wrong = append(wrong, s)
			}
			return nil
		})
	}
	if wrong == nil {
		wrong = []Step{top}
	}
	return wrong
}

// letWrite is what to do about a directory without permission.
const letWrite = "let the agent's user write there, or choose another --storage.path"

// tryWrite writes, syncs and removes a file.
func tryWrite(dir string) Step {
	s := Step{Name: "write", Result: Fail, Try: letWrite}
	f, err := os.CreateTemp(dir, ".hwsagent-check-")
	if err != nil {
		s.Text = err.Error()
		return s
	}
	start := time.Now()
	_, err = f.Write(make([]byte, 4096))
	err = errors.Join(err, f.Sync())
	s.Took = time.Since(start)
	err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	if err != nil {
		s.Text = err.Error()
		return s
	}
	s.Result, s.Try, s.Text = OK, "", "writes and syncs in "+status.Span(s.Took)
	if s.Took > time.Second {
		s.Result, s.Text = Warn, s.Text+", which is slow"
	}
	return s
}
