package savefile

import (
	"encoding/binary"

	"hwsagent/wal/internal/segment"
)

// LogRecord is the state of the log as a whole.
type LogRecord struct {
	// Durable is the last durable commit of the log at that time. Without it, the loss of durable
	// samples at the end of the log would not be detected.
	Durable segment.Mark

	// Lost means that records of targets may be unreadable. Until the targets are known again, one without a record begins at the
	// oldest data.
	Lost bool
}

// appendLog appends the payload of a kindLog.
func appendLog(b []byte, l LogRecord) []byte {
	b = segment.AppendMark(b, l.Durable)
	if l.Lost {
		return append(b, 1)
	}
	return append(b, 0)
}

func decodeLog(b []byte) (l LogRecord, err error) {
	d := segment.Decoder{B: b}
	l.Durable = d.Mark()
	l.Lost = d.Byte() != 0
	if err := d.End(); err != nil {
		return LogRecord{}, err
	}
	return l, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
