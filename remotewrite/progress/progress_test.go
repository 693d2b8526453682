package progress

import (
	"math/rand/v2"
	"testing"

	"hwsagent/wal"
	"hwsagent/wal/queue"
)

func markAt(n, total uint64) wal.Mark {
	return wal.Mark{Position: wal.Position{Offset: int64(n)}, Commit: n, Total: total}
}

// one is the outcome of one sample dropped for a reason.
func one(r queue.Reason) (o queue.Outcome) {
	o.Dropped[r] = 1
	return o
}

func TestProgressOrder(t *testing.T) {
	p := New(4, 100)
	a := p.Begin(markAt(1, 10), 10, queue.Outcome{})
	b := p.Begin(markAt(2, 12), 0, one(queue.Damage)) // nothing but damage
	c := p.Begin(markAt(3, 20), 8, queue.Outcome{})
	mustDone(t, p, c, queue.Outcome{Delivered: 8})
	if m, _, ok := p.Pop(); ok {
		t.Fatalf("Pop = %v before the first entry has its outcome", m)
	}
	mustDone(t, p, a, queue.Outcome{Delivered: 9, Filtered: 1})
	for i, want := range []struct {
		commit uint64
		out    queue.Outcome
	}{
		{1, queue.Outcome{Delivered: 9, Filtered: 1}}, {2, one(queue.Damage)}, {3, queue.Outcome{Delivered: 8}},
	} {
		m, o, ok := p.Pop()
		if !ok || m.Commit != want.commit || o != want.out {
			t.Errorf("Pop %d = %v %v %v, want commit %d %v", i, m, o, ok, want.commit, want.out)
		}
	}
	if !p.Empty() || p.Open() != 0 {
		t.Errorf("window is %s, want empty", p)
	}
	if b != a+1 || c != b+1 || p.Newest() != c {
		t.Errorf("sequence numbers %d %d %d, newest %d", a, b, c, p.Newest())
	}
}

func mustDone(t *testing.T, p *Tracker, seq uint64, o queue.Outcome) {
	t.Helper()
	if err := p.Done(seq, o); err != nil {
		t.Fatal(err)
	}
}

func TestProgressRefusesWrongOutcomes(t *testing.T) {
	p := New(4, 100)
	seq := p.Begin(markAt(1, 3), 3, queue.Outcome{})
	mustDone(t, p, seq, queue.Outcome{Delivered: 2})
	for name, f := range map[string]func() error{
		"too many":         func() error { return p.Done(seq, queue.Outcome{Delivered: 2}) },
		"not begun":        func() error { return p.Done(seq+1, queue.Outcome{Delivered: 1}) },
		"before the first": func() error { return p.Done(seq-1, queue.Outcome{Delivered: 1}) },
	} {
		if f() == nil {
			t.Errorf("%s: outcome accepted", name)
		}
	}
	mustDone(t, p, seq, queue.Outcome{Delivered: 1})
	if _, o, ok := p.Pop(); !ok || o.Delivered != 3 {
		t.Errorf("Pop = %v %v: a refused outcome must change nothing", o, ok)
	}
	if p.Done(seq, queue.Outcome{Delivered: 1}) == nil {
		t.Error("an entry that has left got an outcome")
	}
}

func TestProgressBounds(t *testing.T) {
	p := New(2, 10)
	if p.Full() {
		t.Error("an empty window is full")
	}
	a := p.Begin(markAt(1, 50), 50, queue.Outcome{})
	if !p.Full() {
		t.Errorf("%s is not full", p)
	}
	mustDone(t, p, a, queue.Outcome{Delivered: 45})
	if p.Full() {
		t.Errorf("%s is full", p)
	}
	p.Begin(markAt(2, 51), 1, queue.Outcome{})
	if !p.Full() {
		t.Errorf("%s is not full with two entries", p)
	}
	if got, want := p.String(), "1..2 open=6/10 full"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}

// Finished samples cannot run arbitrarily far ahead of unfinished ones.
func TestProgressSpan(t *testing.T) {
	p := New(100, 100)
	p.SetLimits(100, 30)
	first := p.Begin(markAt(1, 10), 10, queue.Outcome{})
	for i := uint64(2); !p.Full(); i++ {
		mustDone(t, p, p.Begin(markAt(i, 10*i), 10, queue.Outcome{}), queue.Outcome{Delivered: 10})
	}
	if p.Entries() != 3 || p.Open() != 10 {
		t.Errorf("window is %s, want full with three entries, two of them finished", p)
	}
	mustDone(t, p, first, queue.Outcome{Delivered: 10})
	for range 3 {
		if _, _, ok := p.Pop(); !ok {
			t.Fatalf("window is %s, want three finished entries", p)
		}
	}
	if p.Full() {
		t.Errorf("%s is full", p)
	}
}

// naiveProgress keeps everything in lists.
type naiveProgress struct {
	marks []wal.Mark
	open  []uint64
	out   []queue.Outcome
	left  int
}

func (n *naiveProgress) pop() (wal.Mark, queue.Outcome, bool) {
	if n.left == len(n.marks) || n.open[n.left] > 0 {
		return wal.Mark{}, queue.Outcome{}, false
	}
	n.left++
	return n.marks[n.left-1], n.out[n.left-1], true
}

func FuzzProgress(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint16(400))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := New(1+r.IntN(40), 1+r.IntN(500))
		var n naiveProgress
		var total, popped uint64
		for range steps {
			switch r.IntN(4) {
			case 0:
				if p.Full() {
					continue
				}
				samples := uint64(r.IntN(20))
				var missing queue.Outcome
				missing.Dropped[queue.Damage] = uint64(r.IntN(2))
				total += samples + missing.Sum()
				m := markAt(uint64(len(n.marks)+1), total)
				if seq := p.Begin(m, samples, missing); seq != uint64(len(n.marks)+1) {
					t.Fatalf("sequence number %d for entry %d", seq, len(n.marks)+1)
				}
				n.marks, n.open, n.out = append(n.marks, m), append(n.open, samples), append(n.out, missing)
			case 1, 2:
				if n.left == len(n.marks) {
					continue
				}
				i := n.left + r.IntN(len(n.marks)-n.left)
				k := uint64(r.IntN(int(n.open[i]) + 1))
				var o queue.Outcome
				switch r.IntN(3) {
				case 0:
					o.Delivered = k
				case 1:
					o.Filtered = k
				default:
					o.Dropped[queue.Rejected] = k
				}
				n.open[i] -= k
				n.out[i].Add(o)
				mustDone(t, p, uint64(i+1), o)
			default:
				m, o, ok := p.Pop()
				wm, wo, wok := n.pop()
				if m != wm || o != wo || ok != wok {
					t.Fatalf("Pop = %v %v %v, model says %v %v %v", m, o, ok, wm, wo, wok)
				}
				if ok {
					popped += o.Sum()
					if popped != m.Total {
						t.Fatalf("%d samples accounted for at total %d", popped, m.Total)
					}
				}
			}
			var open uint64
			for i := n.left; i < len(n.open); i++ {
				open += n.open[i]
			}
			if p.Open() != open || p.Entries() != len(n.marks)-n.left {
				t.Fatalf("window %s, model has %d open in %d entries", p, open, len(n.marks)-n.left)
			}
		}
	})
}
