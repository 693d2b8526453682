package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/testnet"
)

// Connections are given up after five minutes, so that a name that resolves to
// another address is noticed; the former ones are closed.
func TestConnectionAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, stop := testnet.Serve(t, nil, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		defer stop()
		c := newClient(t, "url: http://h.example/", "", Options{Dial: n.Dial})
		for range 21 * 6 { // every 10 s for 21 minutes
			if a := c.Send(t.Context(), Request{Body: []byte("x")}); a.Status != 200 {
				t.Fatalf("answer %+v", a)
			}
			synctest.Wait()
			if open, _ := n.Counts(); open != 1 {
				t.Fatalf("%d connections are open", open)
			}
			time.Sleep(10 * time.Second)
		}
		if _, all := n.Counts(); all != 5 {
			t.Errorf("%d connections in 21 minutes, want 5", all)
		}
		c.Close()
		synctest.Wait()
		if open, _ := n.Counts(); open != 0 {
			t.Errorf("%d connections are open after Close", open)
		}
	})
}

// A name that moves is followed within the maximum age of connections while the former host still
// serves, and at once when that host is gone: each new connection looks up the name.
func TestNameMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]int{}
		host := func(name string) (*testnet.Net, func()) {
			return testnet.Serve(t, nil, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); seen[name]++ })
		}
		first, stopFirst := host("first")
		second, stopSecond := host("second")
		defer stopSecond()
		address := "192.0.2.1"
		lookup := func(context.Context, string) ([]string, error) { return []string{address}, nil }
		c := newClient(t, "{url: http://h.example/, round_robin_dns: true}", "", Options{
			Dial: spreadDial(lookup, dialEach(map[string]*testnet.Net{"192.0.2.1": first, "192.0.2.2": second}))})
		defer c.Close()
		send := func() Answer { return c.Send(t.Context(), Request{Body: []byte("x")}) }
		if a := send(); a.Status != 200 {
			t.Fatalf("%+v", a)
		}
		address = "192.0.2.2"
		begin := time.Now()
		for seen["second"] == 0 && time.Since(begin) < time.Hour {
			time.Sleep(10 * time.Second)
			if a := send(); a.Status != 200 {
				t.Fatalf("%+v", a)
			}
		}
		if took := time.Since(begin); took > defaultConnectionAge {
			t.Errorf("followed after %s", took)
		}
		address = "192.0.2.1"
		time.Sleep(defaultConnectionAge)
		if a := send(); a.Status != 200 || seen["first"] == 0 {
			t.Fatalf("%+v, seen %v", a, seen)
		}
		stopFirst() // between requests
		synctest.Wait()
		address = "192.0.2.2"
		if a := send(); a.Status != 200 {
			t.Errorf("%+v", a)
		}
	})
}

func TestRemoteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, stop := testnet.Serve(t, nil, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
		defer stop()
		c := newClient(t, "{url: http://h.example/, remote_timeout: 7s}", "", Options{Dial: n.Dial})
		defer c.Close()
		start := time.Now()
		a := c.Send(t.Context(), Request{Body: []byte("x")})
		if took := time.Since(start); took != 7*time.Second || a.Took != took || !errors.Is(a.Err, errNoAnswer) {
			t.Errorf("after %s: %+v", took, a)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		a = c.Send(ctx, Request{Body: []byte("x")})
		if took := time.Since(start); took != time.Second || !errors.Is(a.Err, context.DeadlineExceeded) {
			t.Errorf("the caller's deadline: after %s: %+v", took, a)
		}
	})
}

// A body that stalls, drips or does not end costs two seconds; the status counts.
func TestSlowBodies(t *testing.T) {
	for name, body := range map[string]func(http.ResponseWriter, *http.Request){
		"stalls": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "beginning")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"drips": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "beginning")
			for r.Context().Err() == nil {
				if http.NewResponseController(w).Flush() != nil {
					return
				}
				time.Sleep(time.Second / 3)
				_, _ = io.WriteString(w, ".")
			}
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "beginning")
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		},
	} {
		for _, status := range []int{200, 400, 503} {
			synctest.Test(t, func(t *testing.T) {
				n, stop := testnet.Serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.WriteHeader(status)
					body(w, r)
				})
				defer stop()
				c := newClient(t, "url: http://h.example/", "", Options{Dial: n.Dial})
				defer c.Close()
				a := c.Send(t.Context(), Request{Body: []byte("x")})
				if a.Status != status || a.Err != nil || a.Took > 2*time.Second || len(a.Text) < 9 || a.Text[:9] != "beginning" {
					t.Errorf("%s: %+v", name, a)
				}
			})
		}
	}
}

// Headers that never come are bounded by remote_timeout too.
func TestAnswerWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, stop := testnet.Serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			for err == nil {
				_, err = io.WriteString(conn, "X-A: b\r\n")
				time.Sleep(time.Second)
			}
			_ = conn.Close()
		})
		defer stop()
		c := newClient(t, "url: http://h.example/", "", Options{Dial: n.Dial})
		defer c.Close()
		if a := c.Send(t.Context(), Request{Body: []byte("x")}); a.Took != 30*time.Second || !errors.Is(a.Err, errNoAnswer) {
			t.Errorf("%+v", a)
		}
	})
}

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	date := now.Add(-time.Hour) // the receiver's clock is behind
	for _, tc := range []struct {
		header string
		date   time.Time
		want   time.Duration
	}{
		{"", date, 0}, {"0", date, 0}, {"7", date, 7 * time.Second}, {" 12 ", date, 12 * time.Second}, {"300", date, maxRetryAfter},
		{"301", date, maxRetryAfter}, {"86400", date, maxRetryAfter}, {"99999999999999999999999", date, maxRetryAfter},
		{"-1", date, 0}, {"1.5", date, 0}, {"+3", date, 0}, {"soon", date, 0}, {"0x10", date, 0}, {"1e3", date, 0}, {"٣", date, 0},
		{date.Add(20 * time.Second).Format(http.TimeFormat), date, 20 * time.Second},
		{date.Add(-20 * time.Second).Format(http.TimeFormat), date, 0},
		{date.Add(48 * time.Hour).Format(http.TimeFormat), date, maxRetryAfter},
		{now.Add(20 * time.Second).Format(http.TimeFormat), time.Time{}, 20 * time.Second},
		{now.Add(20 * time.Second).Format(time.RFC850), time.Time{}, 20 * time.Second},
		{now.Add(20 * time.Second).Format(time.ANSIC), time.Time{}, 20 * time.Second},
		{"Fri, 31 Dec 9999 23:59:59 GMT", date, maxRetryAfter},
	} {
		if got := retryAfter(tc.header, tc.date, now); got != tc.want {
			t.Errorf("Retry-After %q: %s, want %s", tc.header, got, tc.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120", int64(0))
	f.Add("Fri, 20 Nov 2026 12:00:00 GMT", int64(1_790_000_000))
	f.Fuzz(func(t *testing.T, header string, date int64) {
		if got := retryAfter(header, time.Unix(date, 0), time.Unix(1_795_000_000, 0)); got < 0 || got > maxRetryAfter {
			t.Errorf("%q is %s", header, got)
		}
	})
}

func TestSendRetryAfter(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "42")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	c := newClient(t, "url: "+s.URL, "", Options{})
	if a := c.Send(t.Context(), Request{Body: []byte("x")}); a.RetryAfter != 42*time.Second {
		t.Errorf("%+v", a)
	}
}
