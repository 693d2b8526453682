package wal

import "hwsagent/wal/internal/disk"

// keptBytes are the bytes of a segment that an fsync has not confirmed, from the beginning of the block that holds the durable end
// on. After a failed fsync they are written again, because the kernel may have dropped them or may treat them as written.
type keptBytes struct {
	from int64 // offset in the segment
	b    []byte
}

const (
	keptBlock = 4096    // bytes that a disk may write as a whole
	keptIdle  = 1 << 20 // capacity, in bytes, up to which the buffer is kept in any case
)

// end is the offset behind the bytes.
func (k *keptBytes) end() int64 { return k.from + int64(len(k.b)) }

// reset begins with the bytes of an empty segment.
func (k *keptBytes) reset() { k.from, k.b = 0, k.b[:0] }

// add adds bytes that were written at an offset, which is the end of the bytes so far.
func (k *keptBytes) add(b []byte) { k.b = append(k.b, b...) }

// cut forgets the bytes from an offset on.
func (k *keptBytes) cut(offset int64) { k.b = k.b[:max(0, offset-k.from)] }

// settle forgets the bytes before the block that holds the durable end.
func (k *keptBytes) settle(durable int64) {
	from := min(durable, k.end()) / keptBlock * keptBlock
	if from <= k.from {
		return
	}
	used, rest := len(k.b), k.b[from-k.from:]
	if cap(k.b) > max(keptIdle, 8*used) { // a burst is over
		k.b = make([]byte, 0, used)
	}
	k.b, k.from = append(k.b[:0], rest...), from
}

// rewrite writes the bytes to the file again. The file ends with them.
func (k *keptBytes) rewrite(f disk.File) error {
	if err := f.Truncate(k.end()); err != nil {
		return err
	}
	_, err := f.WriteAt(k.b, k.from)
	return err
}
