package agent

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

var (
	livesSeed  = flag.Uint64("lives.seed", 0, "replay this seed of TestLivesOfTenants only, with -v and the agent's log")
	livesSeeds = flag.Int("lives.seeds", 8, "how many seeds TestLivesOfTenants runs")
	livesFrom  = flag.Uint64("lives.from", 1, "the first of them")
)

// TestLivesOfTenants runs the whole agent, in virtual time and with its log on disk, through random lives of tenants: label values come and go,
// receivers fail, hold and refuse, the entry is changed, renamed, removed and put back, queues are paused, skipped and dropped, savepoints cannot be
// written, and the agent is stopped and killed. Each sample comes to the target of its tenant, or to the default target, and to no other; each
// series comes in order; each target's account has the outcome of each sample, and at the end nothing waits.
func TestLivesOfTenants(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename or copy files that are open")
	}
	seeds := *livesSeeds
	if testing.Short() {
		seeds = min(seeds, 3)
	}
	fired := map[string]int{}
	for i := range seeds {
		seed := *livesFrom + uint64(i)
		if *livesSeed != 0 {
			seed = *livesSeed
		}
		t.Run(fmt.Sprintf("lives.seed=%d", seed), func(t *testing.T) {
			root := quickDir(t)
			synctest.Test(t, func(t *testing.T) { newLife(t, seed, root, fired).live() })
		})
		if *livesSeed != 0 {
			return
		}
	}
	t.Log(fired)
	if seeds < 60 || t.Failed() {
		return
	}
	for _, what := range livesSteps {
		if fired[what] == 0 {
			t.Errorf("%s: never", what)
		}
	}
	for _, how := range livesAnswers {
		if fired["answer "+how] == 0 {
			t.Errorf("no receiver ever answered %q", how)
		}
	}
}

// life is one life of an agent with an entry that has tenants.
type life struct {
	t    *testing.T
	rnd  *rand.Rand
	root string // has a directory for each process that was killed
	dir  string // of the present process
	file string // its configuration
	to   *livesReceiver
	said bytes.Buffer

	*Agent
	processes int
	cancel    context.CancelFunc
	ended     chan error

	// The entry.
	names         []string // the present one is last
	defaults      []string // tenants of the default target, the present one last; "" is none
	dropLabel     bool
	liveFirst     bool
	mostTenants   int
	forgetAfter   time.Duration
	maxBacklog    int // bytes; 0: none
	shards, batch int
	url           int  // part of the path, which changes with the entry
	absent        bool // the configuration has no entry
	dropped       bool // since then its queue was dropped

	active  []bool       // by livesTenants: samples of that tenant come
	bad     string       // a series that the receiver always refuses; "": none
	excused map[int]bool // samples that were given up by command
	newest  int64        // time of the last samples, in ms
	unsaved bool         // it was killed while savepoints could not be written
	free    func()       // lets savepoints be written again; nil: they can be

	// By tenant: the last commit when a search for tenants began and this one had no target. A tenant that then gets one begins at
	// the oldest waiting sample of the default target, which may have sent newer ones: these come to both.
	floors map[string]uint64
}

// livesTenants are the values of the label; some cannot be tenants.
var livesTenants = []string{"", "a", "b", "c", "d", "e", "f", "x/y"}

func newLife(t *testing.T, seed uint64, root string, fired map[string]int) *life {
	r := rand.New(rand.NewPCG(seed, 1))
	l := &life{
		t: t, rnd: r, root: root, dir: filepath.Join(root, "0"), file: filepath.Join(root, "agent.yaml"), to: newLivesReceiver(seed, fired),
		names: []string{"m0"}, defaults: []string{[]string{"", "rest", "rest", "b"}[r.IntN(4)]}, dropLabel: r.IntN(2) == 0, liveFirst: r.IntN(3) == 0,
		active: make([]bool, len(livesTenants)), excused: map[int]bool{}, floors: map[string]uint64{},
	}
	l.to.strict, l.to.keepsGood = !l.liveFirst && r.IntN(2) == 0, r.IntN(2) == 0
	l.change()
	if r.IntN(4) == 0 && !l.to.strict { // else a target may have nothing that its receiver takes, and is held
		l.bad = fmt.Sprintf("%s_%d", livesTenants[r.IntN(len(livesTenants))], r.IntN(2))
	}
	if r.IntN(3) == 0 {
		l.maxBacklog = 64 << 10 * (1 + r.IntN(3))
	}
	return l
}

// change changes the entry.
func (l *life) change() {
	r := l.rnd
	l.url++
	l.mostTenants = 1 + r.IntN(6)
	l.forgetAfter = []time.Duration{0, time.Minute, time.Minute, 3 * time.Minute}[r.IntN(4)]
	l.shards, l.batch = 1<<r.IntN(2), 5+r.IntN(100)
}

func (l *life) name() string { return l.names[len(l.names)-1] }

// toDefault returns the tenant of the default target, "" for none.
func (l *life) toDefault() string { return l.defaults[len(l.defaults)-1] }

// configure writes the configuration.
func (l *life) configure() {
	text := "web: {listen: \"\"}\nwal: {max_bytes: 1GiB, min_free_bytes: 1MiB, orphan_ttl: 10000h}\nprobes:\n  - {name: hwsagent, type: self, enabled: false}\n"
	if !l.absent {
		tenant := fmt.Sprintf("label: team, drop_label: %t, max_tenants: %d, forget_after: %s", l.dropLabel, l.mostTenants, l.forgetAfter)
		if id := l.toDefault(); id != "" {
			tenant += ", default: " + id
		}
		own := ""
		if l.liveFirst {
			own += "catch_up: live_first, "
		}
		if l.maxBacklog > 0 {
			own += fmt.Sprintf("max_backlog: %dKiB, ", l.maxBacklog>>10)
		}
		text += fmt.Sprintf("remote_write:\n  - name: %s\n    url: http://receiver.example/%d\n    metadata_config: {send: false}\n    hwsagent: {%stenant: {%s}}\n"+
			"    queue_config: {batch_send_deadline: 1s, max_backoff: 20s, min_shards: %d, max_samples_per_send: %d}\n", l.name(), l.url, own, tenant, l.shards, l.batch)
	}
	if err := os.WriteFile(l.file, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// commit appends a sample of each series of the present tenants.
func (l *life) commit() {
	app := l.log.AppenderV2(l.t.Context())
	now := max(time.Now().UnixMilli(), l.newest+1) // a second value of a series at one time would be rejected
	l.newest = now
	var begin, end int
	l.to.set(func() {
		begin = len(l.to.samples)
		for i, id := range livesTenants {
			if !l.active[i] {
				continue
			}
			for k := range 2 {
				series := fmt.Sprintf("%s_%d", id, k)
				l.to.samples = append(l.to.samples, lifeSample{tenant: id, series: series, t: now, bad: series == l.bad})
			}
		}
		end = len(l.to.samples)
	})
	if begin == end {
		return
	}
	for n := begin; n < end; n++ {
		s := l.to.samples[n]
		ls := []string{"__name__", "m", "series", s.series}
		if s.tenant != "" {
			ls = append(ls, "team", s.tenant)
		}
		if _, err := app.Append(0, labels.FromStrings(ls...), 0, now, float64(n), nil, nil, storage.AppendV2Options{}); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		l.t.Fatal(err)
	}
	head := l.log.Status().Head.Commit
	l.to.set(func() {
		for n := begin; n < end; n++ {
			l.to.samples[n].commit = head
		}
	})
}

// pass lets time pass in which samples come.
func (l *life) pass(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		for range 1 + l.rnd.IntN(3)*l.rnd.IntN(2)*l.rnd.IntN(20) {
			l.commit()
			time.Sleep(time.Duration(1+l.rnd.IntN(20)) * time.Millisecond)
		}
		time.Sleep(time.Duration(l.rnd.IntN(10000)) * time.Millisecond)
	}
}

func (l *life) live() {
	l.configure()
	l.start()
	for range 12 + l.rnd.IntN(20) {
		for range l.rnd.IntN(3) {
			i := l.rnd.IntN(len(l.active))
			l.active[i] = !l.active[i]
		}
		for range l.rnd.IntN(3) {
			id := append([]string{l.toDefault(), l.toDefault()}, livesTenants...)[l.rnd.IntN(2+len(livesTenants))]
			l.to.set(func() { l.to.answer[id] = livesAnswers[l.rnd.IntN(len(livesAnswers))] })
		}
		l.step()
		l.pass(time.Duration(1+l.rnd.IntN(120)) * time.Second)
		l.accounts()
	}
	l.settle()
	if err := l.stop(); err != nil {
		l.t.Errorf("the agent ended with %v", err)
	}
	l.check()
	if err := l.to.end(); err != nil {
		l.t.Error(err)
	}
}
