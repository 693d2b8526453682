package raid

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"

	"hwsagent/probes"
	"hwsagent/probes/tape"
)

// Record reads all controllers once, as Collect does, and records the programs' arguments and output. It ends the tape, so
// that a program that is given up cannot add to it later.
func (p *Probe) Record(ctx context.Context, t *tape.Tape) error {
	defer t.End()
	recording := *p // p itself does not change: a program that is given up still uses it
	recording.program = t.Record(func(ctx context.Context, args ...string) ([]byte, error) {
		return p.program(ctx, append([]string{p.path(args[0])}, args[1:]...)...)
	})
	recording.find = func() (names []string) {
		for _, path := range p.find() {
			names = append(names, filepath.Base(path))
		}
		return names
	}
	return recording.Collect(ctx, probes.NewRound(0))
}

// path returns the path of a program from its name.
func (p *Probe) path(name string) string {
	for _, path := range p.find() {
		if filepath.Base(path) == name {
			return path
		}
	}
	return name
}

var (
	// identityLine matches a line of text with a number that only this hardware has.
	identityLine = regexp.MustCompile(`(?im)^[^:\n]*(?:serial|wwid|world.?wide|unique identifier|guid|sas address|label)[^:\n]*:[ \t]*(\S[^\n]*?)[ \t\r]*$`)
	// private are data of which nothing is kept: a disk's inquiry has its serial number in hexadecimal, mount points are names.
	private = regexp.MustCompile(`(?m)"Inquiry Data"\s*:\s*"[^"]*"|^\s*Mount Points:[^\n]*$`)
)

// Redact learns the numbers that identify the owner of the hardware.
func (*Probe) Redact(t *tape.Tape, r *tape.Redactor) {
	for i := range t.Exchanges {
		e := &t.Exchanges[i]
		e.Answer = private.ReplaceAllFunc(e.Answer, func(found []byte) []byte {
			r.LeaveOut()
			if found[0] == '"' {
				return []byte(`"Inquiry Data" : ""`)
			}
			return nil
		})
		r.LearnJSON(e.Answer, identity)
		for _, m := range identityLine.FindAllSubmatch(e.Answer, -1) {
			if text := string(m[1]); !strings.ContainsAny(text, `",`) {
				r.Learn(tape.Serials, text)
			}
		}
	}
}

// identity returns the kind of a value in storcli's JSON.
func identity(_, key string) string {
	switch low := strings.ToLower(key); {
	case low == "sn", low == "wwn", low == "scsi naa id", low == "guid", strings.Contains(low, "serial"), strings.Contains(low, "sas address"):
		return tape.Serials
	}
	return ""
}

// Replay returns a probe that reads the controllers of a recording.
func Replay(t *tape.Tape) (*Probe, error) {
	p, err := New(Config{}, nil)
	if err != nil {
		return nil, err
	}
	var programs []string
	seen := make(map[string]bool)
	for i := range t.Exchanges {
		name, _, _ := strings.Cut(t.Exchanges[i].Ask, " ")
		if !seen[name] && dialectOf(name) != nil {
			seen[name] = true
			programs = append(programs, name)
		}
	}
	p.find = func() []string { return programs }
	p.program = t.Player().Run()
	return p, nil
}
