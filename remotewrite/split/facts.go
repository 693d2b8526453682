package split

import (
	"sync"
	"time"
)

// Facts are the facts about one target that its batches have shown. The zero Facts is ready. Safe for concurrent use.
type Facts struct {
	mu            sync.Mutex
	contradictory time.Time             // until then refusals count as failures
	bare          time.Time             // until then requests carry no exemplars and metadata
	provenOf      map[string]int        // samples proven bad, by the database's words
	newOf         map[string]sets       // new series proven bad, by words, since a new series was taken
	failedLike    map[failure]time.Time // when samples were given up after failures
	asks          int                   // how often samples were asked because there was no control
	tooOld        bool                  // the last part that was too old was so as a whole
	oddUntil      time.Time             // until then the receiver's bound may be wrong; zero: no fresh sample was too old since a sample was taken
	limit         int                   // most samples of a request; 0: any number
	limitUntil    time.Time             // then it doubles
	failedWhole   int                   // size of the smallest part of the last failing batch whose halves passed at once; 0: none
}

type sets map[uint64]bool

// failure is what failing samples have in common: the type of their values, or the receiver's words.
type failure struct {
	typed bool
	typ   uint8
	words string
}

const (
	contradictoryFor = time.Hour
	bareFor          = time.Hour
	rememberFor      = time.Hour // the kind or the words of a sample that was given up
	enough           = 8         // proofs of one reason after which one refusal proves
	minLimit         = 100       // samples; a request is never limited to fewer
	limitFor         = time.Hour

	// A sample that is younger than freshAge is too old only if a control is taken: the receiver's bound may be wrong, for example because
	// another sender is ahead. Once such a sample was refused, the same holds for an hour for samples younger than an hour.
	freshAge = 5 * time.Minute
	oddFor   = time.Hour
)

// Contradictory reports whether refusals count as failures, because the target took a sample that it had refused, or refused a
// control.
func (f *Facts) Contradictory(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return now.Before(f.contradictory)
}

func (f *Facts) contradicted(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.contradictory = now.Add(contradictoryFor)
	f.provenOf, f.newOf = nil, nil
}

// Bare reports whether requests must carry no exemplars and metadata.
func (f *Facts) Bare(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return now.Before(f.bare)
}

func (f *Facts) tookBare(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bare = now.Add(bareFor)
}

// known reports whether so many samples were proven bad for the reason that one refusal alone proves.
func (f *Facts) known(words string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.provenOf[words] >= enough
}

// proved records a sample proven bad in the database's words. It reports whether all new series of the batch are to be muted.
func (f *Facts) proved(words string, series uint64, isNew bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.provenOf == nil {
		f.provenOf, f.newOf = make(map[string]int), make(map[string]sets)
	}
	f.provenOf[words]++
	of := f.newOf[words]
	if isNew && len(of) < enough {
		if of == nil {
			of = make(sets)
			f.newOf[words] = of
		}
		of[series] = true
	}
	return isNew && len(of) >= enough
}

// crowded reports whether new series are muted for the reason.
func (f *Facts) crowded(words string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.newOf[words]) >= enough
}

// Crowded reports whether new series are muted together: they then go in requests of their own.
func (f *Facts) Crowded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.newOf {
		if len(of) >= enough {
			return true
		}
	}
	return false
}

// TookNew records that a sample of a new series was taken.
func (f *Facts) TookNew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.newOf)
}

// gaveUp reports whether a sample of the type, or with the words, was given up within the last hour.
func (f *Facts) gaveUp(typ uint8, words string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, like := range alike(typ, words) {
		if at, ok := f.failedLike[like]; ok && now.Sub(at) < rememberFor {
			return true
		}
	}
	return false
}

func (f *Facts) giveUp(typ uint8, words string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failedLike == nil || len(f.failedLike) > 100 { // words may have numbers
		f.failedLike = make(map[failure]time.Time)
	}
	for _, like := range alike(typ, words) {
		f.failedLike[like] = now
	}
}

// alike returns what a failure has in common with others. Floats are the usual type: they have nothing in common.
func alike(typ uint8, words string) (all []failure) {
	if typ != 0 {
		all = append(all, failure{typed: true, typ: typ})
	}
	if words != "" {
		all = append(all, failure{words: words})
	}
	return all
}

// nextAsk returns how often samples were asked before, because there was no control: others are asked each time.
func (f *Facts) nextAsk() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks++
	return f.asks - 1
}

// TooOld reports whether the last batch was too old as a whole: the next one asks its newest samples first.
func (f *Facts) TooOld() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tooOld
}

func (f *Facts) old(is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tooOld = is
}

// mayNotBeOld reports whether a sample of that age in ms may have been refused as too old because the receiver's bound is wrong. After a
// cut the control is as old as the samples: if each needed a control, none would be taken before fresh ones at a receiver with a short window.
func (f *Facts) mayNotBeOld(age int64, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh := age < freshAge.Milliseconds()
	if fresh && f.oddUntil.IsZero() {
		f.oddUntil = now.Add(oddFor)
	}
	return fresh || age < oddFor.Milliseconds() && now.Before(f.oddUntil)
}

// Limit returns how many samples a request may have, at most most.
func (f *Facts) Limit(most int, now time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.limit > 0 && !now.Before(f.limitUntil) {
		f.limit, f.limitUntil = 2*f.limit, f.limitUntil.Add(limitFor)
		if f.limit >= most {
			f.limit = 0
		}
	}
	if f.limit == 0 {
		return most
	}
	return min(most, f.limit)
}

// Lower limits requests to n samples for an hour.
func (f *Facts) Lower(n int, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.limit == 0 || f.limit > n {
		f.limit = n
	}
	f.limitUntil = now.Add(limitFor)
}

// Took records that a request with n samples was taken at once: so many are not too many.
func (f *Facts) Took(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.oddUntil = time.Time{}
	if n >= f.failedWhole {
		f.failedWhole = 0
	}
}

// passedInHalves records the size n of the smallest part of a failing batch whose halves were both taken at once; 0: there is none. Two
// batches in a row with such a part show that the receiver fails at n samples, whatever they are.
func (f *Facts) passedInHalves(n int, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n == 0 || f.failedWhole == 0 {
		f.failedWhole = n
		return
	}
	f.limit, f.limitUntil = max((n+1)/2, minLimit), now.Add(limitFor)
	f.failedWhole = 0
}
