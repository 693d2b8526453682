package remotewrite

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/value"

	"hwsagent/remotewrite/client"
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
		if !q.refusals.due(fmt.Sprint(l.Status, l.Reason), l.Text, time.Now()) {
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

// letterLabels returns the labels of a series as they appear in a letter.
func (s *series) letterLabels() string { return s.labels().String() }

// same reports whether q is the same sample of the log.
func (p point) same(q point) bool {
	return q.series == p.series && q.seq == p.seq && q.t == p.t && q.kind == p.kind && q.aux == p.aux && math.Float64bits(q.v) == math.Float64bits(p.v)
}
