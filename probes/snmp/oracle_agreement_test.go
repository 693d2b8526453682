package snmp

import (
	"cmp"
	"fmt"
	"maps"
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

// exporterAgreement is the part of the samples that must be equal in name, labels and value, of those for which docs/probes/snmp.md names no difference.
const exporterAgreement = 0.999

// agreement counts samples.
type agreement struct {
	mu                             sync.Mutex
	pairs, whole                   int // modules and devices with samples; those of which all are equal
	equal, other, missing, further int // of samples: the value differs, we do not have them, the exporter does not
	answered                       map[string]int
	explained                      map[string]int // differences that docs/probes/snmp.md names, by the difference
	differ                         map[string]int // the rest, by module, metric and what is different
	refused                        map[string]int // modules and devices that one of the two could not read, by the cause
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
		s.refused[fmt.Sprintf("%s: ours %s, theirs %s", r.module, oneCause(r.ourErr), oneCause(r.theirErr))]++
		s.details = append(s.details, fmt.Sprintf("%s %s: ours %v (%d samples), theirs %v", r.device, r.module, r.ourErr, len(r.ours), r.theirErr))
		if r.theirErr == nil {
			s.missing += len(r.theirs)
		}
		return
	}
	if len(r.theirs)+len(r.ours) == 0 {
		return
	}
	s.pairs++
	s.answered[r.module]++
	before := s.equal
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
	if s.equal-before == len(r.theirs) && len(r.ours) == len(r.theirs) {
		s.whole++
	}
}

func (s *agreement) note(r *reading, kind, series string, ours, theirs any) {
	s.differ[r.module+" "+nameOf(series)+" "+kind]++
	s.details = append(s.details, fmt.Sprintf("%s %s: %s: %s: ours %v, theirs %v", r.device, r.module, kind, series, ours, theirs))
}

// longAddress is a label with more than six octets of a hardware address.
var longAddress = regexp.MustCompile(`("(?:[0-9A-F]{2}:){5}[0-9A-F]{2})(?::[0-9A-F]{2})+"`)

// explain removes the differences documented in docs/probes/snmp.md from r, and counts them. Each is looked up in the recording: a 0 of the exporter
// counts as made of text only if the device has as many values of that object that are not numbers.
func (s *agreement) explain(r *reading) {
	metrics, none, null := map[string]*metric{}, map[string]int{}, map[string]int{}
	for i := range r.metrics {
		m := &r.metrics[i]
		metrics[m.name] = m
		for _, v := range objectsBelow(r.rec, m.oid) {
			if slices.Contains([]gosnmp.Asn1BER{gosnmp.OctetString, gosnmp.Null, gosnmp.ObjectIdentifier, gosnmp.IPAddress}, v.Type) {
				none[m.name]++
			}
			if v.Type == gosnmp.Null {
				null[m.name]++
			}
		}
	}
	for series, v := range r.theirs {
		m := metrics[nameOf(series)]
		if _, ok := r.ours[series]; ok || m == nil {
			continue
		}
		isNumber := slices.Contains([]metricType{typeGauge, typeCounter, typeFloat, typeDouble}, m.typ)
		switch {
		case isNumber && none[m.name] > 0 && v == m.scaled(0):
			none[m.name]--
			s.explained["text or NULL where a number should be: no sample, the exporter says 0"]++
		case !isNumber && null[m.name] > 0 && !strings.Contains(series, m.name+"="):
			null[m.name]--
			s.explained["NULL where a text should be: no sample, the exporter has one of no length"]++
		default:
			continue
		}
		delete(r.theirs, series)
	}
	for series := range r.ours {
		short := longAddress.ReplaceAllString(series, `$1"`)
		if m := metrics[nameOf(series)]; short == series || m == nil || m.typ != typePhysAddress48 {
			continue
		}
		if _, ok := r.theirs[short]; ok {
			delete(r.ours, series)
			delete(r.theirs, short)
			s.explained["PhysAddress48 of more than six octets: all of them, the exporter the first six"]++
		}
	}
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

// print prints the counts, and fails if fewer values are equal than required.
func (s *agreement) print(t *testing.T, recordings int, modules []string) {
	unequal, explained := s.other+s.missing+s.further, 0
	for _, n := range s.explained {
		explained += n
	}
	share := float64(s.equal) / float64(max(1, s.equal+unequal))
	fmt.Printf("%d recordings, %d of %d modules answered, %d times, of which %d times all samples agree; %d samples are equal, %d differ as documented; without these %.4f%% are equal: %d have another value, %d are missing, %d are further ones\n",
		recordings, len(s.answered), len(modules), s.pairs, s.whole, s.equal, explained, 100*share, s.other, s.missing, s.further)
	for _, name := range slices.SortedFunc(maps.Keys(s.answered), func(a, b string) int { return cmp.Or(s.answered[b]-s.answered[a], strings.Compare(a, b)) }) {
		fmt.Printf("  %-28s %5d devices\n", name, s.answered[name])
	}
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
}
