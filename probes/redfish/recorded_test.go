package redfish

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/probes"
)

// TestRecordedSeries holds deploy/mixin/hardware/recorded, on which alerts and the dashboard are tested, to what the probe makes of the
// recordings of three vendors. Series of states that a component is not in are left out there.
func TestRecordedSeries(t *testing.T) {
	for name, vendor := range map[string]string{"idrac": "dell", "ilo": "hpe", "rackmount1": "contoso"} {
		t.Run(vendor, func(t *testing.T) {
			r := probes.NewRound(0)
			r.Source = "redfish"
			for _, report := range reports(load(t, name+".json").walk(t)) {
				report.AddTo(r)
			}
			var lines []string
			for _, s := range r.Samples() {
				if s.Family.Name == "hw_status" && s.Value == 0 {
					continue
				}
				var labels []string
				for i := 0; i < len(s.Labels); i += 2 {
					if s.Labels[i+1] != "" {
						labels = append(labels, fmt.Sprintf("%s=%q", s.Labels[i], s.Labels[i+1]))
					}
				}
				slices.Sort(labels)
				lines = append(lines, fmt.Sprintf("%s{%s} %.6g\n", s.Family.Name, strings.Join(labels, ","), s.Value))
			}
			slices.Sort(lines)
			file, got := filepath.Join("../../deploy/mixin/hardware/recorded", vendor+".prom"), strings.Join(lines, "")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("go test -update writes it (-want +got):\n%s", d)
			}
		})
	}
}
