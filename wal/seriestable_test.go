package wal

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
)

// encodedLabel is the labels {x="value"} as an announcement has them.
func encodedLabel(value string) []byte {
	b := []byte{1, 1, 'x'}
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

// TestSeriesTablesAgainstModel: cursors that announce, describe and turn at random have one *Series for equal labels of which the
// same is said, keep it over segments, have a slot for each label set that is held, and leave nothing behind.
func TestSeriesTablesAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	all := newSeriesMap()
	const cursors, names = 4, 40
	for ref := uint64(0); ref <= 2*names; ref += 3 {
		all.byRef.Put(ref, &Series{labels: all.symbols.hold(encodedLabel(fmt.Sprint("wrong ", ref)))})
	}
	type holding struct {
		value, help string
		s           *Series
	}
	tables := make([]*seriesTable, cursors)
	now := make([]map[uint64]holding, cursors)      // the references of the present segment
	before := make([][]map[uint64]holding, cursors) // and those that were last in one before
	for i := range tables {
		tables[i], now[i] = newSeriesTable(all), map[uint64]holding{}
	}
	for step := range 4000 {
		i := rnd.IntN(cursors)
		table, ref := tables[i], uint64(1+rnd.IntN(2*names))
		switch rnd.IntN(12) {
		case 0:
			table.turn()
			before[i] = append([]map[uint64]holding{now[i]}, before[i]...)[:min(len(before[i])+1, idleSegments)]
			now[i] = map[uint64]holding{}
		case 1, 2:
			if h, ok := now[i][ref]; ok {
				h.help = fmt.Sprint(rnd.IntN(3))
				table.describe(ref, func(a *About) { a.Meta = metadata.Metadata{Type: "gauge", Help: h.help} })
				h.s = table.lookup(ref)
				now[i][ref] = h
			}
		default:
			h := holding{value: fmt.Sprint(ref % names)} // two references of the same labels
			if !table.announce(ref, encodedLabel(h.value)) {
				t.Fatal("refused")
			}
			table.settle()
			got := table.lookup(ref)
			if old, ok := now[i][ref]; ok && old.s != got {
				t.Fatalf("step %d: a second announcement changed the series", step)
			}
			for _, segment := range before[i] {
				if old, ok := segment[ref]; ok && now[i][ref].s == nil {
					if old.s != got {
						t.Fatalf("step %d: the series has another identity in the next segment", step)
					}
					delete(segment, ref)
				}
			}
			h.s, h.help = got, got.Meta().Help
			now[i][ref] = h
		}
		held := map[string]*Series{}
		slots := map[int]*Series{}
		places := map[string]int{} // slots of label sets
		for n := range cursors {
			for _, segment := range append([]map[uint64]holding{now[n]}, before[n]...) {
				for _, h := range segment {
					if h.s.Labels().Get("x") != h.value || h.s.Meta().Help != h.help || h.s.Gone() {
						t.Fatalf("step %d: %+v is %s", step, h, h.s.Labels())
					}
					if other := slots[h.s.Slot()]; other != nil && !labels.Equal(other.Labels(), h.s.Labels()) {
						t.Fatalf("step %d: two series in slot %d", step, h.s.Slot())
					}
					if slot, ok := places[h.value]; ok && slot != h.s.Slot() {
						t.Fatalf("step %d: %s in slots %d and %d", step, h.s.Labels(), slot, h.s.Slot())
					}
					places[h.value] = h.s.Slot()
					slots[h.s.Slot()] = h.s
					key := h.value + "\xff" + h.help
					if other := held[key]; other != nil && other != h.s {
						t.Fatalf("step %d: two series %s", step, h.s.Labels())
					}
					held[key] = h.s
				}
			}
		}
		if all.byHash.Len() != len(held) || int(all.slots)-len(all.free) != len(slots) || all.slots > names {
			t.Fatalf("step %d: %d series in %d slots, %d of them free; %d are held", step, all.byHash.Len(), all.slots, len(all.free), len(held))
		}
	}
	last := slices.Collect(maps.Values(now[0]))
	for _, table := range tables {
		table.release()
	}
	if all.byHash.Len() != 0 || len(all.free) != int(all.slots) {
		t.Errorf("%d series are left, %d of %d slots are free", all.byHash.Len(), len(all.free), all.slots)
	}
	for _, h := range last {
		if !h.s.Gone() {
			t.Errorf("%s is not gone", h.s.Labels())
		}
	}
}

// TestAnnounceMalformed: labels that no writer wrote make no series, and hold nothing.
func TestAnnounceMalformed(t *testing.T) {
	all := newSeriesMap()
	table := newSeriesTable(all)
	for name, encoded := range map[string][]byte{
		"a name twice":  {2, 1, 'x', 1, 'v', 1, 'x', 1, 'v'},
		"an empty name": {1, 0, 1, 'v'},
		"cut":           {1, 1, 'x', 5, 'v'},
		"more":          {1, 1, 'x', 1, 'v', 0},
	} {
		if table.announce(1, encoded) || table.lookup(1) != nil {
			t.Errorf("%s: taken", name)
		}
	}
	if all.byHash.Len() != 0 {
		t.Errorf("%d series", all.byHash.Len())
	}
}

// TestCursorsShareSeries: a further cursor has the same *Series for the same labels.
func TestCursorsShareSeries(t *testing.T) {
	all := newSeriesMap()
	first, second := newSeriesTable(all), newSeriesTable(all)
	for _, n := range []int{10, 1 << 20} {
		text := encodedLabel(strings.Repeat("v", n))
		first.announce(uint64(n), text)
		second.announce(uint64(n+1), text)
		a, b := first.lookup(uint64(n)), second.lookup(uint64(n+1))
		if a == nil || a != b {
			t.Fatalf("labels of %d bytes: %p and %p", n, a, b)
		}
	}
}

// TestSeriesAreSmall: an agent of many devices has millions of these.
func TestSeriesAreSmall(t *testing.T) {
	if n := unsafe.Sizeof(Series{}); n > 96 {
		t.Errorf("a series takes %d bytes, want at most 96", n)
	}
}

// TestSeriesOfALongLogIsInOneTable: what is in each segment takes one place of a cursor, however many segments there are.
func TestSeriesOfALongLogIsInOneTable(t *testing.T) {
	table := newSeriesTable(newSeriesMap())
	const n = 1000
	for range 2 * len(table.refs) {
		table.turn()
		for ref := range uint64(n) {
			table.announce(ref, encodedLabel(fmt.Sprint(ref)))
		}
	}
	places := 0
	for i := range table.refs {
		places += table.refs[i].Len()
	}
	if places != n {
		t.Errorf("%d series have %d places", n, places)
	}
}
