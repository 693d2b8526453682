//go:build unix

package imports

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func librenmsTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	acmeDetection = "os: acme\ntext: Acme\ndiscovery: [{sysObjectID: [.1.3.6.1.4.1.99999.5]}]\n"
	acmeSensors   = "modules: {sensors: {temperature: {data: [{oid: acmeTemp, num_oid: '.1.3.6.1.4.1.99999.1.2.3.{{ $index }}'}]}}}\n"
)

// within runs an import, which must end in time.
func within(t *testing.T, limit time.Duration, run func() (*Result, error)) (*Result, error) {
	t.Helper()
	type ended struct {
		r   *Result
		err error
	}
	done := make(chan ended, 1)
	go func() { r, err := run(); done <- ended{r, err} }()
	select {
	case e := <-done:
		return e.r, e.err
	case <-time.After(limit):
		t.Fatalf("no end within %s", limit)
		return nil, nil
	}
}

// TestAliasesAreBounded reads small files whose aliases repeat lists again and again.
func TestAliasesAreBounded(t *testing.T) {
	var unknown, circle strings.Builder
	unknown.WriteString("list: &l [" + strings.Repeat("{descr: x},", 10000) + "]\nmodules:\n  sensors:\n")
	for i := range 10000 {
		fmt.Fprintf(&unknown, "    c%d: {data: *l}\n", i)
	}
	circle.WriteString("modules: &m {sensors: *m}\n")
	for name, text := range map[string]string{"unknown classes": unknown.String(), "a circle": circle.String()} {
		dir := librenmsTree(t, map[string]string{"os_detection/acme.yaml": acmeDetection, "os_discovery/acme.yaml": text})
		r, err := within(t, 20*time.Second, func() (*Result, error) { return LibreNMS(dir) })
		if err != nil || len(r.Texts()) != 0 || len(r.Files) != 2 || !strings.Contains(r.Files[1].Left[0].Reason, "aliases") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestSameSystemTwice reads two files that declare the same operating system.
func TestSameSystemTwice(t *testing.T) {
	dir := librenmsTree(t, map[string]string{
		"os_detection/acme.yaml": acmeDetection, "os_discovery/acme.yaml": acmeSensors,
		"os_detection/acme2.yaml": acmeDetection, "os_discovery/acme2.yaml": acmeSensors,
	})
	r, err := LibreNMS(dir)
	if err != nil || r.Definitions != 1 || len(r.Texts()) != 1 || r.Values != 1 || len(r.Files[2].Left) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestPipeForDetection reads a copy of LibreNMS in which a pipe replaces a file.
func TestPipeForDetection(t *testing.T) {
	dir := librenmsTree(t, map[string]string{"os_detection/acme.yaml": acmeDetection, "os_discovery/acme.yaml": acmeSensors, "os_discovery/pipe.yaml": acmeSensors})
	if err := syscall.Mkfifo(filepath.Join(dir, "os_detection/pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := within(t, 20*time.Second, func() (*Result, error) { return LibreNMS(dir) })
	if err != nil || r.Definitions != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestControlCharacters prints texts of a hostile file without terminal control codes.
func TestControlCharacters(t *testing.T) {
	dir := librenmsTree(t, map[string]string{
		"os_detection/acme.yaml": acmeDetection,
		"os_discovery/acme.yaml": "modules: {sensors: {\"x\\e[2J\": {data: [{descr: \"\\e]0;x\\a\"}]}}}\n",
	})
	r, err := LibreNMS(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.Write(&b, dir); err != nil || strings.ContainsAny(b.String(), "\x1b\a") {
		t.Errorf("%v: %q", err, b.String())
	}
}
