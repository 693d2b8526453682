package ipmi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unique"
)

// Bounds of the data accepted from a BMC.
const (
	maxRecords = 4096
	maxSensors = 4096
	wholePart  = 0xff // request the whole rest of a record
	smallPart  = 16   // bytes; any BMC can return that many
)

// repository holds the parsed records of a BMC. It is read once, and again when the BMC reports a change. Equal sensors of all BMCs,
// as of machines of one model, share their memory.
type repository struct {
	version  string // derived from the BMC's answer; unchanged while the records are
	sensors  []unique.Handle[sensor]
	parts    []part
	unread   int // records that could not be read or understood
	firstErr error
}

// source is the location of the records: the repository (section 33), or the BMC itself (section 35).
type source struct {
	netFn, info, reserve, get byte
	infoSize                  int
}

var (
	mainSource   = source{netStorage, getRepository, reserveRecords, getRecord, 14}
	deviceSource = source{netSensor, getDeviceRecords, reserveDevice, getDeviceRecord, 2}
)

// readRepository returns the records; it returns old if the BMC reports no change.
func readRepository(ctx context.Context, l link, old *repository) (*repository, error) {
	from := mainSource
	info, err := l.ask(ctx, 0, from.netFn, from.info)
	var refused completion
	if errors.As(err, &refused) && (refused == invalidCommand || refused == 0xc2) {
		from = deviceSource
		info, err = l.ask(ctx, 0, from.netFn, from.info)
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the sensor data records: %w", err)
	}
	if len(info) < from.infoSize {
		return nil, fmt.Errorf("ask for the sensor data records: %w", errShort)
	}
	version := string(info)
	if from == mainSource {
		version = string(info[1:3]) + string(info[5:13]) // count, last addition and erasure; not the free space
	}
	if old != nil && old.version == version {
		return old, nil
	}
	r := &repository{version: version}
	if err := r.read(ctx, l, from); err != nil {
		return nil, fmt.Errorf("read the sensor data records: %w", err)
	}
	slices.SortStableFunc(r.sensors, func(a, b unique.Handle[sensor]) int { return int(a.Value().record) - int(b.Value().record) })
	slices.SortStableFunc(r.parts, func(a, b part) int { return int(a.record) - int(b.record) })
	return r, nil
}

// errShort means an answer with fewer bytes than the specification requires.
var errShort = errors.New("the BMC's answer is too short")

// read follows the links of the records. A record that cannot be parsed is skipped.
func (r *repository) read(ctx context.Context, l link, from source) error {
	reader := &recordReader{link: l, from: from, part: wholePart}
	seen := make(map[uint16]bool)
	for id := uint16(0); id != 0xffff; {
		if seen[id] || len(seen) == maxRecords {
			return nil // a cycle, or more records than allowed
		}
		seen[id] = true
		next, record, err := reader.read(ctx, id)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil && !isNone(err) && !errors.Is(err, errShort) {
			return err // the BMC has stopped answering or is busy: the records read so far are incomplete
		}
		if err == nil {
			err = r.add(record)
		}
		if err != nil {
			r.unread++
			if r.firstErr == nil {
				r.firstErr = fmt.Errorf("record %d: %w", id, err)
			}
		}
		if next == id {
			return nil
		}
		id = next
	}
	return nil
}

func (r *repository) add(record []byte) error {
	if p, ok := parsePart(record); ok && len(r.parts) <= 0xff { // inventory numbers have one byte
		r.parts = append(r.parts, p)
		return nil
	}
	sensors, err := parseRecord(record)
	if err != nil {
		return err
	}
	if len(r.sensors)+len(sensors) <= maxSensors {
		for _, s := range sensors {
			r.sensors = append(r.sensors, unique.Make(s))
		}
	}
	return nil
}

// recordReader reads records, in parts if the BMC cannot return them whole.
type recordReader struct {
	link        link
	from        source
	part        byte
	reservation []byte
}

// read returns a record and the ID of the next one, FFFFh after the last. With an error, next is where to continue if known, else FFFFh.
func (r *recordReader) read(ctx context.Context, id uint16) (next uint16, record []byte, err error) {
	next = 0xffff
	for want := recordHeader; len(record) < want; {
		part := r.part
		if part != wholePart {
			part = byte(min(int(r.part), want-len(record)))
		}
		answer, err := r.get(ctx, id, byte(len(record)), part)
		var refused completion
		switch {
		case errors.As(err, &refused) && (refused == cannotReturn || refused == tooMany || refused == 0xff) && r.part == wholePart:
			r.part = smallPart
			continue
		case err != nil:
			return next, nil, err
		case len(answer) < 3:
			return next, nil, errShort
		}
		next = binary.LittleEndian.Uint16(answer)
		record = append(record, answer[2:]...)
		if len(record) >= recordHeader {
			want = recordHeader + int(record[4])
		}
		if r.part == wholePart && len(record) < want {
			return next, nil, errShort
		}
		if want > 0xff {
			return next, nil, errRecord
		}
	}
	return next, record, nil
}

// get requests a part, with a new reservation if the old one was lost.
func (r *recordReader) get(ctx context.Context, id uint16, offset, size byte) ([]byte, error) {
	for try := 0; ; try++ {
		if r.reservation == nil {
			answer, err := r.link.ask(ctx, 0, r.from.netFn, r.from.reserve)
			var refused completion
			switch {
			case errors.As(err, &refused):
				r.reservation = []byte{0, 0} // whole records need none
			case err != nil:
				return nil, err
			case len(answer) < 2:
				return nil, errShort
			default:
				r.reservation = answer[:2]
			}
		}
		request := append(append([]byte(nil), r.reservation...), byte(id), byte(id>>8), offset, size)
		answer, err := r.link.ask(ctx, 0, r.from.netFn, r.from.get, request...)
		if refused := completion(0); errors.As(err, &refused) && refused == reservationLost && try < 3 {
			r.reservation = nil
			continue
		}
		return answer, err
	}
}
