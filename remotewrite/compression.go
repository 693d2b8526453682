package remotewrite

import (
	"log/slog"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
)

// compression returns the compression for the next attempt of the parcel. Only the first attempt of a batch may use zstd:
// so each conclusion about samples comes from an answer to snappy.
func (s *shard) compression(l *parcel, c protocol.Choice) wire.Compression {
	if l.role != asBatch || l.attempts > 0 || c.Version != wire.V1 || c.Once {
		return wire.Snappy
	}
	return s.lane.compression.InUse()
}

// judgePlain gives p back after an answer to zstd that proves nothing about the samples. They are sent again at once as
// snappy, and so are all others from now on.
func (s *shard) judgePlain(p gate.Pass, l *parcel, a client.Answer) {
	why := "answers " + a.String() + " to zstd"
	if a.Status/100 == 2 {
		l.unsure = true // the header may have been lost in transit
		why += ", without the header by which VictoriaMetrics is known"
	}
	s.lane.gate.Release(p)
	s.takeBackZstd(why)
}

// judgeZstd ends the use of zstd for a receiver that fails at it each time: every batch would cost a failure and its pause.
func (s *shard) judgeZstd(l *parcel, a client.Answer) {
	switch {
	case a.Compression == wire.Zstd && a.Verdict == client.Delivered:
		s.lane.compression.Read()
	case a.Compression == wire.Zstd:
		l.choked = a.Status >= 500
	case l.choked && a.Verdict == client.Delivered:
		l.choked = false
		if s.lane.compression.Failed() {
			s.takeBackZstd("fails at zstd each time, and accepts the same samples with snappy")
		}
	}
}

func (s *shard) takeBackZstd(why string) {
	if s.lane.compression.TakeBack(why) {
		s.lane.metrics.TookBack()
		s.lane.log.Warn("The target gets requests with snappy instead of zstd until the next start", slog.String("why", "it "+why))
	}
}
