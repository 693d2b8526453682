//go:build linux

package host

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/panics"
	"hwsagent/probes"
)

// TestOnceThatHangs: a query that does not come back costs its limit once, and is skipped until it
// has come back.
func TestOnceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, release := gauge("node_x", "X."), make(chan struct{})
		var asked atomic.Int64 // a question that hangs goes on beside the rounds
		e := &environment{settings: &settings{limit: 2 * time.Second}, panics: panics.New("test", quiet())}
		o := newOnce(e, func() (s samples, err error) {
			asked.Add(1)
			<-release
			s.add(f, 1)
			return s, nil
		})
		for i := range 3 {
			began := time.Now()
			err := o.read(t.Context(), probes.NewRound(0))
			if _, stuck := errors.AsType[stuckError](err); !stuck || asked.Load() != 1 {
				t.Errorf("round %d: %v, asked %d times", i, err, asked.Load())
			}
			if took, want := time.Since(began), map[bool]time.Duration{true: 2 * time.Second}[i == 0]; took != want {
				t.Errorf("round %d took %v, want %v", i, took, want)
			}
		}
		close(release)
		synctest.Wait()
		r := probes.NewRound(0)
		if err := o.read(t.Context(), r); err != nil || len(r.Samples()) != 1 || asked.Load() != 2 {
			t.Errorf("when it answers again: %v, %d samples, asked %d times", err, len(r.Samples()), asked.Load())
		}
	})
}

// TestSELinux: off, and each mode in force beside each that is configured.
func TestSELinux(t *testing.T) {
	for _, tc := range []struct {
		enforce, config string
		want            []float64 // enabled, current, configured
	}{
		{"", "SELINUX=enforcing\n", []float64{0}},
		{"1", "# SELINUX=disabled\nSELINUX=enforcing\nSELINUXTYPE=targeted\n", []float64{1, 1, 1}},
		{"0", "SELINUX=Enforcing\n", []float64{1, 0, 1}},
		{"1", "SELINUX=permissive\n", []float64{1, 1, 0}},
		{"0", "SELINUX=disabled\n", []float64{1, 0, -1}},
		{"1", "", []float64{1, 1, -1}},
	} {
		c := Config{SysPath: t.TempDir(), RootFSPath: t.TempDir()}
		if tc.enforce != "" {
			write(t, c.SysPath, map[string]string{"fs/selinux/enforce": tc.enforce})
		}
		if tc.config != "" {
			write(t, c.RootFSPath, map[string]string{"etc/selinux/config": tc.config})
		}
		s, err := newSettings(c)
		if err != nil {
			t.Fatal(err)
		}
		r := probes.NewRound(0)
		if err := newSELinux(&environment{settings: s, panics: panics.New("test", quiet())}).read(context.Background(), r); err != nil {
			t.Error(err)
		}
		var got []float64
		for _, sample := range r.Samples() {
			got = append(got, sample.Value)
		}
		if len(got) != len(tc.want) {
			t.Errorf("%+v gives %v", tc, got)
			continue
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("%+v gives %v", tc, got)
			}
		}
	}
}

// TestCountSocket: lines that are no socket count nothing.
func TestCountSocket(t *testing.T) {
	for line, want := range map[string]int{
		"": 0, "0: a b": 0, "sl local rem st tx_queue": 0, "0: a b 0C 00000001:00000002": 0,
		"0: a b 01 00000001:00000002": 3, "0: a b 01 x": 1,
	} {
		count := map[string]float64{}
		countSocket(count, []byte(line))
		if len(count) != want {
			t.Errorf("%q counts %v", line, count)
		}
	}
}
