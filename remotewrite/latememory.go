package remotewrite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math"
	"sync"

	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

// Memory keeps what a queue has to know of the target after a restart. Remember returns
// when b is durable in place of what was kept before; Recall returns it, nil if there is
// nothing.
type Memory interface {
	Remember(b []byte) error
	Recall() ([]byte, error)
}

// lateMemory remembers, over restarts, what the target has of those series of which it
// refused late samples. While the host's clock is behind nothing of them is taken, so what
// was true then is; later it is a lower bound, which is what is known of any series. It is
// not written while nothing is late.
//
// Without it a start in such a time could not tell what was stored from what is late, nor test
// a held target with a sample that it took. Safe for concurrent use.
type lateMemory struct {
	store Memory // nil: nothing outlives the process

	mu     sync.Mutex
	series map[uint64]takenOf // by hash
	taken  *takenSample       // of the earlier process, until its series is seen
	saved  takenSample        // what was saved of this kind last
	dirty  bool
}

// takenOf is the newest sample that the target took of a series.
type takenOf struct {
	t  int64
	in uint64 // the commit that it came in; 0: of an earlier log
}

// takenSample is the newest float sample that the target took at all.
type takenSample struct {
	Hash uint64 `json:"hash"`
	T    int64  `json:"t"`
	Bits uint64 `json:"bits"` // of the value
	// Labels are the series' as remote write 1.0 encodes them: it may never come again.
	Labels []byte `json:"labels"`
}

func (a *takenSample) same(b *takenSample) bool {
	return a.Hash == b.Hash && a.T == b.T && a.Bits == b.Bits
}

// lateFile is the form in which it is kept, followed by a line with its checksum.
type lateFile struct {
	Version int          `json:"version"`
	Log     string       `json:"log"` // whose commits are meant
	Taken   *takenSample `json:"taken,omitempty"`
	Series  []lateSeries `json:"series"`
}

type lateSeries struct {
	Hash   uint64 `json:"hash"`
	T      int64  `json:"t"`
	Commit uint64 `json:"commit"`
}

const (
	lateVersion = 1
	// maxLateSeries bounds the memory; when it is full it begins anew.
	maxLateSeries = 100_000
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// note notes what the target has of the series of late samples.
func (m *lateMemory) note(late []point) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range late {
		s := late[i].series
		is := takenOf{s.newest, s.newestIn}
		if is.t <= noneTakenQuarantined || m.series[s.hash] == is {
			continue
		}
		if m.series == nil || len(m.series) >= maxLateSeries {
			m.series = map[uint64]takenOf{}
		}
		m.series[s.hash], m.dirty = is, true
	}
}

// recall tells a series that is new to this process what the target has of it, and whether
// the sample that the target took last is of this series.
func (m *lateMemory) recall(s *series) (taken *takenSample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if is, ok := m.series[s.hash]; ok {
		s.newest, s.newestIn = is.t, is.in
	}
	if m.taken != nil && m.taken.Hash == s.hash {
		taken, m.taken = m.taken, nil
	}
	return taken
}

// load reads what an earlier process knew. Commits are those of log, if it is the same.
func (m *lateMemory) load(log wal.ID) error {
	if m.store == nil {
		return nil
	}
	b, err := m.store.Recall()
	if err != nil || len(b) == 0 {
		return err
	}
	body, sum, _ := bytes.Cut(b, []byte("\n"))
	if string(sum) != checksum(body) {
		return fmt.Errorf("read what was late: the checksum is wrong")
	}
	var f lateFile
	if err := json.Unmarshal(body, &f); err != nil {
		return fmt.Errorf("read what was late: %w", err)
	}
	if f.Version != lateVersion {
		return fmt.Errorf("read what was late: format version %d, this build reads %d", f.Version, lateVersion)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.series, m.taken = make(map[uint64]takenOf, len(f.Series)), f.Taken
	if f.Taken != nil {
		m.saved = *f.Taken
	}
	for _, s := range f.Series {
		if f.Log != log.String() {
			s.Commit = 0
		}
		m.series[s.Hash] = takenOf{s.T, s.Commit}
	}
	return nil
}

func checksum(body []byte) string { return fmt.Sprintf("%08x\n", crc32.Checksum(body, castagnoli)) }

// save makes durable what is new since the last time. taken, nil if there is none, is new
// all the time: only if still, as nothing is taken for a while and no empty write will tell
// that the target is well, that alone is a reason to save.
func (m *lateMemory) save(log wal.ID, taken *takenSample, still bool) error {
	m.mu.Lock()
	if taken == nil {
		taken = m.taken // its series was not seen yet
	}
	if m.store == nil || !m.dirty && (!still || taken == nil || m.saved.same(taken)) {
		m.mu.Unlock()
		return nil
	}
	if taken != nil {
		m.saved = *taken
	}
	f := lateFile{Version: lateVersion, Log: log.String(), Taken: taken}
	for hash, is := range m.series {
		f.Series = append(f.Series, lateSeries{hash, is.t, is.in})
	}
	m.dirty = false
	m.mu.Unlock()
	b, err := json.Marshal(f)
	if err == nil {
		err = m.store.Remember(append(append(b, '\n'), checksum(b)...))
	}
	if err != nil {
		m.mu.Lock()
		m.dirty = true
		m.mu.Unlock()
	}
	return err
}

// saveLate saves what is known of late series; final says that the queue ends. What fails
// is tried again with the next.
func (q *Queue) saveLate(final bool) {
	q.mu.Lock()
	var taken *takenSample
	if q.hasTaken && q.taken.kind == float {
		taken = &takenSample{q.taken.series.hash, q.taken.t, math.Float64bits(q.taken.v), wire.EncodeLabels(q.taken.series.labels())}
	}
	q.mu.Unlock()
	v := q.gate.View()
	still := !v.EmptyPasses && (final || !v.Since.IsZero())
	reach, _ := q.live.source.Reach()
	if err := q.late.save(reach.Acked.Log, taken, still); err != nil {
		q.log.Warn("Cannot save which series are late: after a start it is found out again", slog.Any("err", err))
	}
}

// recallTaken makes the sample that the target took last one to test with, where 1.0 is all
// that it gets. For 2.0 its series has to be seen first.
func (q *Queue) recallTaken() {
	t := q.late.taken
	if t == nil || q.proto.Newer() || len(t.Labels) == 0 {
		return
	}
	ls, err := wire.DecodeLabels(t.Labels)
	if err != nil {
		q.log.Warn("Cannot read which sample was taken last: another one will be found", slog.Any("err", err))
		return
	}
	s := &series{from: &wal.Series{Labels: ls}, hash: t.Hash}
	s.form, _ = wire.NewForms(wire.V1).Of(ls, ls)
	q.taken, q.hasTaken = point{series: s, t: t.T, v: math.Float64frombits(t.Bits)}, s.form != nil
}

// recallLate tells a series what an earlier process knew of it. The reader calls it before
// any shard sees the series.
func (q *Queue) recallLate(s *series) {
	taken := q.late.recall(s)
	if taken == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.hasTaken || q.taken.t < taken.T {
		q.taken, q.hasTaken = point{series: s, t: taken.T, v: math.Float64frombits(taken.Bits)}, true
	}
}
