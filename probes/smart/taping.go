package smart

import (
	"context"
	"strings"

	"hwsagent/probes"
	"hwsagent/probes/tape"
)

// Record reads all disks once, as Collect does, and keeps what smartctl was asked and printed.
func (p *Probe) Record(ctx context.Context, t *tape.Tape) error {
	own := p.smartctl
	p.smartctl = t.Record(own)
	defer func() { p.smartctl = own }()
	return p.Collect(ctx, probes.NewRound(0))
}

// Redact learns what tells whose disks they are.
func (*Probe) Redact(t *tape.Tape, r *tape.Redactor) {
	for i := range t.Exchanges {
		r.LearnJSON(t.Exchanges[i].Answer, identity)
	}
}

// identity is the kind of a value of smartctl's JSON.
func identity(parent, key string) string {
	switch key {
	case "serial_number", "logical_unit_id", "nguid", "uuid", "ext_id":
		return tape.Serials
	case "id":
		if parent == "wwn" || parent == "eui64" {
			return tape.Serials
		}
	case "sas_address", "attached_sas_address", "phy_identifier":
		return tape.Serials
	}
	if strings.HasSuffix(key, "_wwn") {
		return tape.Serials
	}
	return ""
}

// Replay is a probe that reads the machine of a recording.
func Replay(t *tape.Tape) (*Probe, error) {
	p, err := New(Config{}, nil)
	if err != nil {
		return nil, err
	}
	p.smartctl = t.Player().Run()
	return p, nil
}
