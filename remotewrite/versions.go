package remotewrite

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// carries reports whether a version carries the point.
func carries(c *config.Config, v wire.Version, p *point) bool {
	if v == wire.V2 || p.kind == float || p.kind == exemplarPoint {
		return true
	}
	return c.CarriesHistogram(p.aux.h, p.aux.fh)
}

// allCarried reports whether 1.0 carries all points.
func (q *Queue) allCarried(points []point) bool {
	for i := range points {
		if p := &points[i]; p.kind != float && !carries(&q.cfg, wire.V1, p) {
			return false
		}
	}
	return true
}

// choose returns the version in which a parcel is sent.
func (q *Queue) choose(l *parcel) protocol.Choice {
	c := protocol.Choice{Version: q.proto.Version()}
	if c.Version == wire.V2 && l.older.stage == due {
		c = protocol.Choice{Version: wire.V1, Once: true}
	}
	return c
}

// older is the one attempt of a parcel in 1.0 while 2.0 is in use.
type older struct {
	stage olderStage
	newer client.Answer // to 2.0, because of which it is tried
}

// olderStage is how far that attempt has come.
type olderStage uint8

const (
	untried olderStage = iota
	due                // the next attempt is the one in 1.0
	over               // it was tried, or makes no sense
)

// tryOlder makes the next attempt of a parcel the one in 1.0, after the answer a to 2.0.
func (l *parcel) tryOlder(a client.Answer) { l.older = older{due, a} }

// judgeVersion is the part of judge that concerns the version. If again is set, p was given back, and the parcel is sent
// once more in another version.
func (s *shard) judgeVersion(p gate.Pass, l *parcel, a client.Answer, c protocol.Choice) (again bool) {
	g := s.lane.gate
	if a.Verdict == client.Older && a.Status/100 == 2 {
		l.unsure = true // the headers may have been lost in transit
	}
	switch {
	case a.Verdict == client.Delivered && a.Version == wire.V2:
		s.lane.confirm()
	case c.Once && l.readAsOlder(a):
		s.lane.fallBack(whyOlder(l.older.newer))
	case c.Once && a.Status == client.StatusUnsupported:
		l.older.stage = over // it takes 2.0 only
	case a.Version == wire.V1 && a.Status == client.StatusUnsupported && s.lane.proto.Newer():
		s.lane.proto.Ask() // it takes 2.0 only
		l.older.stage = over
		g.Release(p)
		return true
	case a.Verdict == client.Older && !s.lane.allCarried(l.points): // 1.0 leaves samples out, so it is not tried
		s.lane.fallBack(whyOlder(a))
		g.Release(p)
		return true
	case s.lane.mayBeOlder(l, a):
		l.tryOlder(a)
		g.Release(p)
		return true
	case c.Once && a.Verdict == client.Suspect:
		l.older.stage = over // 1.0 makes no difference: the refusal counts
	}
	return false
}

// readAsOlder reports whether the answer to the attempt in 1.0 shows that the target reads 1.0, and did not read 2.0.
func (l *parcel) readAsOlder(a client.Answer) bool {
	switch a.Verdict {
	case client.Delivered:
		return true
	case client.Suspect, client.Split, client.Discard:
		// It fails at 2.0, and answers 1.0: then it gets 1.0, which loses nothing if the failure had another reason.
		return a.FromDatabase() || a.Status != client.StatusUnsupported && (l.older.newer.Verdict == client.Older || l.older.newer.Status >= 500)
	}
	return false
}

// mayBeOlder reports whether a parcel that was sent as 2.0 is to be sent once as 1.0: the target did not read it, or it may
// not have read it and never confirmed 2.0. A target that reports how much it wrote, or in whose database's words the refusal
// is, has read it.
func (q *Queue) mayBeOlder(l *parcel, a client.Answer) bool {
	switch {
	case a.Version != wire.V2, l.older.stage != untried:
		return false
	case a.Verdict == client.Older:
		return true
	case q.proto.IsConfirmed(), l.role != asBatch, a.Status != http.StatusBadRequest, a.Written.Known, a.FromDatabase(), !q.allCarried(l.points):
		return false
	}
	return a.Verdict == client.Suspect || a.Verdict == client.Discard && q.cfg.ProtobufMessage == config.MessageAuto && q.proto.SpendTry()
}

// olderAfter is the number of 5xx answers to a batch after which it is sent once as 1.0, if 2.0 was never confirmed: some
// receivers fail at messages that they cannot decode.
const olderAfter = 2

// failsAsNewer makes the next attempt of a parcel use 1.0 if it may be the version that the target fails at.
func (q *Queue) failsAsNewer(l *parcel, a client.Answer) {
	if a.Version == wire.V2 && a.Status >= 500 && l.blame.failures >= olderAfter && l.older.stage == untried && !q.proto.IsConfirmed() && q.allCarried(l.points) {
		l.tryOlder(a)
	} else if l.older.stage == due {
		l.older.stage = over
	}
}

// confirm records that the target took samples as 2.0.
func (q *Queue) confirm() {
	q.proto.Confirm()
	if was := q.whyOlder.Regained(); was != "" {
		q.log.Info("The target accepts remote write 2.0 now", slog.String("before", was))
	}
}

// whyOlder says why 1.0 is in use; a is the answer to 2.0.
func whyOlder(a client.Answer) string {
	why := "answers " + a.String() + " to remote write 2.0"
	if a.Status/100 == 2 {
		why += " and writes nothing"
	}
	return why
}

// fallBack makes 1.0 the version in use for an hour.
func (q *Queue) fallBack(why string) {
	if !q.proto.FallBack(why) {
		return
	}
	q.metrics.FellBack()
	_, until := q.proto.Fallback()
	q.log.LogAttrs(context.Background(), q.whyOlder.Lost(why, q.cfg.ProtobufMessage == config.MessageV2), "The target does not accept remote write 2.0; it gets 1.0",
		slog.String("why", why), slog.Time("ask_again_at", until))
}

// discard gives up samples after a 4xx that has no follow-up. If the target reports how many samples it did not write,
// only that many are given up, and the others count as delivered; it does not report which ones.
func (s *shard) discard(points []point, a client.Answer) {
	samples, delivered := withoutExemplars(points), 0
	s.lane.lostExemplars(len(points) - len(samples))
	if a.Version == wire.V2 {
		unwritten := a.Samples - a.Written.Stored(a.Samples)
		delivered = max(len(samples)-unwritten, 0) // some of a backlog were accepted since
	}
	if delivered > 0 {
		s.lane.delivered(samples[:delivered])
		s.w.settleAll(samples[:delivered], queue.Outcome{Delivered: 1})
	}
	s.bury(samples[delivered:], a, queue.Rejected)
}

// placeExemplars moves each exemplar, in place, behind the last sample of its series. On input the exemplars come after
// all samples.
func placeExemplars(points []point) {
	first := slices.IndexFunc(points, func(p point) bool { return p.kind == exemplarPoint })
	if first < 0 {
		return
	}
	at := make(map[*series]int) // the last sample of each series that has an exemplar
	for _, p := range points[first:] {
		at[p.series] = first // there may be none
	}
	for i, p := range points[:first] {
		if _, ok := at[p.series]; ok {
			at[p.series] = i
		}
	}
	exemplars := slices.Clone(points[first:])
	slices.SortStableFunc(exemplars, func(a, b point) int { return cmp.Compare(at[a.series], at[b.series]) })
	placed := make([]point, 0, len(points))
	for i, p := range points[:first] {
		placed = append(placed, p)
		for len(exemplars) > 0 && at[exemplars[0].series] == i {
			placed, exemplars = append(placed, exemplars[0]), exemplars[1:]
		}
	}
	copy(points, append(placed, exemplars...))
}
