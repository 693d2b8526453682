package ipmi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"
	"unique"

	"hwsagent/internal/redact"
	"hwsagent/probes"
	"hwsagent/probes/devices"
	"hwsagent/probes/hw"
)

// Probe implements [probes.Probe]. It keeps a session with the BMC only during a round.
type Probe struct {
	config   Config
	open     func(ctx context.Context, impatient bool) (link, error)
	log      *slog.Logger
	hide     *redact.Holder
	families families
	contact  devices.Contact

	// order has the indexes of a BMC's parts in the order of reading. A part without an answer moves to the end: it ends the
	// round, and must not end each later round before the other parts are read.
	order []int

	records   *repository
	events    eventLog
	counts    map[string]float64 // new entries of the event log, by sensor type
	machine   *product           // nil if unknown
	uuid      string             // of the machine; "" if unknown
	parts     inventories        // of the machine's parts
	inventory time.Time          // when the machine's inventory and UUID were read
	meter     hw.Meter
	watts     float64     // power of the machine by DCMI in this round; NaN if unavailable
	sensed    []hw.Report // the sensors of this round
	noPower   time.Time   // when the BMC last answered that it has no power reading
}

// again is how long rarely changing data is not requested again.
const again = 10 * time.Minute

// New makes the probe; it sends nothing before the first round. A nil pace means no packet rate limit.
func New(c Config, pace *devices.Pace, logger *slog.Logger) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Probe{config: c, log: logger, hide: redact.Hold(&c), families: ownFamilies, counts: make(map[string]float64), watts: math.NaN()}
	d := &dialer{config: &p.config, pace: pace}
	if _, local := c.device(); !local {
		var err error
		if d.address, err = c.address(); err != nil {
			return nil, err
		}
	}
	p.open = d.open
	return p, nil
}

// Collect reads the BMC in one session. A failing part loses only its own series.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	err := p.collect(ctx, r)
	if err != nil {
		err = p.hide.Secrets().Error(err)
	}
	return err
}

func (p *Probe) collect(ctx context.Context, r *probes.Round) error {
	defer p.contact.Report(r)
	start := time.Now()
	if err := p.contact.Wait(start); err != nil {
		return err
	}
	l, err := p.open(ctx, p.contact.Impatient())
	p.note(start, err)
	if err != nil {
		return err
	}
	defer l.close(ctx)
	var errs []error
	read := 0
	p.watts = math.NaN()
	parts := [...]struct {
		name string
		read func(context.Context, link, *probes.Round) error
	}{{"bmc", p.bmc}, {"chassis", p.chassis}, {"ipmi", p.sensors}, {"sel", p.eventLog}, {"dcmi", p.power}}
	if p.order == nil {
		p.order = []int{0, 1, 2, 3, 4}
	}
	for n, i := range p.order {
		part, up := parts[i], 0.0
		switch err := part.read(ctx, l, r); {
		case err == nil:
			read, up = read+1, 1
		case errors.Is(err, errNone):
		default:
			errs = append(errs, fmt.Errorf("%s: %w", part.name, err))
		}
		p.native(r, "up", up, "collector", part.name)
		silent := errors.Is(errors.Join(errs...), errSilent)
		if silent {
			p.order = append(slices.Delete(slices.Clone(p.order), n, n+1), i)
		}
		if silent || ctx.Err() != nil {
			if n < len(parts)-1 {
				errs = append(errs, errors.New("the rest was not read"))
			}
			break // a BMC that stopped answering gets no more requests in this round
		}
	}
	whole := p.whole(start)
	whole.AddTo(r)
	p.sensed = nil // kept until the next round, those of hundreds of BMCs would take megabytes
	if read > 0 && len(errs) > 0 {
		return fmt.Errorf("%w: %w", probes.ErrPartial, errors.Join(errs...))
	}
	return errors.Join(errs...)
}

// note records the outcome of a login at now.
func (p *Probe) note(now time.Time, err error) {
	switch why := reasonOf(err); {
	case err == nil:
		p.contact.Answered(now)
	case errors.Is(err, context.Canceled): // the agent's shutdown says nothing about the BMC
	case why == devices.Secret || why == devices.Name || why == devices.Limit || errors.Is(err, errWaits): // the BMC was not contacted
		p.contact.Unasked(now, why)
	default:
		p.contact.Failed(now, why, p.hide.Secrets().Error(err))
	}
}

// errNone means that the BMC has no such part. It is not a failure.
var errNone = errors.New("the BMC has none")

func (p *Probe) native(r *probes.Round, name string, v float64, labels ...string) {
	if p.config.native() {
		r.Add(p.families[name], v, labels...)
	}
}

// bmc reads the BMC's identity (section 20.1) and the machine's inventory.
func (p *Probe) bmc(ctx context.Context, l link, r *probes.Round) error {
	b, err := l.ask(ctx, 0, netApp, getDeviceID)
	if err != nil {
		return err
	}
	if len(b) < 11 {
		return errShort
	}
	firmware := fmt.Sprintf("%d.%02x", b[2]&0x7f, b[3])
	maker := fmt.Sprint(int(b[6]) | int(b[7])<<8 | int(b[8]&0xf)<<16)
	p.native(r, "bmc_info", 1, "firmware_revision", firmware, "manufacturer_id", maker)
	if now := time.Now(); p.inventory.IsZero() || now.Sub(p.inventory) >= again {
		if err := p.identity(ctx, l); err != nil {
			return err
		}
		p.inventory = now
	}
	return nil
}

// identity reads the machine's inventory and UUID (section 22.14), which not every BMC has. After an error both must be read again.
func (p *Probe) identity(ctx context.Context, l link) error {
	unit, err := readInventory(ctx, l, 0)
	switch {
	case err == nil:
		p.machine = &unit
	case isNone(err), errors.Is(err, errInventory), errors.Is(err, errShort):
		p.machine = nil
	default:
		return fmt.Errorf("inventory: %w", err)
	}
	b, err := l.ask(ctx, 0, netApp, getSystemGUID)
	switch {
	case isNone(err):
		p.uuid = ""
	case err != nil:
		return fmt.Errorf("UUID: %w", err)
	default:
		p.uuid = parseUUID(b)
	}
	return nil
}

// chassis reads the machine's power and faults (section 28.2).
func (p *Probe) chassis(ctx context.Context, l link, r *probes.Round) error {
	b, err := l.ask(ctx, 0, netChassis, getChassis)
	if err != nil {
		return err
	}
	if len(b) < 3 {
		return errShort
	}
	bit := func(v byte, n int) float64 { return float64(v >> n & 1) }
	p.native(r, "chassis_power_state", bit(b[0], 0))
	p.native(r, "chassis_drive_fault_state", 1-bit(b[2], 2))
	p.native(r, "chassis_cooling_fault_state", 1-bit(b[2], 3))
	st := hw.OK
	if b[0]&0x1a != 0 || b[2]&0x0c != 0 { // overload, power fault, power control fault; drive fault, cooling fault
		st = hw.Degraded
	}
	box := hw.Report{Status: st, Component: hw.Component{Kind: hw.Enclosure, ID: "enclosure", Name: "machine"}}
	if m := p.machine; m != nil {
		box.Facts = []string{hw.Vendor, m.maker, hw.Model, m.name, hw.Serial, m.serial, hw.UUID, p.uuid}
		if m.name != "" {
			box.Name = m.name
		}
	}
	box.AddTo(r)
	return nil
}

// sensors reads the records if they changed, and then each sensor.
func (p *Probe) sensors(ctx context.Context, l link, r *probes.Round) error {
	records, err := readRepository(ctx, l, p.records)
	if err != nil {
		return err
	}
	p.records = records
	p.native(r, "sensors", float64(len(records.sensors)))
	p.native(r, "records_unread", float64(records.unread))
	if err := p.parts.read(ctx, l, records.parts, time.Now()); err != nil {
		return err
	}
	left := p.parts.unclaimed(records.parts)
	met := make(map[string]bool)
	var first error
	failed := 0
	for i := range records.sensors {
		known := records.sensors[i].Value()
		s := &known
		if s.owner != bmc { // of another controller behind the BMC, with its own numbers
			continue
		}
		asked := s.limitsAreKnown
		err := s.readLimits(ctx, l)
		if s.limitsAreKnown != asked {
			records.sensors[i] = unique.Make(*s)
		}
		var one reading
		if err == nil {
			one, err = s.read(ctx, l)
		}
		if err != nil {
			if failed++; first == nil {
				first = fmt.Errorf("sensor %q: %w", s.name, err)
			}
			var refused completion
			if !errors.As(err, &refused) && !errors.Is(err, errShort) {
				break // the BMC has stopped answering
			}
			continue
		}
		p.add(r, &one, met, left)
	}
	p.parts.add(r, records.parts, left)
	switch {
	case failed > 1:
		return fmt.Errorf("%d sensors could not be read; the first: %w", failed, first)
	case failed == 0 && records.unread > 0:
		p.log.Debug("Records of a BMC are not understood", "bmc", p.config.Target, "records", records.unread, "err", records.firstErr)
	}
	return first
}

// add adds a reading. Of two sensors with the same name and number the first wins.
func (p *Probe) add(r *probes.Round, one *reading, met map[string]bool, left unclaimed) {
	one.name = strings.ToValidUTF8(one.name, "\uFFFD")
	key := fmt.Sprintf("%d/%s", one.record, one.name)
	if c, ok := one.component(); ok && !met[c.ID] {
		met[c.ID] = true
		p.parts.claim(left, &c)
		c.AddTo(r)
		p.sensed = append(p.sensed, c)
	}
	if p.config.native() && one.there && !met[key] {
		met[key] = true
		p.families.native(r, one)
	}
}

// eventLog reads the size of the event log and its new entries.
func (p *Probe) eventLog(ctx context.Context, l link, r *probes.Round) error {
	fresh, err := p.events.read(ctx, l)
	for _, e := range fresh {
		kind := "OEM"
		if e.system {
			kind = kindName(e.kind)
		}
		p.counts[kind]++
		p.log.Info("The BMC has a new event", "bmc", p.config.Target, "entry", e.id, "time", e.when, "sensor", p.sensorName(e.number), "type", kind, "state", e.offset, "recovered", e.recovers)
	}
	for kind, n := range p.counts {
		p.native(r, "sel_new_entries_total", n, "type", kind)
	}
	if err != nil {
		var refused completion
		if errors.As(err, &refused) && refused == invalidCommand {
			return errNone
		}
		return err
	}
	p.native(r, "sel_logs_count", float64(p.events.entries))
	p.native(r, "sel_free_space_bytes", float64(p.events.free))
	if at := p.events.newest; !at.IsZero() {
		p.native(r, "sel_latest_timestamp_seconds", float64(at.Unix()))
	}
	return nil
}

// sensorName returns the name of the BMC's sensor of that number; "" if no record has it.
func (p *Probe) sensorName(number byte) string {
	if p.records != nil {
		for i := range p.records.sensors {
			if s := p.records.sensors[i].Value(); s.number == number && s.owner == bmc {
				return s.name
			}
		}
	}
	return ""
}

// power reads the machine's power by DCMI. A BMC without it is asked again after a while.
func (p *Probe) power(ctx context.Context, l link, r *probes.Round) error {
	now := time.Now()
	if !p.noPower.IsZero() && now.Sub(p.noPower) < again {
		return errNone
	}
	p.noPower = time.Time{}
	b, err := l.ask(ctx, 0, netGroup, getPower, groupDCMI, 1, 0, 0)
	switch {
	case isNone(err): // includes insufficient privilege, which BMCs without DCMI also answer
		p.noPower = now
		return errNone
	case err != nil:
		return err
	case len(b) < 18 || b[0] != groupDCMI:
		return errShort
	}
	if active := b[17]&0x40 != 0; !active {
		return errNone
	}
	watts := float64(binary.LittleEndian.Uint16(b[1:]))
	p.native(r, "dcmi_power_consumption_watts", watts)
	p.watts = watts
	return nil
}
