package givenup

import (
	"testing"

	"go.uber.org/goleak"

	"hwsagent/wal/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A sample is remembered until the savepoint is past its commit, and by letters of earlier processes only where these may have sent it.
func TestBook(t *testing.T) {
	var b Book
	named := func(s string) func() string { return func() string { return s } }
	want := func(commit uint64, k Key, series string, unsure bool, reason queue.Reason, is bool) {
		t.Helper()
		if why, ok := b.Why(commit, k, named(series), unsure); ok != is || ok && why != reason {
			t.Errorf("commit %d, %+v, %s, unsure %t: %v, %t; want %v, %t", commit, k, series, unsure, why, ok, reason, is)
		}
	}
	b.Add(1, Key{7, 10}, queue.Unconfirmed)
	b.Released(8, 2, 0)
	b.Released(9, 2, 2) // the savepoint is past that
	b.Recall([]Letter{{"a", 10, queue.Rejected}, {"b", 10, queue.Unconfirmed}})

	want(1, Key{7, 10}, "x", false, queue.Unconfirmed, true)
	want(1, Key{7, 11}, "x", false, 0, false)
	want(2, Key{7, 10}, "x", false, 0, false)
	want(2, Key{8, 10}, "x", false, queue.Rejected, true)
	want(3, Key{8, 10}, "x", false, 0, false)
	want(1, Key{9, 10}, "x", false, 0, false)
	want(5, Key{1, 10}, "a", true, queue.Rejected, true)
	want(5, Key{1, 10}, "b", true, queue.Unconfirmed, true)
	want(5, Key{1, 10}, "a", false, 0, false)
	want(5, Key{1, 11}, "a", true, 0, false)
	if !b.Any(1, false) || !b.Any(5, true) {
		t.Error("nothing may have been given up")
	}
	b.Forget(1)
	want(1, Key{7, 10}, "x", false, 0, false)
	b.Forget(2)
	want(2, Key{8, 10}, "x", false, 0, false)
	if b.Any(1, false) || !b.Any(5, true) {
		t.Error("what is settled is remembered, or a letter is not")
	}
	b.Recall(nil)
	if b.Any(5, true) {
		t.Error("letters are remembered that were taken back")
	}
}
