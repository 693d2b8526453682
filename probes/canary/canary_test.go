package canary

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"hwsagent/probes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collect runs one round and returns its values.
func collect(t *testing.T, p *Probe) []float64 {
	t.Helper()
	r := probes.NewRound(0)
	if err := p.Collect(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	var values []float64
	for _, s := range r.Samples() {
		values = append(values, s.Value)
	}
	return values
}

func open(t *testing.T, c Config) *Probe {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCountsUp(t *testing.T) {
	p := open(t, Config{Series: 3})
	for _, want := range [][]float64{{1, 1, 1}, {2, 2, 2}} {
		if diff := cmp.Diff(want, collect(t, p)); diff != "" {
			t.Errorf("a round (-want +got):\n%s", diff)
		}
		p.Committed(nil)
	}
	r := probes.NewRound(0)
	if err := p.Collect(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got := r.Samples()[2].Labels; !cmp.Equal(got, []string{"series", "2"}) {
		t.Errorf("labels of the third series: %v", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestNoiseLeavesTheNumber(t *testing.T) {
	p := open(t, Config{Series: 1000, Noise: true})
	seen := map[float64]bool{}
	for _, number := range []uint64{1, 2, 1_000_000, 1 << 25} {
		p.number = number - 1
		for i, v := range collect(t, p) {
			if math.Floor(v) != float64(number) || v-math.Floor(v) != Fraction(number, i) {
				t.Fatalf("series %d of round %d is %v", i, number, v)
			}
			seen[v] = true
		}
	}
	if len(seen) < 3900 {
		t.Errorf("4000 values, only %d of them differ", len(seen))
	}
}

func TestNative(t *testing.T) {
	p := open(t, Config{Series: 2, Native: true})
	for number := 1; number <= 3; number++ {
		r := probes.NewRound(0)
		if err := p.Collect(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if len(r.Samples()) != 6 {
			t.Fatalf("%d samples, want three of each series", len(r.Samples()))
		}
		for i, s := range r.Samples() {
			if want := []string{"series", strconv.Itoa(i / 3)}; !cmp.Equal(s.Labels, want) {
				t.Errorf("sample %d has labels %v, want %v", i, s.Labels, want)
			}
			switch {
			case s.H != nil:
				if err := s.H.Validate(); err != nil || s.Family.Name != HistogramName || s.H.Sum != float64(number) {
					t.Errorf("sample %d of %s: sum %v, %v", i, s.Family.Name, s.H.Sum, err)
				}
			case s.FH != nil:
				if err := s.FH.Validate(); err != nil || s.Family.Name != FloatHistogramName || s.FH.Sum != float64(number) {
					t.Errorf("sample %d of %s: sum %v, %v", i, s.Family.Name, s.FH.Sum, err)
				}
			default:
				if len(s.Exemplars) != 1 || s.Exemplars[0].Value != float64(number) || s.Exemplars[0].Labels.Get("trace_id") != strconv.Itoa(number) {
					t.Errorf("sample %d has the exemplars %v", i, s.Exemplars)
				}
			}
		}
	}
}

func TestJournalTellsTriedFromAcknowledged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	p := open(t, Config{Series: 2, JournalFile: file})
	collect(t, p)
	p.Committed(nil)
	collect(t, p)
	p.Committed(errors.New("disk full"))
	collect(t, p)
	if err := p.Close(); err != nil { // killed before round 3 was committed
		t.Fatal(err)
	}

	p = open(t, Config{Series: 2, JournalFile: file})
	defer p.Close()
	if got := collect(t, p)[0]; got != 4 {
		t.Errorf("the first number after a restart is %v, want 4: no number is tried twice", got)
	}
	p.Committed(nil)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(text))
	want := strings.Fields("try 1 ack 1 try 2 try 3 try 4 ack 4")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the journal is %v (%v), want 0600", info.Mode(), err)
	}
}

func TestJournalWithCutLine(t *testing.T) {
	for text, want := range map[string]float64{
		"":                     1,
		"try 7\nack 7\ntry 8":  9,
		"try 7\nack 7\ntry ":   8,
		"try 7\nack 7\nt":      8,
		"try 41\nack 41\nack ": 42,
		"rubbish\n\x00\n":      1,
	} {
		file := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := open(t, Config{JournalFile: file})
		if got := collect(t, p)[0]; got != want {
			t.Errorf("after %q the next number is %v, want %v", text, got, want)
		}
		p.Close()
		lines, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(lines), "ttry") || strings.Contains(string(lines), "try try") {
			t.Errorf("after %q the cut line swallowed the next: %q", text, lines)
		}
	}
}

func TestConfigRefused(t *testing.T) {
	for _, c := range []Config{{Series: -1}, {Series: maxSeries + 1}} {
		if _, err := New(c); err == nil {
			t.Errorf("New(%+v) succeeded", c)
		}
	}
	p := open(t, Config{JournalFile: filepath.Join(t.TempDir(), "absent", "journal")})
	r := probes.NewRound(0)
	if err := p.Collect(t.Context(), r); err == nil || len(r.Samples()) > 0 {
		t.Errorf("a journal that cannot be opened: error %v, %d samples", err, len(r.Samples()))
	}
}
