package savefile

import (
	"encoding/binary"
	"maps"
	"slices"

	"hwsagent/wal/internal/segment"
)

// LogRecord is the state of the log as a whole.
type LogRecord struct {
	// Durable is the last durable commit of the log at that time. Without it, the loss of durable
	// samples at the end of the log would not be detected.
	Durable segment.Mark

	Lost Lost
}

// Lost is the set of targets whose records are unreadable. Each begins at the oldest data when
// it is opened or enrolled again.
type Lost struct {
	All    bool            // any target without a record may be lost
	Owners map[uint64]bool // ownerOf of the names
}

// maxLostOwners bounds Lost.Owners.
const maxLostOwners = 200

// Any reports whether any target may be lost.
func (l *Lost) Any() bool { return l.All || len(l.Owners) > 0 }

// Has reports whether the target of that name may be lost.
func (l *Lost) Has(name string) bool { return l.All || l.Owners[ownerOf(name)] }

func (l *Lost) add(owner uint64) {
	if l.Owners == nil {
		l.Owners = map[uint64]bool{}
	}
	l.Owners[owner] = true
	l.All = l.All || len(l.Owners) > maxLostOwners
}

// appendLog appends the payload of a kindLog.
func appendLog(b []byte, l LogRecord) []byte {
	b = segment.AppendMark(b, l.Durable)
	if l.Lost.All {
		return append(b, 1, 0)
	}
	b = binary.AppendUvarint(append(b, 0), uint64(len(l.Lost.Owners)))
	for _, owner := range slices.Sorted(maps.Keys(l.Lost.Owners)) {
		b = binary.BigEndian.AppendUint64(b, owner)
	}
	return b
}

func decodeLog(b []byte) (l LogRecord, err error) {
	d := segment.Decoder{B: b}
	l.Durable = d.Mark()
	l.Lost.All = d.Uvarint() != 0
	for n := d.Uvarint(); n > 0 && d.Err == nil; n-- {
		if owner := d.Bytes(8); d.Err == nil {
			l.Lost.add(binary.BigEndian.Uint64(owner))
		}
	}
	if err := d.End(); err != nil {
		return LogRecord{}, err
	}
	return l, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
