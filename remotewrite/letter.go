package remotewrite

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/value"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/givenup"
	"hwsagent/wal/queue"
)

// letterOf creates the dead letter of a refused sample, which stands for n samples.
func letterOf(p point, n int, a client.Answer, why queue.Reason) Letter {
	l := Letter{
		Time:      time.Now(),
		Series:    p.series.letterLabels(),
		Timestamp: p.t,
		Value:     valueOf(p),
		Reason:    why.String(),
		Status:    a.Status,
		Text:      a.Text,
	}
	if a.Err != nil {
		l.Text = a.Err.Error()
	}
	if n != 1 {
		l.Samples = n
	}
	return l
}

// valueOf formats the value so that its kind is recognisable: a stale marker is a NaN, too.
func valueOf(p point) string {
	switch {
	case p.kind == intHistogram:
		return p.aux.h.String()
	case p.kind == floatHistogram:
		return p.aux.fh.String()
	case value.IsStaleNaN(p.v):
		return "stale"
	}
	return strconv.FormatFloat(p.v, 'g', -1, 64)
}

// keep puts letters into the store. The samples are refused for good even if the store fails, and a full disk must not
// stop the delivery of others: a letter that cannot be stored is logged in full.
func (q *Queue) keep(letters ...Letter) {
	q.metrics.Letters(len(letters))
	for _, l := range letters {
		if !q.refusals.Due(fmt.Sprint(l.Status, l.Reason), l.Text, time.Now()) {
			continue
		}
		q.log.Warn("The receiver refuses a sample", slog.String("series", l.Series), slog.Int("status", l.Status),
			slog.String("text", l.Text), slog.String("reason", l.Reason), slog.Int("samples", max(l.Samples, 1)))
	}
	err := errors.New("there is none")
	if q.letters != nil {
		err = q.letters.Put(letters)
	}
	if err == nil {
		return
	}
	q.log.Error("Cannot keep dead letters", slog.Any("err", err))
	for _, l := range letters {
		q.log.Error("A dead letter", slog.Any("letter", l))
	}
}

// recall learns from the letters of earlier processes which samples they gave up. A letter for several samples does not
// say which.
func (l *lane) recall() {
	if l.letters == nil {
		return
	}
	letters, err := l.letters.List()
	if err != nil {
		l.log.Warn("Cannot read the dead letters: samples that were given up before the start may be sent again", slog.Any("err", err))
	}
	var gone []givenup.Letter
	for i := range letters {
		x := &letters[i]
		for _, why := range [...]queue.Reason{queue.Rejected, queue.Unconfirmed} {
			if x.Reason == why.String() && x.Samples <= 1 {
				gone = append(gone, givenup.Letter{Series: x.Series, T: x.Timestamp, Why: why})
			}
		}
	}
	l.givenUp.Recall(gone)
}

// letterLabels returns the labels of a series as they appear in a letter.
func (s *series) letterLabels() string { return s.labels().String() }

// inLogOrder sorts points by entry and keeps the order within each.
func inLogOrder(points []point) []point {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.seq, b.seq) })
	return points
}

// without returns the points less one that is the same as p: a commit may have several such samples.
func without(points []point, p point) []point {
	if i := slices.IndexFunc(points, p.same); i >= 0 {
		return slices.Delete(slices.Clone(points), i, i+1)
	}
	return points
}

// same reports whether q is the same sample of the log.
func (p point) same(q point) bool {
	return q.series == p.series && q.seq == p.seq && q.t == p.t && q.kind == p.kind && q.aux == p.aux && math.Float64bits(q.v) == math.Float64bits(p.v)
}
