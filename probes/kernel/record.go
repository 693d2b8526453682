package kernel

import (
	"bytes"
	"strconv"
	"strings"
)

// record is one record of the log.
type record struct {
	facility int // 0: the kernel
	sequence uint64
	message  string
}

// maxRecord is the size of the buffer for one record: the kernel's PRINTKRB_RECORD_MAX and CONSOLE_EXT_LOG_MAX are 1 and
// 8 KiB; a smaller buffer than a record gives EINVAL.
const maxRecord = 16 << 10

// parseRecord parses a record: priority, sequence number, time and flags with commas between them, a semicolon, the
// message, and lines that begin with a blank and describe the device. Non-printable characters are written as \x0a.
func parseRecord(b []byte) (r record, ok bool) {
	head, rest, ok := bytes.Cut(b, []byte{';'})
	if !ok {
		return r, false
	}
	fields := strings.SplitN(string(head), ",", 4)
	if len(fields) < 3 {
		return r, false
	}
	priority, err := strconv.ParseUint(fields[0], 10, 31)
	if err != nil {
		return r, false
	}
	if r.sequence, err = strconv.ParseUint(fields[1], 10, 63); err != nil {
		return r, false
	}
	message, _, _ := bytes.Cut(rest, []byte{'\n'})
	r.facility, r.message = int(priority>>3), strings.ToValidUTF8(string(message), "\uFFFD")
	return r, true
}
