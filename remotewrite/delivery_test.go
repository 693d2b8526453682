package remotewrite

import (
	"context"
	"crypto/tls"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/client"
	"hwsagent/wal"
)

// delivery is the whole way from a log over HTTP to a receiver that keeps what comes.
type delivery struct {
	t   *testing.T
	log *memLog
	g   *testnet.Guard
	net *testnet.Net
	c   *client.Client
	q   *Queue
	end func()

	mu       sync.Mutex
	samples  map[string][]int64 // times by metric name, as they came
	families int                // with metadata, in all requests
}

// deliver starts a delivery. who returns a request's sender for the guard.
func deliver(t *testing.T, entry, dir string, server *tls.Config, who func(*http.Request) string) *delivery {
	t.Helper()
	d := &delivery{t: t, log: newMemLog(t), g: &testnet.Guard{}, samples: map[string][]int64{}}
	let := d.g.Handler(who)
	var stopServer func()
	d.net, stopServer = testnet.Serve(t, server, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		refused := d.g.Refusals()
		let(w, r)
		if d.g.Refusals() == refused {
			d.take(body)
		}
	})
	cfg := mustLoad(t, entry)
	cfg.SetDirectory(dir)
	var err error
	if d.c, err = client.New(cfg, client.Options{Dial: d.net.Dial}); err != nil {
		t.Fatal(err)
	}
	d.q, err = New(Options{Name: "test", Config: *cfg, Source: d.log, Sender: d.c, DeadLetters: &memLetters{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { d.q.Run(ctx) })
	all.Go(func() { d.c.Run(ctx) })
	all.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-d.c.CredentialsChanged():
				d.q.CredentialsChanged()
			}
		}
	})
	d.end = func() { cancel(); all.Wait(); stopServer() }
	return d
}

func (d *delivery) take(body []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	req := decode(d.t, body)
	d.families += len(req.Metadata)
	for _, ts := range req.Timeseries {
		for _, s := range ts.Samples {
			d.samples[ts.Labels[0].Value] = append(d.samples[ts.Labels[0].Value], s.Timestamp)
		}
	}
}

// load commits a sample of each of ten series each tenth of a second.
func (d *delivery) load(length time.Duration) {
	for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var ss []smp
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			ss = append(ss, smp{name, time.Now().UnixMilli(), 1})
		}
		d.log.append(ss...)
	}
}

// complete waits for the rest, and checks that each sample arrived once and in order, and counts as delivered.
func (d *delivery) complete() {
	d.t.Helper()
	testnet.Within(d.t, time.Minute, "everything delivered", func() bool { return d.log.pending() == 0 })
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for name, times := range d.samples {
		newest := int64(math.MinInt64)
		for i, at := range times {
			switch {
			case at > newest:
				total, newest = total+1, at
			case !slices.Contains(times[:i], at): // a sample that came before may come again, as a test of the target
				d.t.Errorf("series %s: %d comes after %d", name, at, newest)
			}
		}
	}
	if head, o := d.log.Head().Total, d.log.outcome(); uint64(total) != head || o.Delivered != head || o.Sum() != head {
		d.t.Errorf("%d appended, %d arrived, outcome %+v", head, total, o)
	}
}

const quick = "queue_config: {batch_send_deadline: 200ms}\n"

// TestDeliveryTokenRevoked: a token is replaced under load, and the old one revoked at once: the target is held for a
// moment, no sample is lost or sent twice, and delivery continues within ten seconds.
func TestDeliveryTokenRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := testnet.WriteFiles(t, map[string]string{"token": "old"})
		d := deliver(t, "url: http://h.example/\nbearer_token_file: token\n"+quick, dir, nil, testnet.Bearer)
		defer d.end()
		d.g.Allow("old")
		d.load(20 * time.Second)
		testnet.WriteFile(t, filepath.Join(dir, "token"), "new")
		d.g.Allow("new")
		go func() { d.load(20 * time.Second) }()
		took := testnet.Within(t, 10*time.Second, "new token in use", func() bool { return d.g.Count("new") > 0 })
		time.Sleep(21 * time.Second)
		d.complete()
		if d.g.Refusals() == 0 || d.g.Refusals() > 2 {
			t.Errorf("%d refusals", d.g.Refusals())
		}
		t.Logf("in use after %s, %d refusals", took, d.g.Refusals())
	})
}

// TestDeliveryTokenExpired: the old token expires before the new one is there: the target is held, and delivery
// continues within ten seconds of the file's change.
func TestDeliveryTokenExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := testnet.WriteFiles(t, map[string]string{"token": "old"})
		d := deliver(t, "url: http://h.example/\nbearer_token_file: token\n"+quick, dir, nil, testnet.Bearer)
		defer d.end()
		d.g.Allow("old")
		d.load(5 * time.Second)
		d.g.Allow("new")
		d.load(10 * time.Minute)
		if s := d.q.Status(); s.State != StateHeld {
			t.Errorf("state is %+v", s)
		}
		if n := d.g.Refusals(); n > 30 {
			t.Errorf("%d refused requests in ten minutes", n)
		}
		testnet.WriteFile(t, filepath.Join(dir, "token"), "new")
		took := testnet.Within(t, 10*time.Second, "delivering again", func() bool { return d.q.Status().State != StateHeld && d.g.Count("new") > 1 })
		d.complete()
		t.Logf("delivering after %s, %d refusals", took, d.g.Refusals())
	})
}

// A client certificate is replaced under load.
func TestDeliveryCertificateRotation(t *testing.T) {
	ca := testnet.NewAuthority(t)
	cert, key := ca.Issue("old")
	newCert, newKey := ca.Issue("new")
	server := ca.Server()
	synctest.Test(t, func(t *testing.T) {
		dir := testnet.WriteFiles(t, map[string]string{"ca.pem": ca.Pem, "cert.pem": cert, "key.pem": key})
		d := deliver(t, "url: https://localhost/\ntls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem}\n"+quick, dir, server, testnet.CommonName)
		defer d.end()
		d.load(10 * time.Second)
		go func() { d.load(20 * time.Second) }()
		testnet.WriteFile(t, filepath.Join(dir, "key.pem"), newKey)
		time.Sleep(time.Second)
		testnet.WriteFile(t, filepath.Join(dir, "cert.pem"), newCert)
		took := testnet.Within(t, 10*time.Second, "new certificate in use", func() bool { return d.g.Count("new") > 0 })
		time.Sleep(21 * time.Second)
		d.complete()
		if s := d.q.Status(); s.Retries > 0 || s.LastError != "" {
			t.Errorf("requests failed: %+v", s)
		}
		t.Logf("in use after %s", took)
	})
}

// Metadata follows the samples, each minute, and not while the target is held.
func TestDeliveryMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deliver(t, "url: http://h.example/\nbearer_token: x\n"+quick, "", nil, testnet.Bearer)
		defer d.end()
		for i, name := range []string{"a", "b"} {
			d.log.series[name] = wal.NewSeries(i, labels.FromStrings("__name__", name), &wal.About{Meta: metadata.Metadata{Type: model.MetricTypeGauge, Help: name}})
		}
		d.load(150 * time.Second)
		d.mu.Lock()
		if d.families != 6 {
			t.Errorf("metadata of %d families in 150 s, want 3 times 2", d.families)
		}
		d.mu.Unlock()
		d.complete()
		d.g.Allow("y") // no sender has this token
		d.load(10 * time.Minute)
		before := d.g.Count("x")
		d.load(10 * time.Minute)
		if n := d.g.Count("x") - before; n > 12 {
			t.Errorf("a held target sees %d requests in ten minutes", n)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.families != 6 {
			t.Error("metadata was taken by a target that takes nothing")
		}
	})
}
