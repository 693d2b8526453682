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

// Record reads all disks once, as Collect does, and records smartctl's arguments and output, and the answers of NVMe controllers.
// It then ends the tape, so that later answers of a disk that was given up are not recorded.
func (p *Probe) Record(ctx context.Context, t *tape.Tape) error {
	defer t.End()
	recording := *p // p itself does not change: a disk that was given up still uses it
	recording.smartctl, recording.askNVMe = t.Record(p.smartctl), taped(p.askNVMe, t)
	return recording.Collect(ctx, probes.NewRound(0))
}

// nvmeAsk prefixes the question of a command to a controller; smartctl's arguments begin with a hyphen.
const nvmeAsk = "nvme "

// ask returns the command as a question of a recording.
func (c *adminCommand) ask(name string) string {
	return fmt.Sprintf("%s%s %#02x %#x %#x", nvmeAsk, name, c.opcode, c.namespace, c.dword10)
}

// nvmeFailed prefixes the status of a failed command.
const nvmeFailed = "error: "

// taped returns an asker that records the answers.
func taped(ask nvmeAsker, t *tape.Tape) nvmeAsker {
	return func(name string, commands ...*adminCommand) error {
		err := ask(name, commands...)
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

// played returns an asker that answers from a recording.
func played(from *tape.Player) nvmeAsker {
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

// Redact learns the data that identifies the owner of the disks.
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

// redactController removes from Identify Controller (figure 275) the serial number, the FRU identifier, the subsystem's name, which
// repeats the serial number, and the vendor-specific part.
func redactController(who []byte, r *tape.Redactor) {
	serial := bytes.TrimRight(who[4:24], " \x00")
	r.Learn(tape.Serials, string(serial))
	copy(serial, r.Shape(tape.Serials, serial))
	clear(who[112:128])
	clear(who[768:1024])
	clear(who[3072:])
}

// identity returns the kind of a value in smartctl's JSON.
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

// Replay returns a probe that reads a recorded machine.
func Replay(t *tape.Tape) (*Probe, error) {
	p, err := New(Config{}, nil)
	if err != nil {
		return nil, err
	}
	player := t.Player()
	p.smartctl, p.askNVMe, p.class = player.Run(), played(player), ""
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

// devicesOf returns the disks of a recording that its scan did not find, and whether there is such a scan.
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
