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

// readFiles reads both files and their sizes. Damage and unreadable pages are not errors. Other files in the
// directory are ignored, except that savepoints of an earlier format are an error.
func readFiles(dir Directory, logger *slog.Logger) (files [2]contents, sizes [2]int64, err error) {
	infos, err := dir.List()
	if err != nil {
		return files, sizes, fmt.Errorf("list savepoints: %w", err)
	}
	files[1].index = 1
	for _, info := range infos {
		i := slices.Index(names[:], info.Name)
		if i < 0 {
			if err := checkForeign(dir, info.Name); err != nil {
				return files, sizes, fmt.Errorf("savepoint file %s: %w", info.Name, err)
			}
			logger.Warn("Ignoring a foreign file among the savepoints", "file", info.Name)
			continue
		}
		if files[i], err = readFile(dir, i, info.Size, logger); err != nil {
			return files, sizes, fmt.Errorf("savepoint file %s: %w", info.Name, err)
		}
		sizes[i] = info.Size / cellSize * cellSize
	}
	return files, sizes, nil
}

// checkForeign returns an error if a file is a savepoint of the earlier format, whose two slots each begin with magic.
func checkForeign(dir Directory, name string) error {
	const magic, slot = "hwsp", 16 * 1024
	f, err := dir.Open(name, os.O_RDONLY)
	if err != nil {
		return nil //nolint:nilerr // a file that cannot be read is left alone as any foreign one
	}
	defer f.Close()
	for i := range int64(2) {
		var b [len(magic)]byte
		if n, _ := f.ReadAt(b[:], i*slot); string(b[:n]) == magic {
			return earlierFormat()
		}
	}
	return nil
}

// refreshFile makes the readable parts of a file durable.
func refreshFile(dir Directory, name string, size int64) (err error) {
	f, err := dir.Open(name, os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := ReadLeft(f, 0, size).Restore(f); err != nil {
		return err
	}
	return dir.Sync()
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

// readPatience returns the delays before each retry of reading an unreadable piece.
func readPatience() []time.Duration {
	return []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second}
}

// readPiece is the size, in bytes, in which savepoint files are read, and in which unreadable parts are given up.
const readPiece = 4096

// readFile reads one file, a piece at a time.
func readFile(dir Directory, index int, size int64, logger *slog.Logger) (contents, error) {
	f, err := dir.Open(names[index], os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return contents{index: index}, nil // removed meanwhile
	}
	if err != nil {
		return contents{}, err
	}
	defer f.Close()
	var cells []cell
	var piece []byte // cells refer to parts of it, unless all are blank
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
			logger.Error("A page of the savepoints cannot be read", "file", names[index], "offset", at, "err", err)
			for i := range b {
				b[i] = 0xff // not a valid cell
			}
			n = len(b)
		}
		for b = b[:n]; len(b) >= cellSize; b = b[cellSize:] {
			c, err := decodeCell(b[:cellSize])
			if err != nil {
				return contents{}, err
			}
			if cells = append(cells, c); !c.blank {
				piece = nil
			}
		}
	}
	s := scanCells(index, cells)
	if s.generation > 0 && !wholeLength(size) {
		s.bad++ // there may have been more records
	}
	return s, nil
}
