package kernel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"hwsagent/internal/files"
	"hwsagent/probes/hw"
)

// maxSeries bounds the series: a name can be anything that a driver prints.
const maxSeries = 1000

// key identifies a series.
type key struct {
	Event  string `json:"event"`
	Code   string `json:"code"`
	Kind   string `json:"kind"`   // of the component
	ID     string `json:"id"`     // of the component; "" for the machine
	Device string `json:"device"` // its name at present, or its PCI address
}

// counts is what the probe knows: how far it has read the log of which boot, and what it has counted since it began. A
// consistent set is written as a whole, so that a restart counts nothing twice.
type counts struct {
	Boot string // the kernel's boot_id
	Next uint64 // the next sequence number
	Lost uint64 // records that were overwritten before they were read
	Seen map[key]uint64
	more uint64 // events without a series, because there are maxSeries
}

func newCounts() *counts { return &counts{Seen: make(map[key]uint64)} }

// add counts an event; at a full table only if its series exists.
func (c *counts) add(k key) {
	if _, there := c.Seen[k]; !there && len(c.Seen) >= maxSeries {
		c.more++
		return
	}
	c.Seen[k]++
}

// keys returns the series in order.
func (c *counts) keys() []key {
	all := make([]key, 0, len(c.Seen))
	for k := range c.Seen {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Code, b.Code), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

// stored is the form of the state file.
type stored struct {
	Schema int     `json:"schema"`
	Boot   string  `json:"boot"`
	Next   uint64  `json:"next"`
	Lost   uint64  `json:"lost"`
	Counts []count `json:"counts"`
}

type count struct {
	key
	N uint64 `json:"n"`
}

// maxState bounds the state file: maxSeries take a fraction of it.
const maxState = 4 << 20

// load reads a state file; without one, or with a damaged one, the counts begin at 0 and err says why.
func load(name string) (c *counts, err error) {
	c = newCounts()
	b, err := files.Read(name, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	var s stored
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err == nil && s.Schema != 1 {
		err = fmt.Errorf("its schema is %d, not 1", s.Schema)
	}
	if err != nil {
		return c, fmt.Errorf("read the counts of earlier runs in %s: %w; they begin at 0", name, err)
	}
	c.Boot, c.Next, c.Lost = s.Boot, s.Next, s.Lost
	for _, one := range s.Counts {
		if _, known := hw.KindOf(one.Kind); known && len(c.Seen) < maxSeries {
			c.Seen[one.key] = one.N
		}
	}
	return c, nil
}

// save replaces the state file. A kill leaves the former or the new one. It does not wait for the disk: after a power cut
// the kernel's log is another one, and an empty file only makes the counters begin anew.
func (c *counts) save(name string) error {
	s := stored{Schema: 1, Boot: c.Boot, Next: c.Next, Lost: c.Lost}
	for _, k := range c.keys() {
		s.Counts = append(s.Counts, count{k, c.Seen[k]})
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", b, 0o600); err != nil {
		return errors.Join(err, os.Remove(name+".new"))
	}
	return os.Rename(name+".new", name)
}
