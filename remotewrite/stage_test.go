package remotewrite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
)

// stage is the setting of a transcript's scene: a log, a queue and a receiver.
type stage struct {
	*rig
	running bool
	out     []string // of the present line
	shown   int      // requests at the last show
	read    int      // dead letters at the last show

	// The receiver's, under to.mu.
	bad     map[string]bool          // series, and samples of a round, that are refused
	says    client.Answer            // instead of the receiver's answer, to every request with samples; 0: nothing
	all     bool                     // and to empty writes
	fails   map[string]client.Answer // samples of a round at which the receiver fails, and how
	down    bool                     // no request arrives
	loses   int                      // how many answers are lost
	trigger string                   // a sample of a round
	then    func()                   // called once the receiver has got it; nil: nothing
}

// command does something, and returns a change to the receiver's state, or nil.
type command func(words []string) (change func())

// commands are the commands of a line.
func (on *stage) commands() map[string]command {
	do := func(f func(words []string)) command { return func(words []string) func() { f(words); return nil } }
	return map[string]command{
		"receiver": on.receiver,   // keeps, any, window=5m, refuses-empty, hides-written, maximum=50: other than a strict one; see fakeReceiver
		"entry":    do(on.entry),  // drop, v2, auto, batch=50, asks-time, shards=2: keys of the target's entry; read=1ms: how long the log takes for a commit
		"append":   do(on.append), // a1-a5 n1 rounds=3 every=15s: commits a sample of each series, so much later each time, and waits as long; without every, a second later, and without waiting
		"start":    do(on.starts), // a new process
		"stop":     do(on.stops),  // it ends in order
		"kill":     do(on.kill),   // and is gone
		"wait":     do(on.wait),   // 10s
		"drain":    do(on.drain),  // until every sample has its outcome
		"refuse":   on.refuse,     // a1 n2@3 because words: the receiver refuses these series, or samples of a round, and no others
		"fail":     on.fail,       // a1@3 500 words: the receiver answers so to each request with that sample; 0: it cuts the connection
		"answer":   on.answer,     // 401 words: to each request with samples; answer all 401: to empty writes, too; 429 retry-after=1m words
		"down":     on.breaks,     // no request arrives
		"well":     on.heals,      // ends down and answer
		"lose":     on.lose,       // 2: so many requests arrive, and their answers are lost
		"after":    on.after,      // a1@3 down: does that once the receiver has got this sample
		"poke":     do(on.poke),   // tests a held target now
		"renew":    do(on.renew),  // the entry's credentials have changed
		"show":     do(on.show),   // the account, requests and letters since the last show, state, mute, samples that the receiver lacks
	}
}

func (on *stage) print(format string, args ...any) {
	on.out = append(on.out, fmt.Sprintf(format, args...))
}

// at names a sample by its series and round.
func (on *stage) at(s smp) string {
	return fmt.Sprint(s.series, "@", (s.t-on.began())/1000)
}

// began is the time of round 0.
func (on *stage) began() int64 { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() }

func (on *stage) number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		on.t.Fatal(err)
	}
	return n
}

func (on *stage) duration(word string) time.Duration {
	d, err := time.ParseDuration(word)
	if err != nil {
		on.t.Fatal(err)
	}
	return d
}

func (on *stage) receiver(words []string) func() {
	return func() {
		for _, w := range words {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "keeps":
				on.to.keepsGood, on.to.keepsGood2 = true, true
			case "any":
				on.to.anyOrder = true
			case "window":
				on.to.window = on.duration(value)
			case "refuses-empty":
				on.to.refuseEmpty = true
			case "hides-written":
				on.to.hidesWritten = true
			case "maximum":
				on.to.maxSamples = on.number(value)
			default:
				on.t.Errorf("%q is no kind of receiver", w)
			}
		}
	}
}

func (on *stage) entry(words []string) {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "drop":
			on.cfg.Target.OnRefusal = config.RefusalDrop
		case "v2":
			on.cfg.ProtobufMessage = config.MessageV2
		case "auto":
			on.cfg.ProtobufMessage = config.MessageAuto
		case "batch":
			on.cfg.Queue.MaxSamplesPerSend = on.number(value)
		case "asks-time":
			on.timed()
		case "shards":
			on.cfg.Queue.MinShards, on.cfg.Queue.MaxShards = on.number(value), on.number(value)
		case "read":
			wait := on.duration(value)
			on.log.slow = func() time.Duration { return wait }
		default:
			on.t.Fatalf("%q is no key of an entry", w)
		}
	}
}

func (on *stage) append(words []string) {
	var names []string
	rounds, later, pause := 1, time.Second, time.Duration(0)
	for _, w := range words {
		switch key, value, _ := strings.Cut(w, "="); key {
		case "rounds":
			rounds = on.number(value)
		case "every":
			later, pause = on.duration(value), on.duration(value)
		default:
			names = append(names, seriesOf(on.t, w)...)
		}
	}
	for range rounds {
		on.time += later.Milliseconds()
		ss := make([]smp, len(names))
		for i, name := range names {
			ss[i] = smp{name, on.time, float64(on.time) + float64(i)}
		}
		on.log.append(ss...)
		time.Sleep(pause)
	}
}

func (on *stage) starts([]string)     { on.start(); on.running = true }
func (on *stage) stops([]string)      { on.end(); on.running = false }
func (on *stage) kill([]string)       { on.stops(nil); on.log.crash() }
func (on *stage) wait(words []string) { time.Sleep(on.duration(words[0])) }
func (on *stage) drain([]string)      { on.drained(2 * time.Hour) }
func (on *stage) poke([]string)       { on.q.Poke() }
func (on *stage) renew([]string)      { on.q.CredentialsChanged() }

func (on *stage) refuse(words []string) func() {
	bad, why := map[string]bool{}, "bad sample"
	for i, w := range words {
		if w == "because" {
			why = strings.Join(words[i+1:], " ")
			break
		}
		for _, name := range seriesOf(on.t, w) {
			bad[name] = true
		}
	}
	return func() { on.bad, on.to.says = bad, why }
}

func (on *stage) fail(words []string) func() {
	a := client.Answer{Status: on.number(words[1]), Text: strings.Join(words[2:], " ")}
	if a.Status == 0 {
		a = cut
	}
	return func() {
		if on.fails == nil {
			on.fails = map[string]client.Answer{}
		}
		on.fails[words[0]] = a
	}
}

func (on *stage) answer(words []string) func() {
	all := words[0] == "all"
	if all {
		words = words[1:]
	}
	a := client.Answer{Status: on.number(words[0])}
	words = words[1:]
	if len(words) > 0 {
		if pause, is := strings.CutPrefix(words[0], "retry-after="); is {
			a.RetryAfter, words = on.duration(pause), words[1:]
		}
	}
	a.Text = strings.Join(words, " ")
	return func() { on.says, on.all = a, all }
}

func (on *stage) breaks([]string) func() { return func() { on.down = true } }
func (on *stage) heals([]string) func() {
	return func() { on.down, on.says = false, client.Answer{} }
}

func (on *stage) lose(words []string) func() {
	n := on.number(words[0])
	return func() { on.loses = n }
}

func (on *stage) after(words []string) func() {
	change := on.commands()[words[1]](words[2:])
	return func() { on.trigger, on.then = words[0], change }
}

// script answers instead of the receiver.
func (on *stage) script(q fakeRequest) (client.Answer, bool) {
	switch {
	case on.down:
		return client.Answer{Err: errDown}, true
	case on.says.Status != 0 && (len(q.samples) > 0 || on.all):
		return on.says, true
	case len(q.samples) == 0:
		return client.Answer{}, false
	}
	for _, s := range q.samples {
		if a, fails := on.fails[on.at(s)]; fails {
			return a, true
		}
	}
	a := on.to.stores(q)
	if on.loses > 0 {
		on.loses--
		a = cut
	}
	if on.then != nil && slices.ContainsFunc(q.samples, func(s smp) bool { return on.at(s) == on.trigger }) {
		on.then()
		on.then = nil
	}
	return a, true
}

// show prints the account and what the receiver lacks of it.
func (on *stage) show([]string) {
	o := on.log.outcome()
	account := []string{fmt.Sprint(o.Delivered, " delivered")}
	for r, n := range o.Dropped {
		if n > 0 {
			account = append(account, fmt.Sprint(n, " ", queue.Reason(r)))
		}
	}
	if n := on.log.pending(); n > 0 {
		account = append(account, fmt.Sprint(n, " pending"))
	}
	on.print("%d samples: %s", on.log.Head().Total, strings.Join(account, ", "))
	on.to.mu.Lock()
	n, lacks := len(on.to.requests), on.lacks()
	on.to.mu.Unlock()
	requests := n - on.shown
	on.shown = n
	on.print("%d requests", requests)
	switch st := on.q.Status(); {
	case !on.running:
	case st.State != StateOK || st.Why != "":
		on.print("%s", strings.TrimSuffix(fmt.Sprintf("%s: %s", st.State, st.Why), ": "))
	}
	on.printMuted()
	if more := len(lacks) - 6; more > 0 {
		lacks = append(lacks[:6], fmt.Sprint(more, " more"))
	}
	if len(lacks) > 0 {
		on.print("the receiver lacks %s", strings.Join(lacks, ", "))
	}
	on.printLetters()
}

// printMuted prints how many series are muted, for each reason.
func (on *stage) printMuted() {
	if !on.running {
		return
	}
	for _, g := range on.q.Status().Muted {
		on.print("%d muted series", g.Series)
	}
}

// printLetters prints how many dead letters came since the last show, by their text.
func (on *stage) printLetters() {
	letters := on.letters.all()
	samples, order := map[string]int{}, []string(nil)
	for _, l := range letters[on.read:] {
		what := fmt.Sprintf("%s, %d %s", l.Reason, l.Status, l.Text)
		if samples[what] == 0 {
			order = append(order, what)
		}
		samples[what] += max(l.Samples, 1)
	}
	on.read = len(letters)
	for _, what := range order {
		on.print("dead letters of %d samples: %s", samples[what], what)
	}
}
