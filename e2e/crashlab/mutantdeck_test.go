//go:build linux

package crashlab

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hwsagent/e2e/mutate"
)

// decks are all that the peers of one test play from.
type decks struct {
	seed uint64
	only *regexp.Regexp // of kinds; the others are not played
	not  bool           // those that match are not played
	calm atomic.Bool    // everybody is right

	mu   sync.Mutex
	all  []*deck
	last []string // what was played last, for a person
}

// kindsEnv narrows a run to the kinds whose "deck: name" a regular expression matches, or with
// a ! before it does not match.
const kindsEnv = "HWSAGENT_KINDS"

func newDecks(t *testing.T) *decks {
	t.Helper()
	text, not := strings.CutPrefix(os.Getenv(kindsEnv), "!")
	only, err := regexp.Compile(text)
	if err != nil {
		t.Fatalf("%s: %v", kindsEnv, err)
	}
	d := &decks{seed: seed(t), only: only, not: not}
	d.calm.Store(true)
	return d
}

// deck deals the kinds of one sort of peer: each once, in an order determined by the seed, then again in another order.
// The n-th kind depends on the seed, its name and n, whichever peer plays it.
type deck struct {
	of   *decks
	name string

	mu    sync.Mutex
	names []string // of the kinds that are played, in the order of the list
	n     int
	order []int // of names, what is left of it
	fired map[string]int
}

// add returns a deck, or returns the one of that name.
func (d *decks) add(name string, kinds []mutate.Kind) *deck {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(d.all, func(one *deck) bool { return one.name == name }); i >= 0 {
		return d.all[i]
	}
	one := &deck{of: d, name: name, fired: map[string]int{}}
	for _, k := range kinds {
		if d.only.MatchString(name+": "+k.Name) != d.not {
			one.names = append(one.names, k.Name)
		}
	}
	d.all = append(d.all, one)
	return one
}

// deal returns the next script of a list of kinds like the one that the deck was made with; ok is
// false when it is the turn of what is right. It counts as fired: call it when the agent waits
// for the script, or begins to read.
func (d *deck) deal(peer string, kinds []mutate.Kind) (s mutate.Script, ok bool) {
	d.mu.Lock()
	if d.of.calm.Load() || len(d.names) == 0 {
		d.mu.Unlock()
		return s, false
	}
	n := d.n
	d.n++
	h := fnv.New64a()
	fmt.Fprint(h, d.name, n)
	rnd := rand.New(rand.NewPCG(d.of.seed, h.Sum64()))
	if rnd.IntN(8) == 0 { // now and then one is right, so that there is something to lose
		d.mu.Unlock()
		return s, false
	}
	if len(d.order) == 0 {
		d.order = rnd.Perm(len(d.names))
	}
	name := d.names[d.order[0]]
	d.order = d.order[1:]
	d.fired[name]++
	d.mu.Unlock()

	d.of.note(fmt.Sprintf("%s %s #%d by %s: %s", time.Now().Format("15:04:05.000"), d.name, n, peer, name))
	i := slices.IndexFunc(kinds, func(k mutate.Kind) bool { return k.Name == name })
	return kinds[i].Make(rnd), true
}

// dealt reports whether each kind had its turn.
func (d *decks) dealt() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.all {
		one.mu.Lock()
		n, kinds := len(one.fired), len(one.names)
		one.mu.Unlock()
		if n < kinds {
			return false
		}
	}
	return true
}

// note remembers the last things that were played.
func (d *decks) note(line string) {
	const most = 400
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = append(d.last, line)
	if len(d.last) > 2*most {
		d.last = slices.Clone(d.last[most:])
	}
}

// played returns what was played last.
func (d *decks) played(n int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.last[max(0, len(d.last)-n):], "\n")
}

// report fails the test for each kind that has not fired, and says how often each deck was
// played.
func (d *decks) report(t *testing.T) (fired, kinds int) {
	t.Helper()
	d.mu.Lock()
	all := slices.Clone(d.all)
	d.mu.Unlock()
	for _, one := range all {
		one.mu.Lock()
		least, most := math.MaxInt, 0
		for _, name := range one.names {
			fired += one.fired[name]
			least, most = min(least, one.fired[name]), max(most, one.fired[name])
		}
		left := slices.DeleteFunc(slices.Clone(one.names), func(name string) bool { return one.fired[name] > 0 })
		if len(left) > 0 {
			t.Errorf("%s: %d of %d kinds have not fired in %d turns: %q", one.name, len(left), len(one.names), one.n, left)
		}
		kinds += len(one.names)
		t.Logf("%s: %d turns, %d kinds, each %d to %d times", one.name, one.n, len(one.names), least, most)
		one.mu.Unlock()
	}
	return fired, kinds
}
