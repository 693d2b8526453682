package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
	"hwsagent/wal/queue"
)

// damagePlan is a log of three segments and a last one that stays intact, so that in
// the end everything is accounted for. Its commits are of all sizes up to more than a
// page, most of it filler (a record of unknown type), so that reading it is fast.
func damagePlan(seed uint64, compress byte) *plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &plan{}
	var number, total uint64
	for n, size := range []int{9_000, 2 * segment.PageSize, 9_000, 0} {
		s := segmenttest.New(n, ID{9}, number, total)
		s.Compress = compress
		announced := 0
		for i := 0; i == 0 || len(s.B) < size; i++ {
			ts := int64(number+1) * 1000
			var recs [][]byte
			if i%5 == 0 {
				recs = append(recs, segmenttest.Series(segmenttest.Refs(announced, announced+3)...))
				announced += 3
			}
			filler := make([]byte, 1+rng.IntN(3000))
			if n == 1 && i == 7 {
				filler = make([]byte, segment.PageSize+5000)
			}
			for j := range filler {
				if filler[j] = byte(rng.Uint32()); compress != 0 {
					filler[j] &= 3
				}
			}
			filler[0] = 250
			refs := []int{rng.IntN(announced), rng.IntN(announced), rng.IntN(announced)}
			s.Commit(uint64(len(refs)), ts, ts, append(recs, filler, segmenttest.Samples(ts, refs...))...)
			number, total = s.Next.Number, s.Next.Total
			c := plannedCommit{mark: s.Mark(i), segment: n, refs: refs, end: s.Ends[i]}
			if i > 0 {
				c.start = s.Ends[i-1]
			}
			c.mark.Commit, c.mark.Total = number, total
			for _, r := range refs {
				c.samples = append(c.samples, testSampleOf(r, ts))
			}
			if i%5 == 0 {
				c.announces = segmenttest.Refs(announced-3, announced)
			}
			p.commits = append(p.commits, c)
		}
		p.segments = append(p.segments, s)
	}
	return p
}

// readThrough reads the whole log from the beginning, as far as there is something to read,
// and checks the arithmetic on the way.
func readThrough(t testing.TB, l *fakeLog) (entries map[uint64][]testSample, missing queue.Outcome) {
	t.Helper()
	c := newSilentCursor(l)
	defer c.close()
	entries = map[uint64][]testSample{}
	head := l.head()
	for {
		last := c.last
		e, err := c.next(head)
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return entries, missing
		}
		if e.End.Commit <= last.Commit {
			t.Fatalf("commit %d after %d", e.End.Commit, last.Commit)
		}
		if got := e.Count() + e.Missing.GivenUp(); e.End.Total-last.Total != got {
			t.Fatalf("commit %d: totals differ by %d, the entry accounts for %d", e.End.Commit, e.End.Total-last.Total, got)
		}
		entries[e.End.Commit] = testSamples(e)
		missing.Add(e.Missing)
	}
}

// checkDamage compares what was read from a damaged log with what was written. touched
// says which commits the damage may have touched. It returns how many samples were
// counted as lost, which are exactly those that are missing.
func checkDamage(t testing.TB, p *plan, l *fakeLog, what string, touched func(c plannedCommit) bool) uint64 {
	t.Helper()
	got, missing := readThrough(t, l)
	var lost uint64
	for i, c := range p.commits {
		samples, ok := got[c.mark.Commit]
		delete(got, c.mark.Commit)
		lost += uint64(len(c.samples) - len(samples))
		if !ok {
			if !touched(c) {
				t.Fatalf("%s: commit %d (segment %d, %d..%d) is missing and was not touched", what, i, c.segment, c.start, c.end)
			}
			continue
		}
		if slices.Equal(samples, c.samples) {
			continue
		}
		var want []testSample
		for j, s := range c.samples {
			orphan := slices.ContainsFunc(p.commits, func(a plannedCommit) bool {
				return a.segment == c.segment && slices.Contains(a.announces, c.refs[j]) && touched(a)
			})
			if !orphan || slices.Contains(samples, s) {
				want = append(want, s)
			}
		}
		if !slices.Equal(samples, want) {
			t.Fatalf("%s: commit %d: got %v, want %v", what, i, samples, want)
		}
	}
	if len(got) > 0 {
		t.Fatalf("%s: commits that were never written: %v", what, got)
	}
	if missing.GivenUp() != lost || missing.Dropped[queue.Damage] != lost {
		t.Fatalf("%s: %d samples are missing, counted: %+v", what, lost, missing)
	}
	return lost
}

// pageOf reports whether a commit touches the pages that hold these bytes of a segment.
func pageOf(number int, from, to int64) func(c plannedCommit) bool {
	first, last := from/segment.PageSize*segment.PageSize, (to-1)/segment.PageSize*segment.PageSize+segment.PageSize
	return func(c plannedCommit) bool { return c.segment == number && c.start < last && c.end > first }
}

// Whichever byte is damaged, at most the commits that touch its page are lost, and
// what refers to series announced there.
func TestFlipEveryByte(t *testing.T) {
	oneGoroutine(t)
	t.Parallel()
	t.Run("plain", func(t *testing.T) { flipBytes(t, damagePlan(11, 0), 5) })
	t.Run("snappy", func(t *testing.T) { flipBytes(t, damagePlan(11, segment.FlagSnappy), 23) })
}

func flipBytes(t *testing.T, p *plan, step int) {
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	l := p.log()
	step = thinned(step)
	harmed := 0
	for n := range 3 {
		whole := l.files[n]
		b := bytes.Clone(whole)
		l.files[n] = b
		for i := 0; i < len(b); i += step {
			b[i] ^= 1 << rng.IntN(8)
			if checkDamage(t, p, l, fmt.Sprintf("segment %d, byte %d", n, i), pageOf(n, int64(i), int64(i)+1)) > 0 {
				harmed++
			}
			b[i] = whole[i]
		}
	}
	if harmed == 0 {
		t.Error("no flip did any damage")
	}
	t.Logf("%d flips did damage", harmed)
}

// Wherever a segment is cut off, what lies before is delivered.
func TestTruncateEverywhere(t *testing.T) {
	oneGoroutine(t)
	t.Parallel()
	p := damagePlan(12, 0)
	l := p.log()
	step := thinned(5)
	for n := range 3 {
		whole := l.files[n]
		for size := 0; size < len(whole); size += step {
			l.files[n] = whole[:size]
			checkDamage(t, p, l, fmt.Sprintf("segment %d cut at %d", n, size),
				func(c plannedCommit) bool { return c.segment == n && c.end > int64(size) })
		}
		l.files[n] = whole
	}
}

// Pages that come back as zeros, as another page, or twice are noticed by commit
// numbers and totals.
func TestPagesZeroedSwappedRepeated(t *testing.T) {
	p := damagePlan(13, 0)
	l := p.log()
	page := func(b []byte, i int) []byte { return b[i*segment.PageSize : min((i+1)*segment.PageSize, len(b))] }
	const n = 1
	whole := bytes.Clone(l.files[n])
	pages := len(whole) / segment.PageSize // whole ones
	anywhere := func(c plannedCommit) bool { return c.segment == n }
	for i := range pages {
		at := pageOf(n, int64(i*segment.PageSize), int64(i+1)*segment.PageSize)
		l.files[n] = bytes.Clone(whole)
		clear(page(l.files[n], i))
		if checkDamage(t, p, l, fmt.Sprintf("page %d zeroed", i), at) == 0 {
			t.Errorf("page %d zeroed: nothing is missing", i)
		}
		// A hole within a page.
		l.files[n] = bytes.Clone(whole)
		clear(page(l.files[n], i)[1000:9000])
		if checkDamage(t, p, l, fmt.Sprintf("page %d with a hole", i), at) == 0 {
			t.Errorf("page %d with a hole: nothing is missing", i)
		}
		if info, err := segment.Scan(bytes.NewReader(l.files[n]), n, int64(len(whole))); err != nil || info.Damaged < 20_000 {
			t.Errorf("page %d with a hole: %d bytes count as damaged, %v", i, info.Damaged, err)
		}
		for j := range pages {
			l.files[n] = bytes.Clone(whole)
			copy(page(l.files[n], j), page(whole, i))
			checkDamage(t, p, l, fmt.Sprintf("page %d also at %d", i, j), pageOf(n, int64(j*segment.PageSize), int64(j+1)*segment.PageSize))

			l.files[n] = slices.Concat(whole[:j*segment.PageSize], page(whole, i), whole[j*segment.PageSize:])
			checkDamage(t, p, l, fmt.Sprintf("page %d inserted at %d", i, j), anywhere)

			l.files[n] = bytes.Clone(whole)
			copy(page(l.files[n], i), page(whole, j))
			copy(page(l.files[n], j), page(whole, i))
			other := pageOf(n, int64(j*segment.PageSize), int64(j+1)*segment.PageSize)
			checkDamage(t, p, l, fmt.Sprintf("pages %d and %d swapped", i, j), func(c plannedCommit) bool { return at(c) || other(c) })
		}
	}
}

// Damage to a commit record, or to a record of a commit that announces nothing, costs
// that commit alone: its series are known, and the reader tells the next commit from its
// remains.
func TestDamagedRecord(t *testing.T) {
	t.Run("commit record", func(t *testing.T) {
		damageRecords(t, func(c plannedCommit) int64 { return c.end - 1 })
	})
	t.Run("other record", func(t *testing.T) {
		damageRecords(t, func(c plannedCommit) int64 { return c.end - 150 }) // in the filler
	})
}

func damageRecords(t *testing.T, where func(c plannedCommit) int64) {
	p := damagePlan(17, 0)
	l := p.log()
	for i, c := range p.commits {
		b := bytes.Clone(l.files[c.segment])
		if c.end-c.start < 800 {
			continue // there is no filler to speak of
		}
		b[where(c)] ^= 0xff
		whole := l.files[c.segment]
		l.files[c.segment] = b
		got, missing := readThrough(t, l)
		l.files[c.segment] = whole
		if i == len(p.commits)-1 {
			continue // nothing follows that could show it
		}
		if len(got) != len(p.commits)-1 || missing.Dropped[queue.Damage] != uint64(len(c.samples)) {
			t.Fatalf("commit %d: %d of %d commits are left, missing %+v", i, len(got), len(p.commits), missing)
		}
		for _, other := range p.commits {
			if other.mark != c.mark && !slices.Equal(got[other.mark.Commit], other.samples) {
				t.Fatalf("commit %d: harm to commit %d", i, other.mark.Commit)
			}
		}
	}
}

// A missing segment is legal: the loss is counted, the rest is delivered.
func TestMissingSegment(t *testing.T) {
	p := damagePlan(14, 0)
	for n := range 3 {
		l := p.log()
		delete(l.files, n)
		lost := checkDamage(t, p, l, fmt.Sprintf("segment %d missing", n), func(c plannedCommit) bool { return c.segment == n })
		var want uint64
		for _, c := range p.commits {
			if c.segment == n {
				want += uint64(len(c.samples))
			}
		}
		if lost != want {
			t.Errorf("segment %d missing: %d samples are counted as lost, want %d", n, lost, want)
		}
	}
}

// Two segments that changed places, and one that is there twice, yield nothing twice.
func TestSegmentsSwappedAndRepeated(t *testing.T) {
	p := damagePlan(15, 0)
	l := p.log()
	anywhere := func(plannedCommit) bool { return true }
	l.files[0], l.files[2] = l.files[2], l.files[0]
	checkDamage(t, p, l, "segments 0 and 2 swapped", anywhere)
	l = p.log()
	l.files[2] = l.files[1]
	checkDamage(t, p, l, "segment 1 also as 2", func(c plannedCommit) bool { return c.segment == 2 })
}

// Random harm of every kind, several at a time, never stops a reader nor breaks the
// arithmetic.
func TestRandomDamage(t *testing.T) {
	const seed = 16
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := damagePlan(seed, 0)
	for round := range 300 {
		l := p.log()
		for range 1 + rng.IntN(6) {
			n := rng.IntN(3)
			b := bytes.Clone(l.files[n])
			if len(b) < 2 {
				continue
			}
			from := rng.IntN(len(b))
			to := min(len(b), from+1+rng.IntN(5000))
			switch rng.IntN(5) {
			case 0:
				clear(b[from:to])
			case 1:
				for i := from; i < to; i++ {
					b[i] = byte(rng.Uint32())
				}
			case 2:
				b = slices.Delete(b, from, to)
			case 3:
				b = slices.Insert(b, from, b[from:to]...)
			case 4:
				b = b[:from]
			}
			l.files[n] = b
		}
		checkDamage(t, p, l, fmt.Sprintf("round %d", round), func(plannedCommit) bool { return true })
	}
}
