package split

import (
	"sync"
	"sync/atomic"
	"time"
)

// Mutes hold the series that a target does not get at present. The zero Mutes is ready. Safe for concurrent use.
type Mutes struct {
	any    atomic.Bool
	mu     sync.Mutex
	series map[uint64]muted
	about  map[Reason]*reason
}

// Reason is why series are muted.
type Reason struct {
	Name   string // a key
	Text   string // the same for people
	Failed bool   // the receiver failed at them: their samples are unconfirmed, and not rejected
}

type muted struct {
	about *reason
	met   int64 // when a sample of the series last came, in seconds since the epoch
}

// reason is the state of one reason.
type reason struct {
	Muted
	due   time.Time // of the next probe
	group int       // probes in the present group; it doubles while all are taken
	left  int       // of the group that were not sent
	taken int       // of the group
}

// Muted describes the series muted for one reason.
type Muted struct {
	Reason  Reason
	Words   string // the receiver's last words
	Series  int
	Example string // labels of one of them
	Since   time.Time
	Samples uint64 // that were not delivered, so far
}

// Fate is what becomes of a sample of a series.
type Fate uint8

// The fates.
const (
	Deliver Fate = iota // the series is not muted
	Drop                // with the outcome of the reason
	Probe               // send it alone, and tell the result to Probed
)

const (
	probeEvery  = time.Minute
	forgetAfter = time.Hour // a muted series without samples
	firstProbes = 3         // at once, of a series at which the receiver failed
)

// Any reports whether any series is muted.
func (m *Mutes) Any() bool { return m.any.Load() }

// Has reports whether a series is muted.
func (m *Mutes) Has(series uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, is := m.series[series]
	return is
}

// Put mutes a series. example is called for the first series of a reason.
func (m *Mutes) Put(series uint64, why Reason, words string, example func() string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.series == nil {
		m.series, m.about = make(map[uint64]muted), make(map[Reason]*reason)
	}
	if _, ok := m.series[series]; ok {
		m.remove(series)
	}
	about := m.about[why]
	if about == nil {
		about = &reason{Muted: Muted{Reason: why, Example: example(), Since: now}, due: now.Add(probeEvery), group: 1}
		m.about[why] = about
	}
	if why.Failed {
		about.left = firstProbes // one sample may be why the receiver failed, and the next one be good
	}
	about.Words = words
	about.Series++
	about.Samples++
	m.series[series] = muted{about, now.Unix()}
	m.any.Store(true)
}

// Meet decides about the next sample of a series.
func (m *Mutes) Meet(series uint64, now time.Time) (Fate, Reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.series[series]
	if !ok {
		return Deliver, Reason{}
	}
	about := s.about
	m.series[series] = muted{about, now.Unix()}
	switch {
	case about.left > 0:
		about.left--
		return Probe, about.Reason
	case !now.Before(about.due):
		about.due, about.group, about.taken = now.Add(probeEvery), 1, 0
		return Probe, about.Reason
	}
	about.Samples++
	return Drop, about.Reason
}

// Probed records the answer to a probe: its kind, Failed if it shows nothing.
func (m *Mutes) Probed(series uint64, k Kind, words string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.series[series]
	if !ok {
		return
	}
	about := s.about
	switch {
	case k == Taken:
		if about.taken++; about.taken >= about.group {
			about.group, about.taken = 2*about.group, 0
			about.left = about.group
		}
		m.remove(series)
		return
	case k != Failed:
		about.left, about.group, about.taken = 0, 1, 0
		about.due, about.Words = now.Add(probeEvery), words
	}
	about.Samples++
}

// remove forgets a series. The caller holds m.mu.
func (m *Mutes) remove(series uint64) {
	about := m.series[series].about
	delete(m.series, series)
	if about.Series--; about.Series == 0 {
		delete(m.about, about.Reason)
	}
	m.any.Store(len(m.series) > 0)
}

// Sweep forgets the series that have no samples any more.
func (m *Mutes) Sweep(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for series, s := range m.series {
		if now.Unix()-s.met > int64(forgetAfter/time.Second) {
			m.remove(series)
		}
	}
}

// Forget releases all series.
func (m *Mutes) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.series)
	clear(m.about)
	m.any.Store(false)
}

// List describes the muted series, one element per reason, in no order.
func (m *Mutes) List() (all []Muted) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, about := range m.about {
		all = append(all, about.Muted)
	}
	return all
}
