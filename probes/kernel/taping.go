package kernel

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"

	"hwsagent/probes"
	"hwsagent/probes/tape"
)

// question is the only one of a recording; its answer has a record in each line.
const question = "/dev/kmsg"

// Record reads the whole log and records the messages that count, without the others. It neither reads nor writes the
// counts of the running probe.
func (p *Probe) Record(ctx context.Context, t *tape.Tape) error {
	defer t.End()
	recording := *p
	recording.state, recording.log, recording.counts, recording.places = "", nil, nil, newPlaces(p.places.sys)
	var answer bytes.Buffer
	recording.keep = func(r record) {
		fmt.Fprintf(&answer, "0,%d,0,-;%s\n", r.sequence, strings.ReplaceAll(r.message, "\n", " "))
	}
	err := recording.Collect(ctx, probes.NewRound(0))
	if recording.log != nil {
		t.Add(question, tape.OK, answer.Bytes())
		_ = recording.Close() // read-only: nothing to lose
	}
	return err
}

// program matches the name of a program in a message: of the one that was killed, or whose file access failed.
var program = regexp.MustCompile(`(Killed process [0-9]+ )\([^\n]*?\)( total-vm)|(\bcomm )[^\n:]*(:)|(\bname=)[^,\n]*(,)`)

// Redact removes the names of programs.
func (*Probe) Redact(t *tape.Tape, r *tape.Redactor) {
	for i := range t.Exchanges {
		e := &t.Exchanges[i]
		e.Answer = program.ReplaceAllFunc(e.Answer, func(found []byte) []byte {
			r.LeaveOut()
			return program.ReplaceAll(found, []byte("${1}${3}${5}(left out)${2}${4}${6}"))
		})
	}
}

// Replay returns a probe that counts the messages of a recording. Their devices are not known here.
func Replay(t *tape.Tape) (*Probe, error) {
	p, err := New(Config{}, "")
	if err != nil {
		return nil, err
	}
	player := t.Player()
	p.places.sys = "/nonexistent"
	p.boot = func() (string, error) { return "recording", nil }
	p.open = func() (source, error) {
		e, ok := player.Next(question)
		if !ok {
			return nil, fmt.Errorf("the recording has no answer to %q", question)
		}
		return &lines{rest: e.Answer}, nil
	}
	return p, nil
}

// lines is a log of one record for each line.
type lines struct{ rest []byte }

// Next implements source.
func (l *lines) Next() ([]byte, error) {
	if len(l.rest) == 0 {
		return nil, errEnd
	}
	var one []byte
	one, l.rest, _ = bytes.Cut(l.rest, []byte{'\n'})
	return one, nil
}

// Close implements source.
func (*lines) Close() error { return nil }
