package exec

import (
	"testing"
	"time"
)

// TestFlights: work that does not come back is not begun again under its key, and hinders no other.
func TestFlights(t *testing.T) {
	f := NewFlights[int](nil)
	never, over := make(chan int), make(chan time.Time)
	close(over)
	failed := func(error) int { return -1 }
	if !f.Start("a", func() int { return <-never }, failed) || !f.Start("b", func() int { return 2 }, failed) {
		t.Fatal("not begun")
	}
	if got, ok := f.Wait("b", nil); got != 2 || !ok {
		t.Errorf("b is %d, %t", got, ok)
	}
	if _, ok := f.Wait("a", over); ok || f.Start("a", func() int { return 3 }, failed) || f.Len() != 1 {
		t.Errorf("a was begun again; %d are on their way", f.Len())
	}
	never <- 1
	if got, ok := f.Wait("a", nil); got != 1 || !ok || f.Len() != 0 {
		t.Errorf("a came back as %d, %t", got, ok)
	}
	if !f.Start("a", func() int { panic("on purpose") }, failed) {
		t.Fatal("not begun after it came back")
	}
	if got, ok := f.Wait("a", nil); got != -1 || !ok {
		t.Errorf("a panic is %d, %t", got, ok)
	}
}
