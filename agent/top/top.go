// Package top shows the status of an agent on a terminal and keeps it up to date.
package top

import (
	"context"
	"io"
	"strings"
	"time"

	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

// Terminal is the terminal that top draws on.
type Terminal struct {
	Out io.Writer
	// Size returns the present size in characters and lines.
	Size func() (columns, rows int)
	// Keys delivers each typed byte; it is closed at the end of input.
	Keys   <-chan byte
	Colour bool
}

// Escape codes of ECMA-48 and xterm.
const (
	enter     = "\x1b[?1049h\x1b[?25l" // alternate screen, cursor hidden
	leave     = "\x1b[?25h\x1b[?1049l"
	home      = "\x1b[H"
	endOfLine = "\x1b[K\r\n"
	below     = "\x1b[K\x1b[J" // clear the rest
)

// lookAtSize is how often the terminal's size is checked.
const lookAtSize = 200 * time.Millisecond

// Fetch gets a status. If there is none its Schema is 0, and the error says why.
type Fetch func(context.Context) (status.Status, error)

// fetched is the result of a Fetch.
type fetched struct {
	status status.Status
	err    error
}

// Run shows the status from fetch, each interval, until q is typed or ctx ends. It returns an error if the terminal
// fails.
func Run(ctx context.Context, t Terminal, fetch Fetch, interval time.Duration) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	got := make(chan fetched)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		again(ctx, fetch, interval, got)
	}()
	defer func() { cancel(); <-ended }()
	if _, err := io.WriteString(t.Out, enter); err != nil {
		return err
	}
	defer func() {
		if _, end := io.WriteString(t.Out, leave); err == nil {
			err = end
		}
	}()
	resized := time.NewTicker(lookAtSize)
	defer resized.Stop()
	var last fetched
	var columns, rows, first int
	var typed keys
	for in := t.Keys; ; {
		select {
		case <-ctx.Done():
			return nil
		case b, open := <-in:
			if !open {
				in = nil
				continue
			}
			switch key := typed.next(b); key {
			case quit:
				return nil
			case none:
				continue
			default:
				first = max(0, first+key.lines(rows))
			}
		case next := <-got:
			if next.status.Schema == 0 {
				next.status = last.status // show the last known status under the error
			}
			last = next
		case <-resized.C:
			if c, r := t.Size(); c == columns && r == rows {
				continue
			}
		}
		columns, rows = t.Size()
		var lines []string
		lines, first = screenful(last, columns, rows, first, t.Colour)
		if _, err := io.WriteString(t.Out, home+strings.Join(lines, endOfLine)+below); err != nil {
			return err
		}
	}
}

// again fetches each interval until ctx ends.
func again(ctx context.Context, fetch Fetch, interval time.Duration, got chan<- fetched) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		s, err := fetch(ctx)
		select {
		case <-ctx.Done():
			return
		case got <- fetched{s, err}:
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Lines returns the lines to show: the status, under the error if it could not be refreshed.
func Lines(s status.Status, err error, columns, rows int, colour bool) []string {
	lines, _ := screenful(fetched{s, err}, columns, rows, 0, colour)
	return lines
}

// screenful is [Lines] from a line on; first is the one that it begins with.
func screenful(f fetched, columns, rows, from int, colour bool) (lines []string, first int) {
	s := f.status
	if f.err == nil || s.Schema != 0 && !s.Running {
		if s.Schema == 0 {
			return []string{"asking the agent …"}, 0
		}
		return draw(s, columns, rows, from, colour)
	}
	why := text.FirstLine(f.err.Error())
	if r := []rune(why); len(r) > columns {
		why = string(r[:max(0, columns)])
	}
	if s.Schema == 0 {
		return []string{why}, 0
	}
	lines, first = draw(s, columns, rows-2, from, false)
	lines = append([]string{why, "status as of " + s.Now.Format("15:04:05")}, lines...)
	return lines[:max(0, min(len(lines), rows))], first
}
