//go:build linux

package crashlab

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

// TestInputsSurvive kills the agent while every input is in use: directly after an answer of 2xx, a moment after a
// request was sent, at random, and in its first milliseconds, while the receiver comes and goes. Requests answered with
// 2xx arrive, pushed groups are still there, deleted ones are not, and nothing is there in part.
func TestInputsSurvive(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"1s", "always"} {
		t.Run("sync="+sync, func(t *testing.T) {
			t.Parallel()
			rnd := seeded(t)
			in := newInputs(t, options{wal: "sync: " + sync + ", max_bytes: 256MiB, min_free_bytes: 1MiB", interval: 100 * time.Millisecond}, "")
			in.send()
			kills, long := amount(16, 250), 0
			var lived lives
			answered := map[way]int{}
			for i := 0; i < kills || i < 3*kills && len(in.uncut()) > 0; i++ {
				in.weather(rnd)
				in.start()
				lived = append(lived, struct{ from, to time.Time }{from: time.Now()})
				k := &strike{way: ways()[i/8*3%len(ways())], kill: in.cmd.Process.Kill, fired: make(chan struct{})}
				switch kind := i % 8; {
				case kind < 6 || i >= kills: // three ways each, then the other three
					k.way, k.answered = ways()[(i/8*3+kind%3)%len(ways())], kind < 3
					k.after.Store(1 + rnd.Int64N(15))
					if !k.answered {
						k.delay = time.Duration(rnd.Int64N(int64(time.Millisecond)))
					}
					if i >= kills { // An answer came before each kill that aimed at a request by this way: strike without a delay.
						k.way, k.answered, k.delay = in.uncut()[0], false, 0
					}
					in.ready()
					time.Sleep(between(rnd, 0, 500)) // the fault's own schedule
					in.strike.Store(k)
					select {
					case <-k.fired:
					case <-time.After(20 * time.Second):
						t.Fatalf("no request by %s came to a strike\n%s", k.way, in.tail(20))
					}
					in.strike.Store(nil)
					if k.err != nil {
						t.Fatalf("the agent could not be killed: %v", k.err)
					}
				case kind == 6:
					in.ready()
					long++
					asked := in.teller.asked.Load()
					eventually(t, 30*time.Second, func() string { // which begins some seconds after the start, as Prometheus' own
						if in.teller.asked.Load() == asked {
							return "nothing is scraped"
						}
						return ""
					})
					time.Sleep(between(rnd, 10, 900)) // the fault's own schedule
				default:
					time.Sleep(between(rnd, 0, 120)) // the fault's own schedule
				}
				in.crash()
				lived[i].to = time.Now()
				if s, ok := in.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
					t.Fatalf("the agent ended by itself: %s\n%s", in.cmd.ProcessState, in.tail(20))
				}
				in.offline()
				if k.answered {
					answered[k.way]++
				}
			}
			in.start()
			lived = append(lived, struct{ from, to time.Time }{from: time.Now()})
			in.ready()
			in.acked(3)
			in.quietInputs()
			r, g := in.settle()
			v := in.judge(lived)
			t.Logf("%d kills: directly after a 2xx by %v; %d lives ended with a request that was sent and not answered", len(lived)-1, answered, len(v.cutLives))
			in.holds(v, r, g)
			for _, w := range ways() {
				if answered[w] == 0 {
					t.Errorf("no kill was directly after an answer by %s", w)
				}
				if v.cut[w] == 0 {
					t.Errorf("no kill met a request by %s", w)
				}
			}
			groups := len(v.told[source(in.pusher())])
			for name, least := range map[string]int{"exec": kills / 4, "files": kills / 4, "scraped": long, source(in.pusher()): kills / 4} {
				if n := len(v.told[name]); n < least {
					t.Errorf("%s came from %d of %d lives only", name, n, kills)
				}
			}
			after := 0
			for _, n := range answered {
				after += n
			}
			results.Add(t, results.Line{
				What: "inputs: kill -9 while all ways in are in use, sync " + sync, Count: len(lived) - 1, Lost: v.lost + v.undone + int(r.Missing), Seed: seed(t),
				Figures: v.figures(map[string]float64{
					"directly_after_a_2xx": float64(after), "with_requests_under_way": float64(len(v.cutLives)),
					"grpc_calls_cut": float64(v.cut[byGRPC]), "lives_in_which_a_group_was_shown": float64(groups), "lives_in_which_was_scraped": float64(len(v.told["scraped"])),
				}),
			})
		})
	}
}

// uncut returns the ways by which each request that was sent was also answered: no kill met one of them.
func (in *inputs) uncut() []way {
	return slices.DeleteFunc(ways(), func(w way) bool {
		return slices.ContainsFunc(in.senders, func(s *sender) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.way == w && slices.ContainsFunc(s.said, func(r statement) bool { return r.written && r.answer.status == 0 })
		})
	})
}

// pusher returns a sender of the pushgateway.
func (in *inputs) pusher() *sender {
	for _, s := range in.senders {
		if s.way == byPush {
			return s
		}
	}
	return nil
}
