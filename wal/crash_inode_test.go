package wal

import (
	"math/rand/v2"
	"slices"
)

// sectorSize is what a disk writes whole or not at all, in bytes.
const sectorSize = 512

// inode is a file as the system shows it, and as a power cut may leave it.
//
// A cut keeps what is durable. Of the changes since, those of the size (what writing
// beyond the end and cutting do) are in a journal, so that a beginning of them
// survives; each written sector for itself survives, stays what it was, or reads as
// zeros where the file has grown. So there are tails of zeros, holes, and old sectors
// between new ones, in any order.
type inode struct {
	data    image    // what a reader gets
	durable image    // what is on the disk for certain
	changes []change // since, in order; those that a failed sync has dropped are not there
}

// change is one write or truncation.
type change struct {
	off     int    // of the first sector
	sectors []byte // what is in the sectors that were written; nil: a truncation
	size    int    // of the file then
}

// fresh is the inode of a file that is durable.
func fresh(b []byte) *inode { return durableInode(imageOf(b)) }

// durableInode is fresh of an image, which is the inode's from now on.
func durableInode(m image) *inode { return &inode{data: m, durable: m.copy()} }

// memory is about how much it takes, in bytes, but for the pieces in counted.
func (i *inode) memory(counted map[*imagePiece]bool) int {
	n := i.data.memory(counted) + i.durable.memory(counted)
	for _, c := range i.changes {
		n += cap(c.sectors)
	}
	return n
}

func (i *inode) write(p []byte, off int) {
	i.data.writeAt(p, off)
	from := off / sectorSize * sectorSize
	to := min(i.data.size, (off+len(p)+sectorSize-1)/sectorSize*sectorSize)
	i.changes = append(i.changes, change{from, i.data.slice(from, to), i.data.size})
}

func (i *inode) truncate(size int) {
	i.data.truncate(size)
	i.changes = append(i.changes, change{size: size})
}

// flush makes the first n changes durable, or as many as there are.
func (i *inode) flush(n int) {
	n = min(n, len(i.changes))
	for _, c := range i.changes[:n] {
		if c.sectors == nil {
			i.durable.truncate(min(c.size, i.durable.size))
		}
		i.durable.writeAt(c.sectors, c.off)
	}
	i.changes = slices.Clone(i.changes[n:])
	if len(i.changes) == 0 { // the size, after a sync that failed
		i.durable.truncate(i.data.size)
	}
}

// drop is what a failed sync does: the changes are written, or not, as rng says, and never tried again. They read back until a power
// cut; with forgets, as on XFS and btrfs, what is on the disk reads back at once.
func (i *inode) drop(rng *rand.Rand, forgets bool) {
	if rng != nil {
		i.durable, _ = i.cut(rng)
	}
	i.changes = nil
	if size := i.data.size; forgets {
		i.data = i.durable.copy()
		i.data.truncate(min(size, i.data.size))
		i.data.extend(size)
	}
}

// cut is what a power cut leaves. torn says that of some write it leaves a part.
func (i *inode) cut(rng *rand.Rand) (b image, torn bool) {
	b = i.durable.copy()
	if len(i.changes) == 0 {
		return b, false
	}
	sizes, sectors := drawLuck(rng), drawLuck(rng)
	kept := 0 // changes of the size
	for kept < len(i.changes) && sizes.kept(rng) {
		kept++
	}
	size := b.size
	if kept > 0 {
		size = i.changes[kept-1].size
	}
	if kept < len(i.changes) && i.changes[kept].size > size && rng.IntN(2) == 0 { // the next one in part
		size += rng.IntN(i.changes[kept].size-size) / sectorSize * sectorSize
	}
	for n, c := range i.changes {
		if c.sectors == nil {
			if n >= kept {
				break // what follows rests on it
			}
			b.truncate(min(c.size, b.size))
			continue
		}
		lost := 0
		for at := 0; at < len(c.sectors); at += sectorSize {
			if !sectors.kept(rng) {
				lost++
				continue
			}
			sector := c.sectors[at:min(at+sectorSize, len(c.sectors))]
			b.writeAt(sector, c.off+at)
		}
		torn = torn || lost > 0 && lost*sectorSize < len(c.sectors)
	}
	b.truncate(size)
	return b, torn
}

// luck is how likely it is that something survives, of 16; one of 0, 16 or between.
type luck int

func drawLuck(rng *rand.Rand) luck {
	return [...]luck{0, 0, 4, 8, 12, 15, 16, 16}[rng.IntN(8)]
}

func (l luck) kept(rng *rand.Rand) bool {
	return l == 16 || l > 0 && luck(rng.IntN(16)) < l
}
