package smart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"hwsagent/probes"
	"hwsagent/probes/tape"
)

// Record reads all disks once, as Collect does, and keeps what smartctl was asked and printed, and what NVMe controllers answered.
// The tape ends with it: what a disk that was given up says later is not on it.
func (p *Probe) Record(ctx context.Context, t *tape.Tape) error {
	defer t.End()
	recording := *p // p itself does not change: a disk that is given up still uses it
	recording.smartctl, recording.door = t.Record(p.smartctl), taped(p.door, t)
	return recording.Collect(ctx, probes.NewRound(0))
}

// nvmeAsk begins the question of a command to a controller; smartctl's arguments begin with a hyphen.
const nvmeAsk = "nvme "

// ask is the command as a question of a recording.
func (c *adminCommand) ask(name string) string {
	return fmt.Sprintf("%s%s %#02x %#x %#x", nvmeAsk, name, c.opcode, c.namespace, c.dword10)
}

// nvmeFailed begins the status of a command that failed.
const nvmeFailed = "error: "

// taped is a door whose answers are kept.
func taped(door nvmeDoor, t *tape.Tape) nvmeDoor {
	return func(name string, commands ...*adminCommand) error {
		err := door(name, commands...)
		for _, c := range commands {
			if err != nil {
				t.Add(c.ask(name), nvmeFailed+err.Error(), nil)
			} else {
				t.Add(c.ask(name), tape.Bytes, c.data)
			}
		}
		return err
	}
}

// played is a door that answers from a recording.
func played(from *tape.Player) nvmeDoor {
	return func(name string, commands ...*adminCommand) error {
		for _, c := range commands {
			switch e, ok := from.Next(c.ask(name)); {
			case !ok:
				return fmt.Errorf("the recording has no answer to %q", c.ask(name))
			case e.Status != tape.Bytes:
				return errors.New(strings.TrimPrefix(e.Status, nvmeFailed))
			case copy(c.data, e.Answer) < len(c.data):
				return fmt.Errorf("the answer to %q has %d bytes, want %d", c.ask(name), len(e.Answer), len(c.data))
			}
		}
		return nil
	}
}

// Redact learns what tells whose disks they are.
func (*Probe) Redact(t *tape.Tape, r *tape.Redactor) {
	for i := range t.Exchanges {
		e := &t.Exchanges[i]
		switch {
		case e.Status != tape.Bytes:
			r.LearnJSON(e.Answer, identity)
		case len(e.Answer) == identifySize && !r.Keeps(tape.Serials):
			redactController(e.Answer, r)
		}
	}
}

// redactController takes out of Identify Controller (figure 275) the serial number, the FRU's identifier, the subsystem's name, which has
// the serial number again, and what belongs to the maker.
func redactController(who []byte, r *tape.Redactor) {
	serial := bytes.TrimRight(who[4:24], " \x00")
	r.Learn(tape.Serials, string(serial))
	copy(serial, r.Shape(tape.Serials, serial))
	clear(who[112:128])
	clear(who[768:1024])
	clear(who[3072:])
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
	player := t.Player()
	p.smartctl, p.door, p.class = player.Run(), played(player), ""
	p.config.Devices, p.config.Scan = devicesOf(t)
	if err := p.config.Validate(); err != nil {
		return nil, fmt.Errorf("the recording: %w", err)
	}
	for i := range t.Exchanges {
		if strings.HasPrefix(t.Exchanges[i].Ask, nvmeAsk) {
			p.config.NVMe = nvmeIoctl
		}
	}
	return p, nil
}

// devicesOf are the disks that a recording has beside those that a scan found, and whether there is such a scan.
func devicesOf(t *tape.Tape) (found []Device, scan bool) {
	seen := make(map[Device]bool)
	for i := range t.Exchanges {
		e := &t.Exchanges[i]
		words := strings.Fields(e.Ask)
		if len(words) < 2 {
			continue
		}
		d := Device{Device: words[len(words)-1]}
		switch {
		case words[0] == "--scan":
			scan = scan || len(e.Answer) > 0
			continue
		case strings.HasPrefix(e.Ask, nvmeAsk):
			d = Device{Device: "/dev/" + words[1], Type: "nvme"}
		case strings.HasPrefix(words[len(words)-2], "--device="):
			d.Type = strings.TrimPrefix(words[len(words)-2], "--device=")
		}
		if !seen[d] {
			seen[d] = true
			found = append(found, d)
		}
	}
	return found, scan
}
