package remotewrite

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// TestDropNeverSendsA400AgainAs1: with on_refusal: drop and protobuf_message set to 2.0, samples are never sent again
// as 1.0 after a 400: the specification allows that for 415 alone. auto asks for 1.0 where 2.0 is not accepted, so
// there it is tried once.
func TestDropNeverSendsA400AgainAs1(t *testing.T) {
	for message, want := range map[string]int{config.MessageV2: 0, config.MessageAuto: 1} {
		t.Run(message, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) { return client.Answer{Status: 400, Text: "no"}, true }})
				r.cfg.ProtobufMessage, r.cfg.Target.OnRefusal, r.cfg.Metadata.Send = message, config.RefusalDrop, false
				r.start()
				for range 5 {
					r.round(10)
					time.Sleep(5 * time.Second)
				}
				r.drained(time.Minute)
				r.end()
				older := 0
				for _, q := range r.to.log() {
					if q.version == wire.V1 && len(q.samples) > 0 {
						older++
					}
				}
				if older != want {
					t.Errorf("%d requests with samples as 1.0, want %d\n%s", older, want, r.to.dump())
				}
				if o := r.log.outcome(); o.Dropped[queue.Rejected] != 50 {
					t.Errorf("outcomes %+v", o)
				}
			})
		})
	}
}

// TestRefusalsAreLoggedOnceAMinute: refusals for the same reason are logged once a minute; another reason is logged at
// once.
func TestRefusalsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		text := "series limit of 5000 is reached"
		r := newRig(t, &fakeReceiver{script: func(q fakeRequest) (client.Answer, bool) {
			return client.Answer{Status: 400, Text: fmt.Sprintf("%s: request %d", text, q.n)}, true
		}})
		r.cfg.Target.OnRefusal = config.RefusalDrop
		r.logger = slog.New(slog.NewTextHandler(&log, nil))
		r.start()
		for range 30 { // five minutes
			r.round(10)
			time.Sleep(10 * time.Second)
		}
		r.to.set(func() { text = "invalid label" })
		r.round(10)
		r.drained(time.Minute)
		r.end()
		if n := strings.Count(log.String(), "series limit"); n < 4 || n > 6 {
			t.Errorf("logged %d times in five minutes\n%s", n, log.String())
		}
		if n := strings.Count(log.String(), "invalid label"); n != 1 {
			t.Errorf("the new reason was logged %d times", n)
		}
		if n := len(r.letters.all()); n != 31 {
			t.Errorf("%d letters, want 31", n)
		}
	})
}
