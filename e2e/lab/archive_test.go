//go:build linux && amd64

package lab

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// archive is an initial file system in the making, in the format "newc" (Linux: Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	out  io.Writer
	done map[string]bool
	err  error // the first one; nothing is written after it
}

const (
	cpioDirectory = 0o040755
	cpioProgram   = 0o100755
	cpioFile      = 0o100644
	cpioLink      = 0o120777
)

// entry writes one entry and, before it, the directories above it. A name that is there already is left as it is.
func (a *archive) entry(name string, mode int, content []byte) {
	name = strings.TrimPrefix(filepath.Clean(name), "/")
	if a.err != nil || name == "." || a.done[name] {
		return
	}
	if dir := filepath.Dir(name); dir != "." {
		a.entry(dir, cpioDirectory, nil)
	}
	a.done[name] = true
	a.record(name, mode, content)
}

func (a *archive) record(name string, mode int, content []byte) {
	var b bytes.Buffer
	links := 1
	// Magic, inode, mode, owner, group, links, time, size, device, device of a special file, length of the name, checksum.
	fmt.Fprintf(&b, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		len(a.done), mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name)+1, 0)
	b.WriteString(name)
	b.WriteByte(0)
	pad(&b)
	b.Write(content)
	pad(&b)
	if a.err == nil {
		_, a.err = a.out.Write(b.Bytes())
	}
}

// pad fills up to a multiple of four.
func pad(b *bytes.Buffer) {
	for b.Len()%4 != 0 {
		b.WriteByte(0)
	}
}

// copy takes a file of this host, under its own name or another.
func (a *archive) copy(from, to string) {
	content, err := os.ReadFile(from)
	if err != nil && a.err == nil {
		a.err = err
		return
	}
	info, err := os.Stat(from)
	if err != nil && a.err == nil {
		a.err = err
		return
	}
	mode := cpioFile
	if info.Mode()&0o111 != 0 {
		mode = cpioProgram
	}
	a.entry(to, mode, content)
}

// libraries are lines of ldd(1): "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)" and "/lib64/ld-linux-x86-64.so.2 (0x…)".
var libraries = regexp.MustCompile(`(?m)^\s+(?:\S+ => )?(/\S+) \(0x`)

// program takes a program with the libraries that it is linked with.
func (a *archive) program(t *testing.T, from, to string) {
	t.Helper()
	a.copy(from, to)
	out, err := exec.Command("ldd", from).CombinedOutput()
	if err != nil {
		if bytes.Contains(out, []byte("not a dynamic executable")) {
			return
		}
		t.Fatalf("ldd %s: %v\n%s", from, err, out)
	}
	for _, m := range libraries.FindAllStringSubmatch(string(out), -1) {
		a.copy(m[1], m[1])
	}
}

// modules takes kernel modules with what they depend on, and lists them in the order in which they are loaded. A name may be
// followed by parameters.
func (a *archive) modules(t *testing.T, modprobe, version string, names []string) {
	t.Helper()
	var list []string
	seen := map[string]bool{}
	for _, name := range names {
		out, err := exec.Command(modprobe, append([]string{"-C", "/dev/null", "-S", version, "--show-depends"}, strings.Fields(name)...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("modprobe --show-depends %s: %v\n%s", name, err, out)
		}
		for line := range strings.Lines(string(out)) {
			what, ok := strings.CutPrefix(strings.TrimSpace(line), "insmod ")
			path, _, _ := strings.Cut(what, " ")
			if !ok || seen[path] {
				continue // "builtin"
			}
			seen[path] = true
			a.copy(path, path)
			list = append(list, what+"\n")
		}
	}
	a.entry("/etc/lab/modules", cpioFile, []byte(strings.Join(list, "")))
}

// finish ends the archive.
func (a *archive) finish() error {
	a.record("TRAILER!!!", 0, nil)
	return a.err
}

// writeArchive makes the file of an initial file system.
func writeArchive(t *testing.T, fill func(*archive)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "initramfs")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	a := &archive{out: out, done: map[string]bool{}}
	fill(a)
	if err := a.finish(); err != nil {
		t.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestArchive reads an archive back with a program that is not ours.
func TestArchive(t *testing.T) {
	cpio, err := exec.LookPath("cpio")
	if err != nil {
		t.Skip("needs cpio (Debian: apt-get install cpio)")
	}
	path := writeArchive(t, func(a *archive) {
		a.entry("/bin/x", cpioProgram, []byte("program"))
		a.entry("/bin/y", cpioLink, []byte("x"))
		a.entry("/bin/x", cpioProgram, []byte("another"))
		a.entry("/etc/deep/z", cpioFile, []byte("abcde"))
	})
	dir := t.TempDir()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := exec.Command(cpio, "--extract", "--make-directories", "--quiet")
	cmd.Dir, cmd.Stdin = dir, in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cpio: %v\n%s", err, out)
	}
	for name, want := range map[string]string{"bin/x": "program", "bin/y": "program", "etc/deep/z": "abcde"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
		}
	}
}
