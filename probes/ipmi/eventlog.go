package ipmi

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
)

// eventLog is the system event log (section 31.2).
type eventLog struct {
	entries, free int
	added, erased uint32    // in the BMC's clock
	last          uint16    // ID of the newest entry read
	primed        bool      // last is valid
	behind        bool      // some entries after last were not read
	newest        time.Time // of the newest entry; zero if unknown
}

// event is an entry of the log.
type event struct {
	id       uint16
	when     time.Time // zero if the entry has none
	kind     byte      // sensor type
	number   byte      // of the sensor
	reading  byte      // event/reading type
	offset   byte      // the state concerned
	recovers bool      // the state was left
	system   bool      // from a sensor; otherwise the vendor's format
}

// maxEvents is the number of entries read in a round.
const maxEvents = 64

// read returns the new entries since the last call. The first call returns none, and only records where the log ends.
func (e *eventLog) read(ctx context.Context, l link) ([]event, error) {
	info, err := l.ask(ctx, 0, netStorage, getLogInfo)
	if err != nil {
		return nil, err
	}
	if len(info) < 13 {
		return nil, errShort
	}
	added, erased := binary.LittleEndian.Uint32(info[5:]), binary.LittleEndian.Uint32(info[9:])
	entries := int(binary.LittleEndian.Uint16(info[1:]))
	same := e.primed && !e.behind && added == e.added && erased == e.erased && entries == e.entries
	cleared := e.primed && (erased != e.erased || entries < e.entries)
	e.entries, e.free, e.added, e.erased = entries, int(binary.LittleEndian.Uint16(info[3:])), added, erased
	if same {
		return nil, nil
	}
	if entries == 0 {
		e.last, e.primed = 0, true // the next read starts at the first entry
		return nil, nil
	}
	if !e.primed {
		_, newest, err := readEvent(ctx, l, 0xffff)
		if err != nil {
			return nil, err
		}
		e.note(newest)
		return nil, nil
	}
	if cleared {
		e.last = 0
	}
	found, err := e.follow(ctx, l)
	e.behind = err != nil
	return found, err
}

// follow reads the entries after the last known one.
func (e *eventLog) follow(ctx context.Context, l link) ([]event, error) {
	var found []event
	next := uint16(0)
	if e.last != 0 {
		after, known, err := readEvent(ctx, l, e.last)
		switch {
		case isNone(err):
			after = 0 // the entry is gone: the log was cleared
		case err != nil:
			return nil, err
		case known.id != e.last:
			after = 0
		}
		next = after
	}
	for range maxEvents {
		if next == 0xffff {
			break
		}
		after, one, err := readEvent(ctx, l, next)
		if err != nil {
			return found, err
		}
		found = append(found, one)
		e.note(one)
		if after == next {
			break
		}
		next = after
	}
	return found, nil
}

func (e *eventLog) note(one event) {
	e.last, e.primed = one.id, true
	if !one.when.IsZero() {
		e.newest = one.when
	}
}

// readEvent reads an entry (section 31.5). ID 0 is the first entry, FFFFh the last.
func readEvent(ctx context.Context, l link, id uint16) (next uint16, e event, err error) {
	answer, err := l.ask(ctx, 0, netStorage, getLogEntry, 0, 0, byte(id), byte(id>>8), 0, 0xff)
	if err != nil {
		return 0xffff, event{}, fmt.Errorf("entry %d: %w", id, err)
	}
	if len(answer) < 18 {
		return 0xffff, event{}, fmt.Errorf("entry %d: %w", id, errShort)
	}
	return binary.LittleEndian.Uint16(answer), parseEvent(answer[2:18]), nil
}

// parseEvent parses the 16 bytes of an entry (section 32).
func parseEvent(b []byte) event {
	e := event{id: binary.LittleEndian.Uint16(b)}
	if kind := b[2]; kind < 0xe0 { // entries from E0h on have no time
		// Before 20000000h the clock counts from the BMC's start (section 37.1).
		if at := binary.LittleEndian.Uint32(b[3:]); at > 0x20000000 && at != 0xffffffff {
			e.when = time.Unix(int64(at), 0).UTC()
		}
		if e.system = kind == 0x02; e.system {
			e.kind, e.number, e.reading, e.recovers, e.offset = b[10], b[11], b[12]&0x7f, b[12]&0x80 != 0, b[13]&0xf
		}
	}
	return e
}
