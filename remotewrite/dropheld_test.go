package remotewrite

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
)

// TestDropDropsAfterTrouble: with on_refusal: drop, samples that the receiver answers with a 4xx other than 429 are dropped and counted,
// whatever came before: lost answers, a restart, or a redirect that held the target. The target was held for ever.
func TestDropDropsAfterTrouble(t *testing.T) {
	for _, empty := range []bool{false, true} {
		for _, long := range []int{0, 30} {
			for _, status := range []int{400, 403, 413, 404} {
				for name, trouble := range map[string]client.Answer{"answers lost, restart": {Err: errors.New("connection reset")}, "redirect": {Status: 302}, "lost": {Err: errors.New("connection reset")}} {
					t.Run(fmt.Sprintf("%s,%d,empty=%t,long=%d", name, status, empty, long), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							var answer *client.Answer
							all := false
							r := newRig(t, &fakeReceiver{latency: time.Millisecond, script: func(q fakeRequest) (client.Answer, bool) {
								if answer == nil || len(q.samples) == 0 && empty && !all {
									return client.Answer{}, false
								}
								return *answer, true
							}})
							r.cfg.Target.OnRefusal, r.cfg.Metadata.Send = config.RefusalDrop, false
							r.start()
							rounds := func(n int) {
								for range n {
									r.round(10)
									time.Sleep(5 * time.Second)
								}
							}
							rounds(3)
							r.to.set(func() { answer, all = &trouble, true })
							rounds(long)
							rounds(3)
							if name == "answers lost, restart" {
								r.end()
							}
							r.to.set(func() { answer, all = &client.Answer{Status: status, Text: "no"}, false })
							if name == "answers lost, restart" {
								r.start()
							}
							rounds(300) // 25 minutes
							if n, st := r.log.pending(), r.q.Status(); n > 20 {
								t.Errorf("%d of %d samples wait; %s: %s; outcomes %+v", n, r.log.Head().Total, st.State, st.Why, r.log.outcome())
							}
							r.end()
						})
					})
				}
			}
		}
	}
}
