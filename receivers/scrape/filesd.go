package scrape

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"hwsagent/internal/files"
	"hwsagent/internal/panics"
)

// lookEvery is how often target files are checked for changes.
const lookEvery = time.Second

// reader finds targets by a file_sd_configs entry: it reads files when they change. It belongs to one goroutine.
type reader struct {
	patterns []string
	interval time.Duration // after which all files are read again, changed or not
	failed   prometheus.Counter
	logger   *slog.Logger
	guard    *panics.Guard
	files    map[string]*listFile // files present at the last look
	// whole is when all files were last read.
	whole time.Time
	// unlisted is why the last look could not find out which files there are; "" if it could.
	unlisted string
	// answered is called after each look at which all files could be read, now or before.
	answered func()
}

// listFile is the state of a file.
type listFile struct {
	size    int64
	changed time.Time
	groups  int
	failed  string // last read error; "" if the last read succeeded
	blank   bool   // it had groups, and was empty at the last look
}

// run checks the files until ctx ends.
func (r *reader) run(ctx context.Context, to func([]*targetgroup.Group)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		var found []*targetgroup.Group
		err := r.guard.Run(func() { found = r.look(time.Now()) }) // which counts and logs a panic
		if len(found) > 0 {
			to(found)
		}
		if err == nil && r.complete() {
			r.answered()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look returns the groups of the files that have changed, and empty groups for those that no longer
// exist.
func (r *reader) look(now time.Time) (found []*targetgroup.Group) {
	all := now.Sub(r.whole) >= r.interval
	if all {
		r.whole = now
	}
	there := map[string]bool{}
	var errs []error
	for _, pattern := range r.patterns {
		names, err := files.Match(pattern)
		if err != nil {
			r.failed.Inc()
			errs = append(errs, err)
			for name := range r.files {
				there[name] = there[name] || files.Matches(pattern, name)
			}
			continue
		}
		for _, name := range names {
			there[name] = true
			found = append(found, r.file(name, all)...)
		}
	}
	r.tell(errors.Join(errs...))
	for name, f := range r.files {
		if !there[name] {
			found = append(found, groups(nil, name, "", "", f.groups)...)
			delete(r.files, name)
		}
	}
	return found
}

// complete reports whether all files are known and can be read.
func (r *reader) complete() bool {
	for _, f := range r.files {
		if f.failed != "" {
			return false
		}
	}
	return r.unlisted == "" && !r.whole.IsZero()
}

// tell logs why files cannot be listed, nil if they can, when that begins or changes.
func (r *reader) tell(err error) {
	before := r.unlisted
	if r.unlisted = ""; err != nil {
		r.unlisted = err.Error()
	}
	if r.unlisted != "" && r.unlisted != before {
		r.logger.Error("Files with targets cannot be listed; their targets stay as they were", "err", err)
	}
}

// file returns the groups of a file if it has changed or always is set. A file that cannot be read
// keeps its previous groups, and so does one that has been empty since less than two looks.
func (r *reader) file(name string, always bool) []*targetgroup.Group {
	f := r.files[name]
	info, err := os.Stat(name)
	if f != nil && err == nil && !always && f.size == info.Size() && f.changed.Equal(info.ModTime()) {
		return nil
	}
	if f == nil {
		f = &listFile{}
		r.files[name] = f
	}
	if err == nil && info.Size() == 0 && f.groups > 0 && !f.blank {
		f.blank, f.size = true, -1 // perhaps a program is writing it: look once more
		return nil
	}
	f.blank = false
	var list []listed
	if err == nil {
		f.size, f.changed = info.Size(), info.ModTime()
		list, err = readList(name)
	}
	if err != nil {
		if r.failed.Inc(); f.failed != err.Error() {
			r.logger.Error("A file with targets cannot be read; its targets stay as they were", "path", name, "err", err)
		}
		f.failed = err.Error()
		return nil
	}
	all := groups(list, name, model.MetaLabelPrefix+"filepath", name, f.groups)
	f.groups, f.failed = len(list), ""
	return all
}

// readList reads a file of at most maxListBytes.
func readList(name string) ([]listed, error) {
	text, err := files.Read(name, maxListBytes)
	if err != nil {
		return nil, err
	}
	read := readYAML
	if strings.EqualFold(filepath.Ext(name), ".json") {
		read = readJSON
	}
	list, err := read(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return list, nil
}
