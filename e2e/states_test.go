package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"html"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// answers returns a receiver that answers every request alike.
func answers(t *testing.T, status int, header, value, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if header != "" {
			w.Header().Set(header, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// certified returns a receiver with a certificate of its own that ends at that time.
func certified(t *testing.T, end time.Time) (url string, certificate []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "receiver.plant"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: end,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	if certificate, err = x509.CreateCertificate(rand.Reader, c, c, key.Public(), key); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, certificate
}

// tags are those of HTML.
var tags = regexp.MustCompile(`(?s)<(script|style).*?</(script|style)>|<[^>]*>`)

// state is a way to fail, and how page and status say it: whose it is, and then in any order the cause, since when, and what it costs,
// before what to do. since and cost are regular expressions.
type state struct{ whose, cause, since, cost, try string }

// The usual words of a target that takes nothing.
const (
	whileDown = `[Dd]own since \d\d:\d\d:\d\d \(\d+(\.\d)? (s|ms|min)\)`
	waitsOnly = `nothing is lost; (\d+|\d+\D\d+) samples wait on disk`
)

// unsaid returns what of the state the text of a terminal does not say; "" if it says all.
func (s state) unsaid(text string) string {
	missing := "whose it is: " + s.whose
	for _, at := range regexp.MustCompile(`\b`+s.whose+`\b[^:]{0,200}: `).FindAllStringIndex(text, -1) {
		body, tries, _ := strings.Cut(text[at[0]:], "Try: ")
		tries = tries[:min(len(tries), 400)]
		var lacks []string
		for what, found := range map[string]bool{
			"the cause " + s.cause: strings.Contains(body, s.cause), "what to do: " + s.try: strings.Contains(tries, s.try),
			"since when: " + s.since: regexp.MustCompile(s.since).MatchString(body), "what it costs: " + s.cost: regexp.MustCompile(s.cost).MatchString(body),
		} {
			if !found {
				lacks = append(lacks, what)
			}
		}
		if len(lacks) == 0 {
			return ""
		}
		missing = strings.Join(lacks, ", ")
	}
	return missing
}

// rowsOf are the rows of the page, and what of each shows before it opens.
var rowsOf = regexp.MustCompile(`(?s)<details class="(?:error|warning|note)">\s*<summary>(.*?)</summary>(.*?)</details>`)

// unsaidInRow returns what of the state no row of the page says; "" if one says all. Before it opens, the row says since when, what
// it costs and what to do.
func (s state) unsaidInRow(page string) string {
	missing := "whose it is: " + s.whose
	for _, m := range rowsOf.FindAllStringSubmatch(page, -1) {
		closed, whole := plainHTML(m[1]), plainHTML(m[0])
		if !regexp.MustCompile(`\b` + s.whose + `\b`).MatchString(closed) {
			continue
		}
		try := closed // of several problems, the first one
		if regexp.MustCompile(`, \d+ more`).MatchString(closed) {
			try = whole
		}
		_, try, _ = strings.Cut(try, "Try: ")
		var lacks []string
		for what, found := range map[string]bool{
			"the cause " + s.cause: strings.Contains(whole, s.cause), "what to do: " + s.try: strings.Contains(try, s.try),
			"since when: " + s.since: regexp.MustCompile(s.since).MatchString(whole), "what it costs: " + s.cost: regexp.MustCompile(s.cost).MatchString(whole),
			"since when, closed":    regexp.MustCompile(`since \d\d:\d\d:\d\d \d+(\.\d)? (s|ms|min)`).MatchString(closed),
			"what it costs, closed": regexp.MustCompile(`\d(?: samples?| requests)? (?:waiting|refused|lost)|the old one is in force|log does not grow`).MatchString(closed),
		} {
			if !found {
				lacks = append(lacks, what)
			}
		}
		if len(lacks) == 0 {
			return ""
		}
		missing = strings.Join(lacks, ", ") + " in the row " + whole
	}
	return missing
}

// understood waits until the page alone says all of each state, and `hwsagent status` alone as well. status runs that command.
func understood(t *testing.T, states []state, page func() (string, error), status func() (stdout string, code int), want int) {
	t.Helper()
	eventually(t, 60*time.Second, func() string {
		body, err := page()
		if err != nil {
			return err.Error()
		}
		stdout, code := status()
		if code != want {
			return fmt.Sprintf("exit code %d, want %d\n%s", code, want, stdout)
		}
		text := strings.Join(strings.Fields(stdout), " ")
		for _, s := range states {
			if lacks := s.unsaidInRow(body); lacks != "" {
				return fmt.Sprintf("%s: the page does not say %s", s.whose, lacks)
			}
			if lacks := s.unsaid(text); lacks != "" {
				return fmt.Sprintf("%s: status does not say %s\n%s", s.whose, lacks, text)
			}
		}
		return ""
	})
}

// page returns the page of the agent.
func (a *agent) page() (string, error) {
	_, body, err := a.ask(http.MethodGet, "/")
	return body, err
}

// onSmallDisk starts an agent whose storage is a file system of its own, of so many bytes, which only it sees. inside runs a script there.
func onSmallDisk(t *testing.T, bytes int, config string) (a *agent, inside func(script string) (stdout string, code int)) {
	t.Helper()
	unshare, nsenter := needs(t, "unshare"), needs(t, "nsenter")
	a = newAgent(t, config)
	if err := os.Mkdir(a.storage, 0o700); err != nil {
		t.Fatal(err)
	}
	mount := []string{"--mount", "--propagation", "private", "sh", "-c", `mount -t tmpfs -o size="$0",mode=700 tmpfs "$1" && shift && exec "$@"`, fmt.Sprint(bytes), a.storage}
	if out, err := exec.Command(unshare, append(mount, "true")...).CombinedOutput(); err != nil {
		cannot(t, "needs root and CAP_SYS_ADMIN, to mount a small disk: "+string(out))
	}
	a.args = append(append(mount, a.name), a.args...)
	a.name = unshare
	a.run()
	t.Cleanup(func() {
		a.kill()
		if t.Failed() {
			t.Logf("the agent said:\n%s", a.tail(40))
		}
	})
	return a, func(script string) (string, int) {
		stdout, _, code := runToEnd(t, time.Minute, nsenter, fmt.Sprintf("--mount=/proc/%d/ns/mnt", a.cmd.Process.Pid), "sh", "-c", script)
		return stdout, code
	}
}

// TestStatesOfTheDiskAreUnderstood: as [TestFaultsAreExplained] for a disk that somebody else fills, in part and as a whole, and for what
// is lost by it.
func TestStatesOfTheDiskAreUnderstood(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	const load = "global: {scrape_interval: 1s}\nwal: {max_bytes: 1GiB, min_free_bytes: %s, warn_full_within: 0s}\n" +
		"probes: [{type: canary, series: 20000, interval: 200ms, timeout: 200ms, noise: true}]\nremote_write:\n%s"
	for _, c := range []struct {
		name    string
		minFree string
		leave   int // bytes that others leave free
		target  string
		code    int // of status
		states  func(a *agent) []state
	}{
		{"little space", "16MiB", 12 * mib, "http://127.0.0.1:1/", exitTarget, func(a *agent) []state {
			return []state{
				{"[lL]og", "are free at " + a.storage + ", less than wal.min_free_bytes", `since \d\d:\d\d`, "the log does not grow, and where it would, new samples replace the oldest", "make room on that file system"},
				{"plant", "the log, or the target's max_backlog, was full, and the oldest samples were dropped", `at \d\d:\d\d|from \d\d:\d\d:\d\d to \d\d:\d\d:\d\d`, `samples were lost`, "make room on the disk"},
			}
		}},
		{"full disk", "0B", 0, answers(t, 204, "", "", ""), 5, func(a *agent) []state {
			return []state{{"[lL]og", "no space left on device", `the log cannot be written since \d\d:\d\d`, `New samples are refused meanwhile \(.* samples so far\)`, "make room or repair the file system at " + a.storage}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, inside := onSmallDisk(t, 64*mib, fmt.Sprintf(load, c.minFree, entry("plant", c.target)))
			fill := fmt.Sprintf(`room=$(($(stat -f -c '%%a * %%S' %[1]s) - %[2]d)); [ $room -le 0 ] || head -c $room /dev/zero >>%[1]s/ballast`, a.storage, c.leave)
			inside(fill) // head fails where the agent was faster
			understood(t, c.states(a), a.page, func() (string, int) {
				if c.leave == 0 {
					inside(fill) // what the agent gave back
				}
				return inside(binary(t) + " status --storage.path " + a.storage)
			}, c.code)
			if c.leave > 0 {
				return
			}
			eventually(t, 30*time.Second, func() string { // while it lasts, it is one finding
				inside(fill)
				stdout, _ := inside(binary(t) + " status --storage.path " + a.storage)
				if !strings.Contains(stdout, "the log cannot be written since") || strings.Count(stdout, " log: ") != 1 {
					return stdout
				}
				return ""
			})
		})
	}
}

// plainHTML returns the text of a page, in one line.
func plainHTML(page string) string {
	text := tags.ReplaceAllString(page, " ")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}
