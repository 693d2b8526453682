package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/tenant"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// familyRig is an entry with tenants over logs in memory: one for each reader, all with the
// same commits.
type familyRig struct {
	t       *testing.T
	cfg     *config.Config
	tenants *tenant.Registry
	scout   *tenant.Discovery
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	logs    map[string]*memLog // by tenant; "" is the rest's, "scout" the scout's
	all     [][]smp
	refuse  map[string]int
	got     map[string]map[smp]time.Time
	enrolls int
	failing error
	let     []string // go
}

const familyRules = "url: http://h.example/\nname: m\nwrite_relabel_configs: [{source_labels: [__name__], regex: '(.*)_m', target_label: team}]\n" +
	"queue_config: {batch_send_deadline: 1s}\nmetadata_config: {send: false}\n"

// newFamily creates the rig of an entry whose tenant is named in the series' name: a_m belongs to a.
func newFamily(t *testing.T, keys string) *familyRig {
	f := &familyRig{
		t: t, cfg: mustLoad(t, familyRules+"hwsagent: {future_limit: 0s, tenant: {label: team"+keys+"}}"),
		logs: map[string]*memLog{}, refuse: map[string]int{}, got: map[string]map[smp]time.Time{},
	}
	f.ctx, f.cancel = context.WithCancel(t.Context())
	f.tenants = tenant.NewRegistry(f.cfg, nil, func(string) error { return nil })
	f.logs["scout"] = newMemLog(t)
	f.scout = tenant.NewDiscovery(tenant.Options{
		Config: *f.cfg, Source: scoutLog{f.logs["scout"]}, Registry: f.tenants, Enroll: f.enroll,
		Release: func(id string, last uint64) { f.let = append(f.let, id); f.tenants.Forget(id) },
	})
	f.open("", f.cfg.ForRest(), 0)
	f.running.Go(func() { f.scout.Run(f.ctx) })
	return f
}

func (f *familyRig) stop() {
	f.cancel()
	f.running.Wait()
}

// scoutLog has a head and a savepoint, as a reader of the log has.
type scoutLog struct{ *memLog }

func (l scoutLog) Savepoint() queue.Savepoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clone()
}

func (l scoutLog) Head() wal.Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head()
}

func (f *familyRig) enroll(id string, after wal.Mark) (uint64, error) {
	f.mu.Lock()
	failing := f.failing
	f.enrolls++
	f.mu.Unlock()
	if failing != nil {
		return 0, failing
	}
	f.open(id, f.cfg.ForTenant(id), after.Commit)
	return after.Commit, nil
}

// open starts the queue of a target that begins after that commit.
func (f *familyRig) open(id string, cfg *config.Config, after uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	log := newMemLog(f.t)
	for _, c := range f.all {
		log.append(c...)
	}
	if after > 0 {
		end := log.entries[after-1].End
		log.sp = queue.Savepoint{Start: end, High: end}
		log.next = int(after)
	}
	f.logs[id] = log
	f.got[cfg.Tenant()] = map[smp]time.Time{}
	o := Options{Name: cfg.TargetName(), Config: *cfg, Source: log, Sender: f.sender(cfg.Tenant()), DeadLetters: &memLetters{}, Rand: func() float64 { return 0.5 }}
	if cfg.Role() == config.RoleDefault {
		o.Tenants = f.tenants
	}
	q, err := New(o)
	if err != nil {
		f.t.Error(err)
		return
	}
	f.running.Go(func() { q.Run(f.ctx) })
}

func (f *familyRig) sender(id string) Sender {
	return senderFunc(func(ctx context.Context, r client.Request) client.Answer {
		f.mu.Lock()
		defer f.mu.Unlock()
		if code := f.refuse[id]; code != 0 {
			return client.Answer{Status: code, Text: "no", Err: nil}
		}
		for _, ts := range decode(f.t, r.Body).Timeseries {
			var name, team string
			for _, l := range ts.Labels {
				switch l.Name {
				case "__name__":
					name = l.Value
				case "team":
					team = l.Value
				}
			}
			if f.cfg.Target.Tenant.DropLabel && team == id {
				f.t.Errorf("%s at %q has its label", name, id)
			}
			for _, s := range ts.Samples {
				k := smp{name, s.Timestamp, s.Value}
				f.got[id][k] = time.Now()
			}
		}
		return client.Answer{Status: 204}
	})
}

// commit commits a sample of each series at the present time.
func (f *familyRig) commit(series ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var c []smp
	for i, s := range series {
		c = append(c, smp{s, time.Now().UnixMilli(), float64(i)})
	}
	f.all = append(f.all, c)
	for _, log := range f.logs {
		log.append(c...)
	}
}

// arrived returns how many samples of a series a tenant has, and how late the latest one was.
func (f *familyRig) arrived(id, series string) (n int, late time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, at := range f.got[id] {
		if k.series == series {
			n++
			late = max(late, at.Sub(time.UnixMilli(k.t)))
		}
	}
	return n, late
}

func (f *familyRig) outcome(id string) queue.Outcome {
	f.logs[id].mu.Lock()
	defer f.logs[id].mu.Unlock()
	return f.logs[id].ledger
}

// TestTenantHeldForHours: for three hours one tenant is refused in some way. The others, and series without a tenant,
// have every sample within their deadline all the time, and the held tenant has all of its own soon afterwards.
func TestTenantHeldForHours(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusForbidden, http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFamily(t, ", default: anonymous, drop_label: true")
				f.refuse["b"] = code
				const rounds = 3 * 60 * 4
				for i := range rounds {
					series := []string{"a_m", "b_m", "c_m", "nobody"}
					if i > rounds/2 {
						series = append(series, "d_m") // found while b is held
					}
					f.commit(series...)
					time.Sleep(15 * time.Second)
				}
				for id, series := range map[string]string{"a": "a_m", "c": "c_m", "d": "d_m", "anonymous": "nobody"} {
					n, late := f.arrived(id, series)
					if want := rounds; n != want && id != "d" || n == 0 || late > 3*time.Second {
						t.Errorf("%s has %d samples, the latest %s late", id, n, late)
					}
				}
				if n, _ := f.arrived("b", "b_m"); n != 0 {
					t.Errorf("b has %d samples", n)
				}
				f.mu.Lock()
				f.refuse["b"] = 0
				f.mu.Unlock()
				time.Sleep(5 * time.Minute)
				if n, _ := f.arrived("b", "b_m"); n != rounds {
					t.Errorf("b has %d of %d samples after its outage", n, rounds)
				}
				time.Sleep(time.Minute)
				for id := range f.logs {
					if o := f.outcome(id); id != "scout" && (o.GivenUp() > 0 || o.Delivered == 0 || o.Filtered == 0) {
						t.Errorf("%q: %+v", id, o)
					}
				}
				f.stop()
			})
		})
	}
}

// TestScoutWaitsForTheDisk: samples for which no target can be created wait, and later ones do not overtake them.
func TestScoutWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, ", default: anonymous")
		defer f.stop()
		f.commit("a_m", "nobody")
		time.Sleep(time.Minute)
		f.mu.Lock()
		f.failing = errors.New("disk full")
		f.mu.Unlock()
		for range 10 {
			f.commit("a_m", "b_m", "nobody")
			time.Sleep(time.Minute)
		}
		if n, _ := f.arrived("a", "a_m"); n != 11 {
			t.Errorf("a has %d samples of 11 meanwhile", n)
		}
		f.mu.Lock()
		f.failing = nil
		f.mu.Unlock()
		time.Sleep(time.Minute)
		for id, series := range map[string]string{"a": "a_m", "b": "b_m", "anonymous": "nobody"} {
			if n, _ := f.arrived(id, series); n < 10 {
				t.Errorf("%s has %d samples", id, n)
			}
		}
	})
}

// TestMaxTenants: tenants beyond the limit belong to the default tenant until another one is forgotten; each sample is
// at one tenant, once.
func TestMaxTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, ", default: anonymous, drop_label: true, max_tenants: 2, forget_after: 1h")
		defer f.stop()
		f.commit("a_m", "b_m", "c_m", "anonymous_m", "x/y_m")
		time.Sleep(time.Minute)
		want := []tenant.Unrouted{{Value: "c", Why: "there are 2 tenants, max_tenants"}, {Value: "x/y", Why: config.CheckTenant("x/y").Error()}}
		if d := cmp.Diff(want, f.tenants.Unrouted()); d != "" {
			t.Errorf("strangers (-want +got):\n%s", d)
		}
		for range 70 { // a is silent
			f.commit("b_m", "c_m")
			time.Sleep(time.Minute)
		}
		if !slices.Equal(f.let, []string{"a"}) {
			t.Errorf("let go: %v", f.let)
		}
		time.Sleep(time.Minute)
		if got := f.tenants.Known(); !slices.Equal(got, []string{"b", "c"}) {
			t.Fatalf("known: %v", got)
		}
		c, _ := f.arrived("c", "c_m")
		rest, _ := f.arrived("anonymous", "c_m")
		if c == 0 || rest == 0 || c+rest != 71 {
			t.Errorf("of 71 samples of c, %d came to it and %d to the default", c, rest)
		}
		for _, series := range []string{"anonymous_m", "x_y_m"} {
			if n, _ := f.arrived("anonymous", series); n != 1 {
				t.Errorf("%d samples of %s", n, series)
			}
		}
		f.commit("a_m") // again, and there is no room
		time.Sleep(time.Minute)
		if n, _ := f.arrived("anonymous", "a_m"); n != 1 {
			t.Errorf("a is back: %d samples", n)
		}
	})
}

// TestNoTenant: without a default tenant, samples without a tenant are dropped and counted.
func TestNoTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, ", max_tenants: 1")
		defer f.stop()
		f.refuse[""] = http.StatusUnauthorized
		f.commit("a_m", "b_m", "nobody", "x/y_m")
		time.Sleep(time.Minute)
		f.commit("a_m", "b_m", "nobody", "x/y_m")
		time.Sleep(time.Minute)
		var want queue.Outcome
		want.Filtered, want.Dropped[queue.NoTenant] = 2, 6
		if d := cmp.Diff(want, f.outcome("")); d != "" {
			t.Errorf("account of the rest (-want +got):\n%s", d)
		}
		var values []string
		for _, s := range f.tenants.Unrouted() {
			values = append(values, s.Value)
		}
		if d := cmp.Diff([]string{"", "b", "x/y"}, values); d != "" {
			t.Errorf("strangers: %s", d)
		}
	})
}

// TestTenantOfFinalLabels: external labels and rules decide which tenant a series belongs to.
func TestTenantOfFinalLabels(t *testing.T) {
	c := newSeriesCache(labels.FromStrings("team", "a"), nil)
	entry := config.Config{Target: config.TargetConfig{Tenant: &config.TenantConfig{Label: "team", DropLabel: true}}}
	c.tenant = tenant.NewFilter(entry.ForTenant("a"), nil)
	for _, tc := range []struct {
		ls   labels.Labels
		want string
	}{
		{labels.FromStrings("__name__", "x"), `{__name__="x"}`},
		{labels.FromStrings("__name__", "x", "team", "b"), ""},
		{labels.FromStrings("__name__", "x", "team", "a"), `{__name__="x"}`},
	} {
		to, got := c.at(wal.NewSeries(0, tc.ls, nil), 1), ""
		if !to.dropped() {
			got = to.labels().String()
		}
		if got != tc.want {
			t.Errorf("%s is sent as %s, want %s", tc.ls, got, tc.want)
		}
	}
}

// TestBacklogAfterScout: samples in the backlog of the default target wait for the discovery of tenants, as live ones
// do.
func TestBacklogAfterScout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := mustLoad(t, familyRules+"hwsagent: {catch_up: live_first, tenant: {label: team}}")
		tenants := tenant.NewRegistry(cfg, nil, func(string) error { return nil })
		live, back := newMemLog(t), newMemLog(t)
		q, err := New(Options{Name: "m", Config: *cfg.ForRest(), Source: live, Backlog: back, Tenants: tenants, Sender: &fakeReceiver{}})
		if err != nil {
			t.Fatal(err)
		}
		for what, l := range map[string]*lane{"live": q.live, "backlog": q.back} {
			if l.cache.tenant == nil {
				t.Errorf("%s: does not know the tenants", what)
			}
			l.source.(*afterDiscovery).Source.(*memLog).append(smp{"a_m", 1, 1})
			got := make(chan error, 1)
			go func() {
				_, err := l.source.Next(t.Context())
				got <- err
			}()
			synctest.Wait()
			if len(got) > 0 {
				t.Errorf("%s: yields what the scout has not read", what)
			}
			tenants.Pass(1)
			if err := <-got; err != nil {
				t.Error(err)
			}
			tenants.Pass(0)
		}
	})
}
