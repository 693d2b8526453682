package remotewrite

import (
	"context"
	"log/slog"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
)

// This file chooses the compression of requests. Only the first attempt of a batch may use zstd; retries, parts,
// control samples and tests use snappy. So every conclusion about samples comes from an answer to snappy.

// compression returns the compression for the next attempt of the parcel.
func (s *shard) compression(l *parcel, m mode, c protocol.Choice) wire.Compression {
	if m != patient || l.attempts > 0 || l.again || l.withhold || l.stored || c.Version != wire.V1 || c.Trial {
		return wire.Snappy
	}
	return s.q.compression.InUse()
}

// judgePlain gives p back after an answer that says only that the samples must be sent again at once as snappy.
func (s *shard) judgePlain(p gate.Pass, l *parcel, a client.Answer) {
	if a.Status/100 == 2 {
		l.unsure = true // the receiver's header may have been lost in transit
	}
	s.q.gate.Release(p)
}

// learnCompression learns from an answer which compressions the target accepts.
func (q *Queue) learnCompression(a client.Answer) {
	v := a.Verdict
	if why, tookBack := q.compression.Saw(a, v); tookBack {
		q.tookBack(why)
		return
	}
	if a.Compression == wire.Zstd && v == client.Delivered {
		if was := q.toldPlain.Regained(); was != "" {
			q.log.Info("The target accepts zstd again", slog.String("before", was))
		}
	}
}

// passedPlain records that a parcel was delivered as snappy after zstd had failed.
func (q *Queue) passedPlain(failed client.Answer) {
	if why, tookBack := q.compression.PassedPlain(failed); tookBack {
		q.tookBack(why)
	}
}

// tookBack logs that snappy is in use from now on.
func (q *Queue) tookBack(why string) {
	q.metrics.TookBack()
	_, until := q.compression.Fallback()
	q.log.LogAttrs(context.Background(), q.toldPlain.Lost(why, q.cfg.Target.Compression == config.CompressionZstd), "The target gets requests with snappy instead of zstd",
		slog.String("why", why), slog.Time("until", until))
}
