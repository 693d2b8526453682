package ipmi

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/config"

	"hwsagent/probes"
	"hwsagent/probes/tape"
)

// refusedBy prefixes the status of a refused command; its completion code follows.
const refusedBy = "completion "

// question formats a command for a recording: network function, logical unit, command and data, in hexadecimal digits.
func question(lun, netFn, command byte, data []byte) string {
	return strings.TrimSpace(fmt.Sprintf("%02x.%x %02x %x", netFn, lun, command, data))
}

// taping is a link that records requests and answers.
type taping struct {
	link
	tape *tape.Tape
}

func (l taping) ask(ctx context.Context, lun, netFn, command byte, data ...byte) ([]byte, error) {
	answer, err := l.link.ask(ctx, lun, netFn, command, data...)
	status := tape.OK
	var refused completion
	switch {
	case errors.As(err, &refused):
		status = fmt.Sprintf("%s%02x", refusedBy, byte(refused))
	case err != nil:
		status = err.Error()
	}
	l.tape.Add(question(lun, netFn, command, data), status, answer)
	return answer, err
}

// Record reads the BMC once, as Collect does, and records the commands and answers, but not the login. It must be the first
// read.
func (p *Probe) Record(ctx context.Context, t *tape.Tape) error {
	own := p.open
	p.open = func(ctx context.Context, impatient bool) (link, error) {
		l, err := own(ctx, impatient)
		if err != nil {
			return nil, err
		}
		return taping{l, t}, nil
	}
	defer func() { p.open = own }()
	return p.Collect(ctx, probes.NewRound(0))
}

// Redact replaces data that identifies the machine's owner: the UUID, and serial numbers and asset tags of inventories.
func (p *Probe) Redact(t *tape.Tape, r *tape.Redactor) {
	if !r.Keeps(tape.Serials) {
		redactUUID(t, r)
		redactInventories(t, r)
	}
}

// redactUUID replaces a UUID except for its version and variant, which determine its byte order.
func redactUUID(t *tape.Tape, r *tape.Redactor) {
	ask := question(0, netApp, getSystemGUID, nil)
	for i := range t.Exchanges {
		e := &t.Exchanges[i]
		if e.Ask != ask || len(e.Answer) < 16 {
			continue
		}
		digits := []byte(hex.EncodeToString(e.Answer[:16]))
		masked := r.Shape(tape.Serials, digits)
		for _, keep := range [...]int{6, 7, 8} { // in either byte order
			copy(masked[2*keep:2*keep+1], digits[2*keep:2*keep+1])
		}
		if b, err := hex.DecodeString(string(masked)); err == nil {
			copy(e.Answer, b)
		}
	}
}

// chunk is a part of an inventory in a recording.
type chunk struct {
	exchange *tape.Exchange
	at       int
	words    int
}

// redactInventories joins the parts of each inventory, replaces the identifying fields, and splits the inventory again. It drops
// data that is not in the format of IPMI.
func redactInventories(t *tape.Tape, r *tape.Redactor) {
	words := map[string]int{} // bytes per address, by device
	chunks := map[string][]chunk{}
	var order []string
	for i := range t.Exchanges {
		e := &t.Exchanges[i]
		parts := strings.Fields(e.Ask)
		if len(parts) != 3 || len(parts[2]) < 2 || parts[0] != fmt.Sprintf("%02x.0", netStorage) {
			continue
		}
		data, err := hex.DecodeString(parts[2])
		device := parts[2][:2]
		switch {
		case err != nil:
		case parts[1] == fmt.Sprintf("%02x", getAreaInfo) && len(e.Answer) >= 3:
			if words[device] = 1; e.Answer[2]&1 != 0 {
				words[device] = 2
			}
		case parts[1] == fmt.Sprintf("%02x", readArea) && len(data) == 4 && len(e.Answer) > 1:
			if chunks[device] == nil {
				order = append(order, device)
			}
			n := max(words[device], 1)
			chunks[device] = append(chunks[device], chunk{e, (int(data[1]) | int(data[2])<<8) * n, n})
		}
	}
	for _, device := range order {
		var whole []byte
		for _, c := range chunks[device] {
			if end := c.at + len(c.exchange.Answer) - 1; end > len(whole) && end <= maxInventory+0xff {
				whole = append(whole, make([]byte, end-len(whole))...)
			}
			if c.at < len(whole) {
				copy(whole[c.at:], c.exchange.Answer[1:])
			}
		}
		if !redactInventory(whole, r) {
			r.LeaveOut()
			clear(whole)
		}
		for _, c := range chunks[device] {
			if c.at < len(whole) {
				copy(c.exchange.Answer[1:], whole[c.at:])
			} else {
				clear(c.exchange.Answer[1:])
			}
		}
	}
}

// redactInventory replaces serial numbers, asset tags and all vendor-specific fields, and corrects the checksums of their areas. It
// reports whether the inventory has the format of IPMI.
func redactInventory(b []byte, r *tape.Redactor) bool {
	if len(b) < 8 || b[0]&0xf != 1 || checksum(b[:7]) != b[7] {
		return false
	}
	if at := int(b[1]) * 8; at != 0 { // internal use, in a vendor's format
		next := len(b)
		for _, offset := range b[2:6] {
			if o := int(offset) * 8; o > at && o < next {
				next = o
			}
		}
		if at < len(b) {
			clear(b[min(at+1, len(b)):next])
		}
	}
	for _, area := range [...]struct {
		offset byte
		fields int   // offset of the first field
		names  []int // fields that are the same in all machines of a model
	}{{b[2], 3, []int{0}}, {b[3], 6, []int{0, 1, 3, 4}}, {b[4], 3, []int{0, 1, 2, 3}}} {
		at := int(area.offset) * 8
		if area.offset == 0 || at+2 > len(b) {
			continue
		}
		end := min(at+int(b[at+1])*8, len(b))
		if at+area.fields < end {
			redactFields(b[at+area.fields:end], area.names, r)
			b[end-1] = checksum(b[at : end-1])
		}
	}
	if at := int(b[5]) * 8; at != 0 && at < len(b) { // multirecords, of power supplies and vendors, have no texts that the probe reads
		clear(b[at:])
	}
	return true
}

// redactFields replaces the texts of an area, except those with these numbers.
func redactFields(b []byte, keep []int, r *tape.Redactor) {
	for i := 0; len(b) > 0 && b[0] != 0xc1; i++ {
		n := int(b[0] & 0x3f)
		if 1+n > len(b) { // a field whose end was not read
			clear(b[1:])
			return
		}
		text := b[1 : 1+n]
		switch {
		case n == 0 || slices.Contains(keep, i):
		case b[0]>>6 == 3: // text of 8 bits
			copy(text, r.Shape(tape.Serials, text))
		default:
			r.LeaveOut()
			clear(text)
		}
		b = b[1+n:]
	}
}

// playing is a link to a recorded BMC.
type playing struct{ player *tape.Player }

func (playing) close(context.Context) {}

func (l playing) ask(_ context.Context, lun, netFn, command byte, data ...byte) ([]byte, error) {
	e, ok := l.player.Next(question(lun, netFn, command, data))
	if !ok {
		return nil, invalidCommand
	}
	if code, refused := strings.CutPrefix(e.Status, refusedBy); refused {
		n, err := strconv.ParseUint(code, 16, 8)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("the recording has the completion code %.10q, which is none", code)
		}
		return nil, completion(n)
	}
	if e.Status != tape.OK {
		return nil, fmt.Errorf("%w: %s", errSilent, e.Status)
	}
	return append([]byte(nil), e.Answer...), nil
}

// Replay returns a probe that reads a recorded BMC.
func Replay(t *tape.Tape, logger *slog.Logger) (*Probe, error) {
	p, err := New(Config{Target: "192.0.2.1", Username: "recording", Password: config.Secret("recording")}, nil, logger)
	if err != nil {
		return nil, err
	}
	player := t.Player()
	p.open = func(context.Context, bool) (link, error) { return playing{player}, nil }
	return p, nil
}
