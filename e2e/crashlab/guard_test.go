//go:build linux

package crashlab

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"hwsagent/internal/tools/tier"
)

// nobody is the user ID of a user that owns nothing.
const nobody = 65534

// refusal is how an agent ended that was not let in.
type refusal struct {
	code int
	text string
	took time.Duration
}

// refused starts an agent on that directory, as that user if it is not 0, and returns how
// it ended; it fails the test if that takes long, or if the directory is changed by it.
func (l *lab) refused(storage string, uid uint32) refusal {
	l.t.Helper()
	before := listing(l.t, storage)
	cmd := exec.Command(l.args[0], "run", "--config.file", filepath.Join(l.dir, "agent.yaml"), "--storage.path", storage, "--web.listen-address", "127.0.0.1:0")
	cmd.SysProcAttr = dieWithParent()
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	var out strings.Builder
	cmd.Stderr = &out
	began := time.Now()
	if err := children.start(cmd.Start); err != nil {
		l.t.Fatal(err)
	}
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait() // how it ended is in ProcessState
	r := refusal{cmd.ProcessState.ExitCode(), out.String(), time.Since(began)}
	l.t.Logf("%s refused after %s, code %d: %s", storage, r.took.Round(time.Millisecond), r.code, r.text)
	if limit := time.Second + l.witness.slippedBy(); r.took > tier.Within(limit) {
		l.t.Errorf("it took %s, more than %s", r.took, limit)
	}
	if diff := cmp.Diff(before, listing(l.t, storage)); diff != "" {
		l.t.Errorf("the refused agent changed the directory:\n%s", diff)
	}
	return r
}

// listing returns what is below a directory, but for what a running agent changes all the time.
func listing(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is not there, or may not be looked at: nothing to compare
		}
		if strings.HasPrefix(d.Name(), "events.json") {
			return nil // the running agent replaces it
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("no stat of %s", path)
		}
		line := fmt.Sprintf("%s %s %d inode %d", path, info.Mode(), st.Uid, st.Ino)
		if filepath.Base(path) == "lock" || d.Type()&fs.ModeSymlink != 0 {
			line += fmt.Sprintf(" %d bytes, changed %d %d", st.Size, st.Ctim.Sec, st.Ctim.Nsec)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// newGuarded returns a lab whose binary and configuration any user may read.
func newGuarded(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, options{})
	for dir := l.dir; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(l.dir, "agent.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(l.args[0])
	if err != nil {
		t.Fatal(err)
	}
	l.args[0] = filepath.Join(l.dir, "hwsagent")
	if err := os.WriteFile(l.args[0], program, 0o755); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSecondAgent starts a second agent on the directory of one that runs, by every name
// that the directory has. The first does not notice, and neither does it notice those who
// look at its status and its log.
func TestSecondAgent(t *testing.T) {
	t.Parallel()
	l := newGuarded(t)
	// A lock that a dead agent left does not hinder.
	if err := os.MkdirAll(l.storage, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.storage, "lock"), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.arrived()
	names := map[string]string{"its own name": l.storage, "a name with detours": l.dir + "/../" + filepath.Base(l.dir) + "/./data"}
	link := filepath.Join(l.dir, "link")
	if err := os.Symlink(l.dir, link); err != nil {
		t.Fatal(err)
	}
	names["a parent that is a symbolic link"] = filepath.Join(link, "data")
	if mountsAreOwn() {
		bound := filepath.Join(l.dir, "bound")
		if err := os.Mkdir(bound, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(l.storage, bound, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(bound, unix.MNT_DETACH) })
		names["a bind mount"] = bound
	}
	for name, path := range names {
		for range amount(1, 20) {
			r := l.refused(path, 0)
			holder := fmt.Sprintf("is held by process %d", l.cmd.Process.Pid)
			if r.code != 1 || !strings.Contains(r.text, holder) || !strings.Contains(r.text, "Try: stop the other agent") {
				t.Errorf("%s: code %d, %q", name, r.code, r.text)
			}
		}
	}
	if os.Getuid() == 0 {
		if r := l.refused(l.storage, nobody); r.code != 1 || !strings.Contains(r.text, "belongs to uid 0") {
			t.Errorf("as another user: code %d, %q", r.code, r.text)
		}
	}
	before := listing(t, l.storage)
	for range amount(3, 50) {
		for _, command := range [][]string{{"status"}, {"wal", "inspect"}, {"check", "--no-network"}} {
			args := append(command, "--config.file", filepath.Join(l.dir, "agent.yaml"), "--storage.path", l.storage)
			cmd := exec.Command(l.args[0], args...)
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 0 && !(command[0] == "status" && code == notWell) {
				t.Errorf("%v: %v\n%s", command, err, out)
			}
		}
	}
	if diff := cmp.Diff(before, listing(t, l.storage)); diff != "" {
		t.Errorf("looking changed the directory:\n%s", diff)
	}
	l.arrived()
	r, g := l.settle()
	l.exact(r, g)
	if r.Duplicated != 0 {
		t.Errorf("%d samples came twice", r.Duplicated)
	}
}

// TestTwoAtOnce starts two agents on one directory at the same moment, many times: one
// of them gets it, the other says so at once.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, options{})
	for range amount(5, 50) {
		var both [2]*exec.Cmd
		var said [2]strings.Builder
		var ended [2]chan struct{}
		for i := range both {
			both[i] = exec.Command(l.args[0], append(slices.Clone(l.args[1:len(l.args)-1]), "127.0.0.1:0")...)
			both[i].SysProcAttr, both[i].Stderr, ended[i] = dieWithParent(), &said[i], make(chan struct{})
		}
		began := time.Now()
		for i, cmd := range both {
			if err := children.start(cmd.Start); err != nil {
				t.Fatal(err)
			}
			go func() {
				defer close(ended[i])
				_ = cmd.Wait() // how it ended is in ProcessState
			}()
		}
		loser := 0
		select {
		case <-ended[0]:
		case <-ended[1]:
			loser = 1
		case <-time.After(20 * time.Second):
			t.Fatalf("both run:\n%s\n%s", said[0].String(), said[1].String())
		}
		took := time.Since(began)
		if text := said[loser].String(); both[loser].ProcessState.ExitCode() != 1 || !strings.Contains(text, "is held by") {
			t.Errorf("code %d: %s", both[loser].ProcessState.ExitCode(), text)
		}
		if limit := time.Second + l.witness.slippedBy(); took > tier.Within(limit) {
			t.Errorf("the loser took %s, more than %s", took, limit)
		}
		if err := both[1-loser].Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		select {
		case <-ended[1-loser]:
		case <-time.After(10 * time.Second):
			t.Error("the winner does not stop")
			_ = both[1-loser].Process.Kill()
			<-ended[1-loser]
		}
		if code := both[1-loser].ProcessState.ExitCode(); code != 0 && code != -1 {
			t.Errorf("the winner ended with %d: %s", code, said[1-loser].String())
		}
	}
	l.run()
	l.arrived()
	r, g := l.settle()
	l.sound(r, g)
	if r.Missing != 0 {
		t.Errorf("%d samples are missing", r.Missing)
	}
}

// TestHostileDirectories starts an agent on directories that others control, or that
// cannot be used. It says what is wrong, where, and what to do, and touches nothing.
func TestHostileDirectories(t *testing.T) {
	t.Parallel()
	l := newGuarded(t)
	if os.Getuid() != 0 {
		cannot(t, "needs root to give directories away")
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	type hostile struct {
		make func(dir string) error
		uid  uint32
		at   string // below the directory, of --storage.path
		say  []string
	}
	cases := map[string]hostile{
		"symbolic link": {func(dir string) error { return os.Symlink(t.TempDir(), dir) }, 0, "",
			[]string{"symbolic link", "name the real directory"}},
		"somebody else's": {func(dir string) error { return firstError(os.Mkdir(dir, 0o700), os.Chown(dir, nobody, nobody)) }, 0, "",
			[]string{"belongs to uid 65534", "runs as uid 0", "chown"}},
		"root's": {func(dir string) error { return os.Mkdir(dir, 0o755) }, nobody, "",
			[]string{"belongs to uid 0", "runs as uid 65534", "run it as that user"}},
		"the group may write": {func(dir string) error { return firstError(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o770)) }, 0, "",
			[]string{"mode 0770", "other users may have written", "chmod 0700"}},
		"all may write": {func(dir string) error { return firstError(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777|os.ModeSticky)) }, 0, "",
			[]string{"mode 0777", "other users may have written", "chmod 0700"}},
		"a file":       {func(dir string) error { return os.WriteFile(dir, []byte("x"), 0o600) }, 0, "", []string{"not a directory", "name another one"}},
		"below a file": {func(dir string) error { return os.WriteFile(dir, []byte("x"), 0o600) }, 0, "/data", []string{"not a directory", "name another one"}},
		"unreadable": {func(dir string) error { return firstError(os.Mkdir(dir, 0), os.Chown(dir, nobody, nobody)) }, nobody, "",
			[]string{"permission denied", "Try: "}},
		"below somebody else's": {func(dir string) error { return os.Mkdir(dir, 0o700) }, nobody, "/data",
			[]string{"permission denied", "Try: "}},
		"read-only": {func(dir string) error {
			return firstError(os.Mkdir(dir, 0o700), unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, "mode=700"))
		}, 0, "", []string{"read-only file system", "Try: name a writable directory"}},
		"below read-only": {func(dir string) error {
			return firstError(os.Mkdir(dir, 0o700), unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, "mode=700"))
		}, 0, "/data", []string{"read-only file system", "Try: name a writable directory"}},
		"a lock that is a directory": {func(dir string) error {
			return firstError(os.Mkdir(dir, 0o700), os.Mkdir(filepath.Join(dir, "lock"), 0o700))
		}, 0, "", []string{"lock", "is a directory"}},
		"a lock that leads out of it": {func(dir string) error {
			return firstError(os.Mkdir(dir, 0o700), os.Symlink("/etc/hostname", filepath.Join(dir, "lock")))
		}, 0, "", []string{"lock"}},
	}
	for _, inner := range []string{"wal", "savepoints", "deadletters", "pushgateway"} {
		within := func(spoil func(path string) error) func(string) error {
			return func(dir string) error {
				path := filepath.Join(dir, inner)
				return firstError(os.MkdirAll(path, 0o700), spoil(path))
			}
		}
		cases[inner+" is a symbolic link"] = hostile{within(func(path string) error {
			return firstError(os.Remove(path), os.Symlink(t.TempDir(), path))
		}), 0, "", []string{"/" + inner + " is", "symbolic link", "name the real directory"}}
		cases[inner+" is a file"] = hostile{within(func(path string) error {
			return firstError(os.Remove(path), os.WriteFile(path, nil, 0o600))
		}), 0, "", []string{"/" + inner + " is not a directory"}}
		cases[inner+" belongs to another user"] = hostile{within(func(path string) error { return os.Chown(path, nobody, nobody) }), 0, "",
			[]string{"/" + inner + " belongs to uid 65534", "chown"}}
		cases[inner+" is writable by others"] = hostile{within(func(path string) error { return os.Chmod(path, 0o702) }), 0, "",
			[]string{"/" + inner + " has mode 0702", "chmod 0700"}}
	}
	for name, c := range cases {
		if strings.Contains(name, "read-only") && !mountsAreOwn() {
			cannot(t, "needs to mount file systems (root and CAP_SYS_ADMIN)")
		}
		dir := filepath.Join(l.dir, strings.ReplaceAll(name, " ", "-"))
		must(c.make(dir))
		if strings.Contains(name, "read-only") {
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		}
		r := l.refused(dir+c.at, c.uid)
		if r.code != 1 {
			t.Errorf("%s: exit code %d", name, r.code)
		}
		for _, word := range append(c.say, dir) {
			if !strings.Contains(r.text, word) {
				t.Errorf("%s: %q is not in %q", name, word, r.text)
			}
		}
	}
}

// firstError returns the first that is one.
func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestDirectoryTaken moves the directory of a running agent away, puts another one in its
// place, or deletes it. What would not be found again is not acknowledged any more, within
// the sync interval; it is said so; what is in the log is sent all the same; and an agent
// whose directory is put back goes on by itself.
func TestDirectoryTaken(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(dir string) error{
		"moved":     func(string) error { return nil },
		"replaced":  func(dir string) error { return os.Mkdir(dir, 0o700) },
		"a link":    func(dir string) error { return os.Symlink(dir+".moved", dir) },
		"wal moved": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, options{})
			l.run()
			l.arrived()
			for range amount(1, 10) {
				dir := l.storage
				if put == nil {
					dir = filepath.Join(l.storage, "wal")
				}
				var once sync.Once
				take := func() {
					took(t, os.Rename(dir, dir+".moved"))
					if put != nil {
						took(t, put(dir))
					}
				}
				l.suffer(func() { once.Do(take) }, func() {
					once = sync.Once{}
					if put != nil {
						took(t, os.RemoveAll(dir))
					}
					took(t, os.Rename(dir+".moved", dir))
				})
			}
			if said := l.tail(1000); !strings.Contains(said, "put it back, or restart the agent") {
				t.Error("the log of the agent does not say what to do")
			}
			l.acked(3)
			r, g := l.settle()
			l.exact(r, g)
		})
	}
	t.Run("deleted", func(t *testing.T) {
		t.Parallel()
		l := newLab(t, options{})
		l.run()
		l.arrived()
		deleted := time.Now()
		took(t, os.RemoveAll(l.storage))
		eventually(t, 5*time.Second, func() string {
			if l.status().WAL.Error == "" {
				return "the status does not say that the log is gone"
			}
			return ""
		})
		t.Logf("told after %s", time.Since(deleted).Round(time.Millisecond))
		if s := l.status(); !strings.Contains(s.WAL.Error, l.storage+" was moved away or deleted") {
			t.Errorf("the status says %q", s.WAL.Error)
		}
		eventually(t, 10*time.Second, func() string {
			if tg := l.target(); tg.Ledger.Pending > 0 {
				return fmt.Sprintf("what the agent still can read is not sent: %d pending", tg.Ledger.Pending)
			}
			return ""
		})
		l.terminate()
		l.run() // on a new log: samples acknowledged before had arrived, or were refused
		l.arrived()
		r, g := l.settle()
		l.sound(r, g)
		if r.Missing != 0 {
			t.Errorf("%d acknowledged samples are lost: rounds %v", r.Missing, l.oracle.Missing(l.journal(), l.series))
		}
	})
}

// took fails the test unless a fault took.
func took(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
