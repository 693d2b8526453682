package snmp

import (
	"log/slog"
	"testing"
	"time"
)

// BenchmarkWalkSnmpd reads all that Net-SNMP's agent has, as fast as it answers.
func BenchmarkWalkSnmpd(b *testing.B) {
	d := startSnmpd(b)
	for name, auth := range map[string]Auth{"v2c": v2(), "v3": sealed} {
		b.Run(name, func(b *testing.B) {
			w, err := NewWalker(Config{Target: d.target("udp"), Auth: auth}, nil, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			w.session.config.MaxRepetitions = 100
			n := 0
			start := time.Now()
			for b.Loop() {
				w.session.tune(walkParams{})
				vars, err := w.Walk(b.Context(), "1.3.6.1.2.1.25.6")
				if err != nil {
					b.Fatal(err)
				}
				n += len(vars)
			}
			b.ReportMetric(float64(n)/time.Since(start).Seconds(), "variables/s")
		})
	}
}
