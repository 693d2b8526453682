package remotewrite

import (
	"slices"
	"testing"

	"hwsagent/wal"
)

// What is kept is read again by the next process; of another log no commit is meant, and
// what is damaged in any byte is not believed.
func TestLateMemory(t *testing.T) {
	store := &memLetters{}
	before := lateMemory{store: store}
	s := &series{hash: 1 << 63, newest: 17, newestIn: 5}
	before.note([]point{{series: s, t: 3}, {series: &series{hash: 2, newest: noneTakenOneRefused}}})
	if err := before.save(wal.ID{1}, &takenSample{Hash: 2, T: 17}, false); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		log  wal.ID
		want uint64
	}{{wal.ID{1}, 5}, {wal.ID{2}, 0}} {
		after := lateMemory{store: store}
		if err := after.load(tc.log); err != nil {
			t.Fatal(err)
		}
		again, other := &series{hash: s.hash, newest: noneTaken}, &series{hash: 2, newest: noneTaken}
		if got := after.recall(again); got != nil || again.newest != 17 || again.newestIn != tc.want {
			t.Errorf("recalled %+v and %v, want what was noted, of commit %d", again, got, tc.want)
		}
		if got := after.recall(other); got == nil || got.T != 17 || other.newest != noneTaken {
			t.Errorf("recalled %+v and %v of a series of which nothing is known but a sample", other, got)
		}
	}
	whole := slices.Clone(store.memory)
	for i := range whole {
		store.memory = slices.Clone(whole)
		store.memory[i] ^= 1
		after := lateMemory{store: store}
		if err := after.load(wal.ID{1}); err == nil || len(after.series) > 0 {
			t.Errorf("byte %d is damaged, and it is believed: %v", i, err)
		}
	}
}
