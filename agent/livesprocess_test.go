package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// start starts the agent.
func (l *life) start() {
	l.t.Helper()
	l.unblock()
	l.processes++
	l.to.set(func() { l.to.alive = l.processes })
	out := io.Writer(&l.said)
	if *livesSeed != 0 && testing.Verbose() {
		out = os.Stderr
	}
	var err error
	l.Agent, err = New(Options{ConfigFile: l.file, StoragePath: l.dir, Logger: slog.New(slog.NewTextHandler(out, nil)), dial: l.to.dialOf(l.processes), segmentBytes: 32 << 10})
	if err != nil {
		l.t.Fatal(err)
	}
	_ = l.socket.Close()
	l.socket = newNobody() // a real one would hold the virtual time
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	l.ended = make(chan error, 1)
	l.looked()
	a := l.Agent
	go func() { l.ended <- a.Run(ctx) }()
	synctest.Wait()
}

// looked is called when the search for tenants begins anew: what the default target has sent beyond its oldest waiting sample may come to a tenant
// as well that gets a target now.
func (l *life) looked() {
	members := l.log.Members(l.name())
	for _, id := range livesTenants {
		if _, has := members[id]; !has {
			l.floors[id] = l.log.Status().Head.Commit
		}
	}
}

func (l *life) stop() error {
	l.cancel()
	return <-l.ended
}

// kill ends the agent where it is: the next one finds the files of this moment.
func (l *life) kill() {
	synctest.Wait()
	l.unsaved = l.unsaved || l.free != nil
	l.unblock()
	next := filepath.Join(l.root, fmt.Sprint(l.processes))
	if err := os.CopyFS(next, os.DirFS(l.dir)); err != nil {
		l.t.Fatal(err)
	}
	l.private(next)
	l.to.set(func() { l.to.alive = 0 })
	_ = l.stop()
	if err := os.RemoveAll(l.dir); err != nil {
		l.t.Fatal(err)
	}
	l.dir = next
}

// private makes a copy of the directory as safe as the original.
func (l *life) private(dir string) {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// nobody is a listener to which no client connects.
type nobody struct {
	livesReceiver
}

func newNobody() *nobody { return &nobody{livesReceiver{closed: make(chan struct{})}} }

// block keeps the disk from taking savepoints, until unblock.
func (l *life) block() {
	var undo []func() error
	for _, name := range []string{"records.0", "records.1"} {
		file := filepath.Join(l.dir, "savepoints", name)
		moved := os.Rename(file, file+".kept") == nil
		if err := os.MkdirAll(filepath.Join(file, "x"), 0o700); err != nil {
			l.t.Fatal(err)
		}
		undo = append(undo, func() error {
			if err := os.RemoveAll(file); err != nil || !moved {
				return err
			}
			return os.Rename(file+".kept", file)
		})
	}
	l.free = func() {
		for _, f := range undo {
			if err := f(); err != nil {
				l.t.Fatal(err)
			}
		}
		l.free = nil
	}
}

func (l *life) unblock() {
	if l.free != nil {
		l.free()
	}
}
