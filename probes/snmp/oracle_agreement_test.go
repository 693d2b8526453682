package snmp

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes/snmp/recording"
)

// exporterAgreement is the part of all samples of snmp_exporter that must be equal here in name, labels and value. The rest must be explained.
const exporterAgreement = 0.999

// agreement counts samples.
type agreement struct {
	mu                             sync.Mutex
	pairs, whole                   int // modules and devices with samples; those of which all are equal
	equal, other, missing, further int // of samples: the value differs, we do not have them, the exporter does not
	answered                       map[string]int
	madeUp                         map[string]int // equal samples of a made-up device, by module
	explained                      map[string]int // differences that docs/probes/snmp.md names, by the difference: a part of other, missing and further
	differ                         map[string]int // the rest, by module, metric and what is different
	refused                        map[string]int // modules and devices of which the exporter has no sample, by the cause
	refusedOurs                    int            // our samples of these
	details                        []string
}

// reading is what the two programs print of one module of one device.
type reading struct {
	module, device   string
	rec              *recording.Recording
	metrics          []metric
	ours, theirs     map[string]float64
	ourErr, theirErr error
}

// compare counts the samples of one reading.
func (s *agreement) compare(r *reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ourErr != nil || r.theirErr != nil {
		s.refusal(r)
		return
	}
	if len(r.theirs)+len(r.ours) == 0 {
		return
	}
	s.pairs++
	s.answered[r.module]++
	before, all := s.equal, max(len(r.theirs), len(r.ours))
	s.explain(r)
	for series, b := range r.theirs {
		switch a, ok := r.ours[series]; {
		case !ok:
			s.missing++
			s.note(r, "missing", series, nil, b)
		case a != b && (a == a || b == b): // NaN is as NaN
			s.other++
			s.note(r, "other value", series, a, b)
		default:
			s.equal++
		}
	}
	for series, a := range r.ours {
		if _, ok := r.theirs[series]; !ok {
			s.further++
			s.note(r, "further", series, a, nil)
		}
	}
	if s.equal-before == all {
		s.whole++
	}
}

// refusal counts a reading that fails in one of the programs. It is explained where snmp_exporter prints no sample of the whole device, because two of
// them have the same labels.
func (s *agreement) refusal(r *reading) {
	cause := fmt.Sprintf("%s: ours %s, theirs %s", r.module, oneCause(r.ourErr), oneCause(r.theirErr))
	s.details = append(s.details, fmt.Sprintf("%s %s: ours %v (%d samples), theirs %v", r.device, r.module, r.ourErr, len(r.ours), r.theirErr))
	if r.ourErr == nil && strings.Contains(r.theirErr.Error(), "was collected before with the same name and label values") {
		s.refused[r.module+": two rows with the same labels: the first, the exporter has no sample of the device"]++
		s.refusedOurs += len(r.ours)
		return
	}
	s.differ[cause]++
	s.missing += len(r.theirs)
	s.further += len(r.ours)
}

func (s *agreement) note(r *reading, kind, series string, ours, theirs any) {
	s.differ[r.module+" "+nameOf(series)+" "+kind]++
	s.details = append(s.details, fmt.Sprintf("%s %s: %s: %s: ours %v, theirs %v", r.device, r.module, kind, series, ours, theirs))
}

// explain removes the differences documented in docs/reference/probes.md from r, and counts them. Each is looked up in the recording.
func (s *agreement) explain(r *reading) {
	oids := map[string]bool{}
	for i := range r.metrics {
		m := &r.metrics[i]
		for _, v := range objectsBelow(r.rec, m.oid) {
			if o, ok := v.Value.(string); ok && v.Type == gosnmp.ObjectIdentifier {
				oids[fmt.Sprintf("%s=%q", m.name, strings.TrimPrefix(o, "."))] = true
			}
		}
	}
	for series := range r.ours {
		label := regexp.MustCompile(`\b` + nameOf(series) + `="[0-9.]+"`) // of the name of the metric, with the OID
		at := label.FindString(series)
		if _, ok := r.theirs[series]; ok || !strings.HasPrefix(at, nameOf(series)+`="2.`) || !oids[at] {
			continue
		}
		for theirs := range r.theirs {
			if _, ok := r.ours[theirs]; !ok && label.ReplaceAllString(theirs, "") == label.ReplaceAllString(series, "") {
				delete(r.theirs, theirs)
				delete(r.ours, series)
				s.other++
				s.explainAs(r, "an OID whose second number is 48 or more: as the device has it, the exporter's decoder takes it for several numbers", series)
				break
			}
		}
	}
}

// explainAs counts one explained difference.
func (s *agreement) explainAs(r *reading, why, series string) {
	s.explained[why]++
	s.details = append(s.details, fmt.Sprintf("%s %s: %s: %s", r.device, r.module, why, series))
}

// nameOf is the name of a series without its labels.
func nameOf(series string) string {
	name, _, _ := strings.Cut(series, "{")
	return name
}

// oneCause is an error in short.
func oneCause(err error) string {
	if err == nil {
		return "none"
	}
	return fmt.Sprintf("%.160s", strings.ReplaceAll(err.Error(), "\n", " "))
}

// sum adds up counts.
func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// print prints the counts. It fails if fewer samples are equal than required, if a difference is not explained, and if a module was compared neither on a
// recording nor on a made-up device.
func (s *agreement) print(t *testing.T, recordings int, modules []string) {
	unequal := s.other + s.missing + s.further
	share := float64(s.equal) / float64(max(1, s.equal+unequal))
	fmt.Printf("%d recordings, %d of %d modules answered, %d times, of which %d times all samples agree; %d samples are equal, %.4f%% of all: %d have another value, %d are missing, %d are further ones, of which %d are explained\n",
		recordings, len(s.answered), len(modules), s.pairs, s.whole, s.equal, 100*share, s.other, s.missing, s.further, sum(s.explained))
	for _, name := range slices.SortedFunc(slices.Values(modules), func(a, b string) int { return cmp.Or(s.answered[b]-s.answered[a], strings.Compare(a, b)) }) {
		fmt.Printf("  %-28s %5d devices; of a made-up device %4d samples are equal\n", name, s.answered[name], s.madeUp[name])
		if s.answered[name]+s.madeUp[name] == 0 {
			t.Errorf("the module %s was compared on no device", name)
		}
	}
	fmt.Printf("%d times snmp_exporter has no sample of a device; %d are read here\n", sum(s.refused), s.refusedOurs)
	for _, line := range slices.Concat(counted(s.explained), counted(s.differ), counted(s.refused)) {
		fmt.Println("  " + line)
	}
	if dir := os.Getenv("ORACLE_DETAILS"); dir != "" {
		slices.Sort(s.details)
		if err := os.WriteFile(filepath.Join(dir, "exporter.txt"), []byte(strings.Join(s.details, "\n")+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
	if s.equal == 0 {
		t.Error("no sample was compared: the test proves nothing")
	}
	if share < exporterAgreement {
		t.Errorf("%.4f%% of the samples are as snmp_exporter prints them, want %.1f%%", 100*share, 100*exporterAgreement)
	}
	if len(s.differ) > 0 {
		t.Errorf("%d differences are not explained in docs/probes/snmp.md", sum(s.differ))
	}
}
