package latebook

import (
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"hwsagent/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store in memory.
type memory struct {
	b     []byte
	err   error
	saves int
}

func (m *memory) Remember(b []byte) error {
	if m.saves++; m.err == nil {
		m.b = slices.Clone(b)
	}
	return m.err
}

func (m *memory) Recall() ([]byte, error) { return slices.Clone(m.b), m.err }

// The next process reads the saved book; commits of another log are cleared, and
// a file with any damaged byte is rejected.
func TestBookOfAnEarlierProcess(t *testing.T) {
	store := &memory{}
	before := New(store)
	before.Note(1<<63, Newest{17, 5})
	if err := before.Save(wal.ID{1}, &Sample{Hash: 2, T: 17}, false); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		log  wal.ID
		want uint64
	}{{wal.ID{1}, 5}, {wal.ID{2}, 0}} {
		after := New(store)
		if err := after.Load(tc.log); err != nil {
			t.Fatal(err)
		}
		if is, ok, taken := after.Recall(1 << 63); !ok || taken != nil || is != (Newest{17, tc.want}) {
			t.Errorf("recalled %+v, %t and %v, want the series as noted, of commit %d", is, ok, taken, tc.want)
		}
		if after.Taken() == nil {
			t.Error("the sample is gone before its series is seen")
		}
		if is, ok, taken := after.Recall(2); ok || taken == nil || taken.T != 17 {
			t.Errorf("recalled %+v, %t and %v of a series of which a sample is all that is known", is, ok, taken)
		}
		if _, _, taken := after.Recall(2); taken != nil {
			t.Error("the sample is recalled twice")
		}
	}
	whole := slices.Clone(store.b)
	for i := range whole {
		store.b = slices.Clone(whole)
		store.b[i] ^= 1
		after := New(store)
		if err := after.Load(wal.ID{1}); err == nil || len(after.series) > 0 {
			t.Errorf("byte %d is damaged, and it is believed: %v", i, err)
		}
	}
}

// The book is not written without news, and a failed write is repeated the next time.
func TestBookIsWrittenWhenItChanges(t *testing.T) {
	store := &memory{err: errors.New("the disk is full")}
	b := New(store)
	save := func(still bool) error { return b.Save(wal.ID{1}, &Sample{Hash: 2, T: 17}, still) }
	if err := save(false); err != nil || store.saves != 0 {
		t.Fatalf("%d writes of nothing: %v", store.saves, err)
	}
	b.Note(1, Newest{17, 5})
	if err := save(false); err == nil || store.saves != 1 {
		t.Fatalf("%d writes, error %v, want one that fails", store.saves, err)
	}
	store.err = nil
	for _, still := range []bool{false, true} {
		if err := save(still); err != nil || store.saves != 2 {
			t.Fatalf("%d writes, error %v, want a second one and no third", store.saves, err)
		}
		b.Note(1, Newest{17, 5})
	}
	if err := b.Save(wal.ID{1}, &Sample{Hash: 2, T: 18}, true); err != nil || store.saves != 3 {
		t.Errorf("%d writes, error %v, want one for the sample", store.saves, err)
	}
}
