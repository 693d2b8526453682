package savefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// names are the names of the two files.
var names = [2]string{"records.0", "records.1"}

// Directory is the directory with the two files, with the operations that the store needs.
type Directory interface {
	Open(name string, flag int) (disk.File, error) // with os.O_ flags
	Look(name string, f disk.File) (disk.Info, error)
	Sync() error // makes creations durable
}

// Read reads the files in dir without changing them. Missing files and damage are not errors; another format is a *FormatError.
func Read(dir Directory, logger *slog.Logger) (Saved, error) {
	saved, _, err := readFiles(dir, logger)
	return saved, err
}

// readFiles reads both files, and their sizes.
func readFiles(dir Directory, logger *slog.Logger) (saved Saved, sizes [2]int64, err error) {
	var files [2][]slot
	for i, name := range names {
		if files[i], sizes[i], err = readFile(dir, name, logger); err != nil {
			return Saved{}, sizes, fmt.Errorf("file %s: %w", name, err)
		}
	}
	return merge(files, sizes), sizes, nil
}

// readPatience returns the delays before each retry of reading an unreadable piece.
func readPatience() []time.Duration {
	return []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second}
}

// readPiece is the size, in bytes, in which savepoint files are read, and in which unreadable parts are given up.
const readPiece = 4096

// readFile reads one file, a piece at a time. The slots of a piece that cannot be read are damaged.
func readFile(dir Directory, name string, logger *slog.Logger) (slots []slot, size int64, err error) {
	info, err := dir.Look(name, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := dir.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	size = info.Size
	var piece []byte // slots refer to parts of it, unless all are blank
	for at := int64(0); at < size; at += readPiece {
		if piece == nil {
			piece = make([]byte, readPiece)
		}
		b := piece[:min(readPiece, size-at)]
		n, err := f.ReadAt(b, at)
		for _, pause := range readPatience() {
			if err == nil || errors.Is(err, io.EOF) {
				break
			}
			time.Sleep(pause)
			n, err = f.ReadAt(b, at)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			logger.Error("A page of the savepoints cannot be read", "file", name, "offset", at, "err", err)
			slots = append(slots, make([]slot, len(b)/slotSize)...)
			continue
		}
		// The store grows a short file with zeros, so a slot that the end of the file cuts off counts as it will be then.
		clear(piece[n:])
		for b = piece[:(n+slotSize-1)/slotSize*slotSize]; len(b) > 0; b = b[slotSize:] {
			s, err := decodeSlot(b[:slotSize])
			if err != nil {
				return nil, 0, err
			}
			if slots = append(slots, s); !s.blank {
				piece = nil
			}
		}
	}
	return slots, size, nil
}

// File sizes in bytes. Files are large enough for the state to be a small part of all writes.
const (
	minFile = 256 << 10
	maxFile = 64 << 20 // but for a state of more than a quarter of it
)

// capacity is the size for a file that begins with a state of n bytes.
func capacity(n int64) int64 {
	size := int64(minFile)
	for size < 4*n || size < 8*n && size < maxFile {
		size *= 2
	}
	return size
}

// Left is what an earlier process left in a file. It may not be durable: the process may have been killed before its fsync, or after
// a failed one. The kernel may then treat unwritten pages as clean, and no later fsync writes them. So the same bytes are written again
// in place.
type Left []leftPiece

type leftPiece struct {
	at int64
	b  []byte
}

// ReadLeft reads the bytes of a file between two offsets, but for zeros, which hold no records, and unreadable ones.
func ReadLeft(f disk.File, from, to int64) (l Left) {
	b := make([]byte, readPiece)
	for at := from; at < to; at += readPiece {
		n, err := f.ReadAt(b[:min(readPiece, to-at)], at)
		if err != nil && !errors.Is(err, io.EOF) || segment.AllZero(b[:n]) {
			continue
		}
		l = append(l, leftPiece{at, slices.Clone(b[:n])})
	}
	return l
}

// Write writes the bytes again in place.
func (l Left) Write(f disk.File) error {
	for _, p := range l {
		if _, err := f.WriteAt(p.b, p.at); err != nil {
			return err
		}
	}
	return nil
}

// Restore writes the bytes again in place and makes them durable.
func (l Left) Restore(f disk.File) error {
	if err := l.Write(f); err != nil {
		return err
	}
	return f.Sync()
}
