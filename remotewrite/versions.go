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
	"hwsagent/remotewrite/split"
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
	if !q.proto.Newer() {
		return protocol.Choice{}
	}
	failures := l.failures
	if l.triedOlder { // the target refused 1.0: further failures are no reason to try that again
		failures = 0
	}
	return q.proto.Choose(l.older, q.allCarried(l.points), failures)
}

// mayTryOlder reports whether a parcel may have been refused because the target cannot read it. "Senders SHOULD expect
// 400 HTTP Bad Request for the above reasons from 1.x Receivers" (remote write 2.0, "Protocol"). A target that reports
// how much it wrote, or whose database says that a sample is late, has read it.
func (q *Queue) mayTryOlder(l *parcel, a client.Answer) bool {
	return a.Version == wire.V2 && !a.Written.Known && !a.AboutTime() && !l.triedOlder && q.allCarried(l.points)
}

// tryOlder makes the next attempt use 1.0.
func (l *parcel) tryOlder() { l.older, l.triedOlder = true, true }

// judgeVersion is the part of judge that concerns the version. If done, p was given back, and delivered says whether the
// samples have their outcome.
func (s *shard) judgeVersion(p gate.Pass, l *parcel, a client.Answer, m mode, c protocol.Choice) (delivered, done bool) {
	g, q := s.q.gate, s.q
	v := a.Verdict
	switch {
	case v == client.Older && a.Status/100 == 2:
		// The queue fell back when the answer came. Headers may have been lost in transit.
		l.unsure = true
		g.Release(p)
		return false, true
	case v == client.Older && (q.proto.TakesOlder() || q.drops()):
		g.Release(p)
	case v == client.Older:
		// If the target answers this to everything, it proves nothing.
		if !s.refusalIsReal(p, l, a, wire.V1) {
			return false, true
		}
	case c.Trial && a.Status == client.StatusUnsupported:
		l.older, l.triedOlder = false, true // 1.0 itself was refused
		g.Release(p)
		return false, true
	case v == client.Suspect && a.WroteAll():
		s.accepted(l)
		g.Delivered(p)
		return true, true
	case v == client.Suspect && a.WrotePart():
		if q.kind() != split.KeepsGood {
			q.learn(split.KeepsGood)
		}
		return false, false
	case v == client.Suspect && m == patient && q.mayTryOlder(l, a):
		if s.refusalIsReal(p, l, a, wire.V1) && !l.triedOlder {
			l.tryOlder()
		}
		return false, true
	case v == client.Suspect && m == parts && !q.proto.IsProven() && q.mayTryOlder(l, a),
		v == client.Discard && q.cfg.ProtobufMessage == config.MessageAuto && m == patient && !q.proto.IsProven() && a.Status == http.StatusBadRequest && q.mayTryOlder(l, a) && q.proto.SpendTry():
		l.tryOlder()
		g.Release(p)
		return false, true
	default:
		return false, false
	}
	if why, fellBack := q.proto.FallBack(a); fellBack {
		q.fellBack(why)
	}
	return false, true
}

// discard gives up samples after a 4xx that has no follow-up. If the target reports how many samples it did not write,
// only that many are given up, and the others count as delivered; it does not report which ones.
func (s *shard) discard(points []point, a client.Answer) {
	samples, delivered := s.withoutExemplars(points), 0
	if a.Version == wire.V2 {
		unwritten := a.Samples - a.Written.Stored(a.Samples)
		delivered = max(len(samples)-unwritten, 0) // some of a backlog were accepted since
	}
	if delivered > 0 && delivered < len(samples) { // the letter is of a sample that the refusal names, if it names one
		samples = namedLast(slices.Clone(samples), a)
	}
	if delivered > 0 {
		s.q.delivered(samples[:delivered], false)
		s.w.settleAll(samples[:delivered], queue.Outcome{Delivered: 1})
	}
	s.bury(samples[delivered:], a, queue.Rejected)
}

// learnVersion learns from an answer which versions the target accepts.
func (q *Queue) learnVersion(c protocol.Choice, a client.Answer, v client.Verdict) {
	why, fellBack := q.proto.Saw(c, a, v)
	if v == client.Older && !q.proto.EmptyTells() {
		q.gate.ForgetEmpty()
	}
	if fellBack {
		q.fellBack(why)
		return
	}
	if v != client.Delivered || a.Version != wire.V2 || a.Samples == 0 || q.proto.Version() == wire.V1 {
		return
	}
	if was := q.toldOlder.Regained(); was != "" {
		q.log.Info("The target accepts remote write 2.0 now", slog.String("before", was))
	}
}

// fellBack logs that 1.0 is in use from now on.
func (q *Queue) fellBack(why string) {
	q.metrics.FellBack()
	_, until := q.proto.Fallback()
	q.log.LogAttrs(context.Background(), q.toldOlder.Lost(why, q.cfg.ProtobufMessage == config.MessageV2), "The target does not accept remote write 2.0; it gets 1.0",
		slog.String("why", why), slog.Time("ask_again_at", until))
}

// sawWritten checks how much a target has written of a request that it accepted. "Receivers MUST NOT return a 2xx HTTP
// status code if any of the pieces of sent data known to the Receiver were NOT written": a target that does so cannot
// say which samples are missing, and some leave out samples that they have already. So the samples count as delivered,
// and the difference is logged.
func (q *Queue) sawWritten(a client.Answer, exemplars int) {
	samples, x := a.Written.Unwritten(a.Samples, exemplars)
	if samples == 0 && x == 0 {
		return
	}
	q.metrics.Unwritten(samples, x)
	if samples == 0 || !q.toldUnwritten.Due(q.sinceBorn()) { // exemplars only: many receivers keep none
		return
	}
	q.log.Warn("The receiver accepted a request and wrote less than was in it", slog.String("answer", a.String()),
		slog.Int("samples", a.Samples), slog.Int("unwritten", samples))
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
