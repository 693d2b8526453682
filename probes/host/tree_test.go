//go:build linux

package host

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// needs returns the path of another program; without it the test skips by name, and
// fails where everything must be there.
func needs(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("needs %s, which is not installed", program)
	}
	t.Skipf("needs %s, which is not installed", program)
	return ""
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// unpack writes a text archive (ttar) below dir: "Path:", "Lines:" and that many
// lines; "Directory:"; "Path:" and "SymlinkTo:". In file content NULLBYTE stands for
// a zero byte and EOF for the end of a last line without line feed; both are escaped
// by a backslash.
func unpack(t testing.TB, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	check := func(err error) {
		if err != nil {
			t.Fatalf("unpack %s: %v", archive, err)
		}
	}
	in := bufio.NewReader(f)
	path := ""
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return
		}
		check(err)
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "Directory":
			check(os.MkdirAll(filepath.Join(dir, value), 0o755))
		case "Path":
			path = filepath.Join(dir, value)
			check(os.MkdirAll(filepath.Dir(path), 0o755))
		case "SymlinkTo":
			check(os.Symlink(value, path))
		case "Lines":
			n, err := strconv.Atoi(value)
			check(err)
			var content bytes.Buffer
			for range n {
				line, err := in.ReadString('\n')
				check(err)
				line = strings.ReplaceAll(line, `\NULLBYTE`, "\x01")
				line = strings.ReplaceAll(line, "NULLBYTE", "\x00")
				line = strings.ReplaceAll(line, "\x01", "NULLBYTE")
				line = strings.ReplaceAll(line, `\EOF`, "\x01")
				line = strings.ReplaceAll(line, "EOF\n", "")
				content.WriteString(strings.ReplaceAll(line, "\x01", "EOF"))
			}
			check(os.WriteFile(path, content.Bytes(), 0o644))
		}
	}
}

// fixtures unpacks the trees that the tests read and returns their configuration.
func fixtures(t testing.TB) Config {
	t.Helper()
	dir := t.TempDir()
	for _, archive := range []string{"proc.ttar", "sys.ttar", "udev.ttar"} {
		unpack(t, filepath.Join("testdata", archive), dir)
	}
	return Config{
		ProcPath: filepath.Join(dir, "proc"),
		SysPath:  filepath.Join(dir, "sys"),
		UdevPath: filepath.Join(dir, "udev", "data"),
	}
}

// scrape is a set of samples as text: "name{label="value",…}" to value, and the type
// of each family. Empty labels are left out, as they mean nothing.
type scrape struct {
	values map[string]float64
	types  map[string]string
}

func newScrape() *scrape {
	return &scrape{values: make(map[string]float64), types: make(map[string]string)}
}

// add notes a sample and reports one that is there already.
func (s *scrape) add(name string, labels []string, v float64) error {
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		if labels[i+1] != "" {
			pairs = append(pairs, fmt.Sprintf("%s=%q", labels[i], labels[i+1]))
		}
	}
	sort.Strings(pairs)
	key := name
	if len(pairs) > 0 {
		key += "{" + strings.Join(pairs, ",") + "}"
	}
	if old, twice := s.values[key]; twice {
		return fmt.Errorf("%s is there twice: %v and %v", key, old, v)
	}
	s.values[key] = v
	return nil
}

// ofRound turns a round into a scrape and checks its form.
func ofRound(t *testing.T, r *probes.Round) *scrape {
	t.Helper()
	s := newScrape()
	families := make(map[string]*probes.Family)
	for _, sample := range r.Samples() {
		f := sample.Family
		if other := families[f.Name]; other != nil && other.Type != f.Type {
			t.Errorf("%s has two types", f.Name)
		}
		families[f.Name] = f
		if !model.LegacyValidation.IsValidMetricName(f.Name) || f.Help == "" {
			t.Errorf("family %+v is not well-formed", *f)
		}
		s.types[f.Name] = string(f.Type)
		if f.Type == model.MetricTypeUnknown {
			s.types[f.Name] = "untyped"
		}
		if err := s.add(f.Name, sample.Labels, sample.Value); err != nil {
			t.Error(err)
		}
	}
	return s
}

// String returns the scrape in exposition format without help, in order.
func (s *scrape) String() string {
	keys := make([]string, 0, len(s.values))
	for key := range s.values {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool {
		a, _, _ := strings.Cut(keys[i], "{")
		b, _, _ := strings.Cut(keys[j], "{")
		if a != b {
			return a < b
		}
		return keys[i] < keys[j]
	})
	var b strings.Builder
	last := ""
	for _, key := range keys {
		if name, _, _ := strings.Cut(key, "{"); name != last {
			fmt.Fprintf(&b, "# TYPE %s %s\n", name, s.types[name])
			last = name
		}
		fmt.Fprintf(&b, "%s %s\n", key, strconv.FormatFloat(s.values[key], 'g', -1, 64))
	}
	return b.String()
}
