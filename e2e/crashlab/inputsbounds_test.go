//go:build linux

package crashlab

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"hwsagent/internal/tools/results"
	"hwsagent/internal/tools/tier"
)

// maxGrowth is how much memory all of TestInputsBounded may cost: five receivers, each with
// memory_bytes of 32 MiB, and what a thousand connections take.
const maxGrowth = 200 << 20

// TestInputsBounded: a thousand slow clients, programs stopped during a request, stalled gRPC calls, and decompression
// bombs, all at once, cost bounded memory, and affect neither the other senders nor the probes. Each slow client gets
// an answer and is disconnected.
func TestInputsBounded(t *testing.T) {
	t.Parallel()
	in := newInputs(t, options{wal: "max_bytes: 256MiB, min_free_bytes: 1MiB", interval: 100 * time.Millisecond},
		"body_bytes: 2MiB, decoded_bytes: 8MiB, memory_bytes: 32MiB")
	made := makeBombs(t)
	in.start()
	in.ready()
	in.send()
	in.answered(time.Now(), "are taken", answer.ok)
	before := in.memory("VmRSS")
	began := time.Now()

	const slow, calls, programs = 1000, 200, 8
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for i := range slow {
		to := []string{in.write + "/api/v1/write", in.push + "/metrics/job/slow", in.text + "/api/v1/import/prometheus", in.otlp + "/v1/metrics"}[i%4]
		contentType := []string{"application/x-protobuf", "text/plain", "text/plain", "application/x-protobuf"}[i%4]
		host, path, _ := strings.Cut(to, "/")
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		conns = append(conns, c)
		fmt.Fprintf(c, "POST /%s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: 1000000\r\n\r\nslow", path, host, contentType)
	}
	stalled := in.stall(calls)
	stopped := in.stopAmid(programs)
	bombs := in.bomb(made, amount(1, 5))

	// A client that promised a body and sent only a little gets an answer after some seconds.
	eventually(t, time.Minute, func() string {
		if n := in.metric("hwsagent_receiver_refused_requests_total", `reason="slow"`); n < slow+calls+programs {
			return fmt.Sprintf("%v of %d slow requests are refused", n, slow+calls+programs)
		}
		return ""
	})
	for i, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		told := make([]byte, 12)
		if _, err := io.ReadFull(c, told); err != nil || string(told) != "HTTP/1.1 408" {
			t.Fatalf("slow client %d got %q %v", i, told, err)
		}
	}
	const deadlineExceeded = "4"
	for range calls {
		if status := <-stalled; status != deadlineExceeded {
			t.Errorf("a stalled call of gRPC got the status %q", status)
		}
	}
	for _, cmd := range stopped {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
	}
	in.answered(time.Now(), "are taken", answer.ok)

	var worst time.Duration // that an answer of 2xx took
	good, held := 0, 0
	for _, s := range in.senders {
		n, _ := s.since(began, func(a answer) bool { return a.ok() })
		good += n
		s.mu.Lock()
		for _, st := range s.said {
			if st.began.After(began) && st.answer.ok() {
				worst = max(worst, st.ended.Sub(st.began))
			} else if st.began.After(began) {
				held++
			}
		}
		s.mu.Unlock()
	}
	gap := in.witness.gap(began, time.Now()) - in.interval
	peak := in.memory("VmHWM")
	in.quietInputs()
	r, g := in.settle()
	v := in.judge(nil)
	in.holds(v, r, g)
	in.asked(v)
	if grown := peak - before; grown > maxGrowth {
		t.Errorf("the agent grew by %d MiB, more than %d", grown>>20, maxGrowth>>20)
	}
	// No sender waits for those who do not send: neither 5 s as they, nor for its turn.
	if limit := 2*time.Second + 2*in.noise(); worst > tier.Within(limit) {
		t.Errorf("a good request was answered after %s, more than %s", worst, limit)
	}
	if limit := time.Second + in.noise(); gap > limit {
		t.Errorf("a round of the probe was %s late, more than %s", gap, limit)
	}
	if good < 10*held {
		t.Errorf("%d good requests were taken meanwhile, %d were told to come again", good, held)
	}
	t.Logf("%d bombs; %d good requests were taken meanwhile, the latest after %s, %d told to come again; a round was at most %s late, this process %s", bombs, good, worst, held, gap, in.witness.slippedBy())
	results.Add(t, results.Line{
		What: "inputs: 1,000 slow clients, 200 stalled calls, stopped programs and bombs at once", Count: slow + calls + programs + bombs, Lost: v.lost + v.undone + int(r.Missing),
		Figures: v.figures(map[string]float64{
			"bombs": float64(bombs), "memory_before_mib": float64(before >> 20), "memory_at_most_mib": float64(peak >> 20),
			"latest_good_answer_ms": float64(worst.Milliseconds()), "told_to_come_again": float64(held), "latest_round_ms": float64(gap.Milliseconds()),
			"noise_of_the_machine_ms": float64(in.witness.slippedBy().Milliseconds()),
		}),
	})
}

// memory returns a line of the process's status in bytes: VmRSS, or VmHWM, the most so far.
func (in *inputs) memory(line string) int64 {
	in.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", in.cmd.Process.Pid))
	if err != nil {
		in.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), line+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		in.t.Fatalf("the process has no %s", line)
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		in.t.Fatal(err)
	}
	return kib << 10
}

// metric returns the sum of those of the agent's own metrics of a name that have some label.
func (in *inputs) metric(name, label string) (sum float64) {
	in.t.Helper()
	body, err := in.get("/metrics")
	if err != nil {
		in.t.Fatal(err)
	}
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, label) {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
		if err != nil {
			in.t.Fatalf("%s: %v", line, err)
		}
		sum += v
	}
	return sum
}

// stall begins calls of gRPC, some on each of a few connections, sends a little of each, and
// gives out their statuses.
func (in *inputs) stall(calls int) <-chan string {
	const each = 50 // streams on a connection
	statuses := make(chan string, calls)
	var transports []*http.Transport
	var running sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	for i := range calls {
		if i%each == 0 {
			t := byGRPC.client().Transport.(*http.Transport)
			transports = append(transports, t)
		}
		client := &http.Client{Transport: transports[len(transports)-1]}
		running.Go(func() {
			body, more := io.Pipe()
			go func() { _, _ = more.Write([]byte("slow")) }() // and no end
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, in.url(byGRPC, 0), body)
			if err != nil {
				statuses <- err.Error()
				return
			}
			req.Header = byGRPC.header()
			resp, err := client.Do(req)
			more.Close()
			if err != nil {
				statuses <- err.Error()
				return
			}
			resp.Body.Close()
			statuses <- resp.Header.Get("Grpc-Status")
		})
	}
	in.t.Cleanup(func() {
		cancel()
		running.Wait()
		for _, t := range transports {
			t.CloseIdleConnections()
		}
	})
	return statuses
}

// stopAmid starts programs that send an endless body, and stops them (SIGSTOP) amid it.
func (in *inputs) stopAmid(n int) (stopped []*exec.Cmd) {
	in.t.Helper()
	curl, err := exec.LookPath("curl")
	if err != nil {
		cannot(in.t, "needs curl (Debian: apt-get install curl)")
	}
	trace := func(i int) string { return filepath.Join(in.dir, fmt.Sprintf("curl%d.trace", i)) }
	for i := range n {
		cmd := exec.Command("/bin/sh", "-c", `while echo "slow 1"; do sleep 0.02; done | `+curl+` -sS -H Expect: --trace-ascii "$1" -T - "$0"`, in.url(byText, i), trace(i))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if err := children.start(cmd.Start); err != nil {
			in.t.Fatal(err)
		}
		in.t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // it has ended
		stopped = append(stopped, cmd)
	}
	for i, cmd := range stopped {
		eventually(in.t, 30*time.Second, func() string {
			if sent, err := os.ReadFile(trace(i)); err != nil || !bytes.Contains(sent, []byte("=> Send data")) {
				return fmt.Sprintf("program %d has not begun its body: %v", i, err)
			}
			return ""
		})
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGSTOP); err != nil {
			in.t.Fatal(err)
		}
		eventually(in.t, 10*time.Second, func() string {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
			if _, state, _ := strings.Cut(string(stat), ") "); err != nil || !strings.HasPrefix(state, "T") {
				return fmt.Sprintf("a program is not stopped: %.20s %v", state, err)
			}
			return ""
		})
	}
	return stopped
}

// makeBombs makes small bodies that stand for great ones, and a great one that stands for
// nothing, by their encoding.
func makeBombs(t *testing.T) map[string][]byte {
	t.Helper()
	zeros := make([]byte, 256<<20)
	var gz bytes.Buffer
	z := gzip.NewWriter(&gz)
	_, _ = z.Write(zeros) // a buffer takes everything
	_ = z.Close()
	zs, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zst := zs.EncodeAll(zeros, nil)
	zs.Close()
	return map[string][]byte{
		"gzip": gz.Bytes(), "zstd": zst, "snappy": {0xff, 0xff, 0xff, 0xff, 0x0f, 0}, "": bytes.Repeat([]byte{0xff}, 1<<20),
	}
}

// bomb sends each by each way, some times.
func (in *inputs) bomb(all map[string][]byte, times int) (bombs int) {
	in.t.Helper()
	for range times {
		for _, w := range ways() {
			client := w.client()
			for encoding, body := range all {
				bombs++
				a := w.ask(in.t.Context(), client, http.MethodPost, in.url(w, tornWho), encoding, body)
				if a.status/100 != 4 && !(a.status == http.StatusServiceUnavailable && a.retry) {
					in.t.Errorf("a bomb (%q) by %s is answered %d %.200s", encoding, w, a.status, a.text)
				}
			}
			client.CloseIdleConnections()
		}
	}
	return bombs
}
