package nvidia

import (
	"context"
	"regexp"
	"strings"

	"hwsagent/probes"
	"hwsagent/probes/tape"
)

// Record reads all GPUs once, as Collect does, and records nvidia-smi's arguments and output. It ends the tape, so that an
// abandoned nvidia-smi cannot add to it later.
func (p *Probe) Record(ctx context.Context, t *tape.Tape) error {
	defer t.End()
	recording := *p // p itself does not change: an nvidia-smi that is given up still uses it
	recording.program, recording.meters = t.Record(p.program), nil
	return recording.Collect(ctx, probes.NewRound(0))
}

var (
	identities = regexp.MustCompile(`<(?:serial|uuid|chassis_serial_number|module_serial_number|cluster_uuid|peer_uuid)>([^<]+)<`)
	printedID  = regexp.MustCompile(`UUID: ([^)]+)\)`) // as printed by nvidia-smi nvlink
	programs   = regexp.MustCompile(`(?s)[ \t]*<process_info>.*?</process_info>\n?`)
)

// Redact finds the texts that identify the owner of the GPUs, and removes the processes.
func (*Probe) Redact(t *tape.Tape, r *tape.Redactor) {
	for i := range t.Exchanges {
		e := &t.Exchanges[i]
		e.Answer = programs.ReplaceAllFunc(e.Answer, func([]byte) []byte { r.LeaveOut(); return nil })
		for _, pattern := range []*regexp.Regexp{identities, printedID} {
			for _, found := range pattern.FindAllSubmatch(e.Answer, -1) {
				id := string(found[1])
				r.Learn(tape.Serials, id)
				for _, prefix := range [...]string{"GPU-", "MIG-"} {
					if rest, ok := strings.CutPrefix(id, prefix); ok {
						r.Learn(tape.Serials, rest)
					}
				}
			}
		}
	}
}

// Replay returns a probe that reads the GPUs of a recording.
func Replay(t *tape.Tape) (*Probe, error) {
	c := Config{}
	for i := range t.Exchanges {
		c.NVLink = c.NVLink || strings.HasPrefix(t.Exchanges[i].Ask, "nvlink ")
	}
	p, err := New(c, nil)
	if err != nil {
		return nil, err
	}
	p.program = t.Player().Run()
	return p, nil
}
