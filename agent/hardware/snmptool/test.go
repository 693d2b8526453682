package snmptool

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"hwsagent/probes"
	"hwsagent/probes/hw"
	"hwsagent/probes/snmp"
	"hwsagent/probes/snmp/recording"
)

// Tested is the result of reading a recording with modules.
type Tested struct {
	File      string         `json:"file"`
	Variables int            `json:"variables"`
	Notes     []string       `json:"notes,omitempty"` // lines that are not variables
	Modules   []TestedModule `json:"modules"`
	Read      int            `json:"read"`   // variables read by a module
	Unread    []Unread       `json:"unread"` // the others, by owner, most first
}

// TestedModule is the result of one module.
type TestedModule struct {
	Name    string         `json:"name"`
	Samples int            `json:"samples"`
	Metrics map[string]int `json:"metrics"` // samples by name
	Error   string         `json:"error,omitempty"`
}

// Unread counts the variables of one vendor or standard that no module reads.
type Unread struct {
	Below      string `json:"below"`      // OID
	Enterprise int    `json:"enterprise"` // IANA's number of the vendor; 0 for standards
	Variables  int    `json:"variables"`
	Example    string `json:"example"` // the first OID
}

// tryWithin bounds the reading of a recording by one module on this machine.
const tryWithin = time.Minute

// Test reads a recording with each of the modules, or with all built-in ones if none is named; definitions are directories of
// definitions of hardware in addition to the agent's.
func Test(ctx context.Context, file string, modules, definitions []string, logger *slog.Logger) (Tested, error) {
	done := Tested{File: file}
	if len(modules) == 0 {
		modules = snmp.Modules()
	}
	f, err := os.Open(file) // #nosec G304 -- the user's own
	if err != nil {
		return done, fmt.Errorf("open the recording: %w", err)
	}
	rec, notes, err := recording.Parse(f)
	_ = f.Close() // opened for reading only
	if err != nil {
		return done, err
	}
	if done.Variables, done.Notes = rec.Len(), notes; done.Variables == 0 {
		return done, fmt.Errorf("read %s: it has no variable; a recording has lines OID|TAG|VALUE", file)
	}
	device, err := recording.Serve(rec)
	if err != nil {
		return done, err
	}
	defer func() { _ = device.Close() }()
	read := map[string]bool{}
	for _, name := range modules {
		m, err := try(ctx, device.Addr(), name, definitions, read, logger)
		if err != nil {
			return done, err
		}
		done.Modules = append(done.Modules, m)
	}
	groups := map[string]*Unread{}
	for _, v := range rec.All() {
		oid := strings.TrimPrefix(v.Name, ".")
		if read[oid] {
			done.Read++
			continue
		}
		below, enterprise := owner(oid)
		if groups[below] == nil {
			groups[below] = &Unread{Below: below, Enterprise: enterprise, Example: oid}
		}
		groups[below].Variables++
	}
	for _, g := range groups {
		done.Unread = append(done.Unread, *g)
	}
	slices.SortFunc(done.Unread, func(a, b Unread) int {
		return cmp.Or(b.Variables-a.Variables, strings.Compare(a.Below, b.Below))
	})
	return done, nil
}

func try(ctx context.Context, target, module string, definitions []string, read map[string]bool, logger *slog.Logger) (TestedModule, error) {
	done := TestedModule{Name: module, Metrics: map[string]int{}}
	c := config(target, snmp.Auth{}, 2*time.Second, 1)
	c.Modules, c.Definitions = []string{module}, definitions
	p, err := snmp.New(c, nil, logger)
	if err != nil {
		return done, err
	}
	defer func() { _ = p.Close() }()
	p.OnRead(func(oid string) { read[oid] = true })
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	r := probes.NewRound(0)
	if err := p.Collect(ctx, r); err != nil {
		done.Error = err.Error()
	}
	for _, s := range r.Samples() {
		if name := s.Family.Name; !strings.HasPrefix(name, "snmp_scrape_") && !strings.HasPrefix(name, "hwsagent_device_") {
			done.Samples++
			done.Metrics[name]++
		}
	}
	return done, nil
}

// owner returns the subtree that an object belongs to: a vendor's, below 1.3.6.1.4.1, or a standard's.
func owner(oid string) (below string, enterprise int) {
	const vendors = "1.3.6.1.4.1."
	if rest, ok := strings.CutPrefix(oid, vendors); ok {
		number, _, _ := strings.Cut(rest, ".")
		n, _ := strconv.Atoi(number)
		return vendors + number, n
	}
	depth := 7 // a module below mib-2
	if strings.HasPrefix(oid, "1.0.8802.") {
		depth = 6
	}
	parts := strings.SplitN(oid, ".", depth+1)
	return strings.Join(parts[:min(depth, len(parts))], "."), 0
}

// Modules returns the names of the built-in modules.
func Modules() []string { return snmp.Modules() }

// Write prints the result for a person.
func (t *Tested) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d variables, %d of them read\n", t.File, t.Variables, t.Read)
	for i, n := range t.Notes {
		if i == 5 {
			fmt.Fprintf(&b, "  and %d more lines that are not variables\n", len(t.Notes)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", n)
	}
	for _, m := range t.Modules {
		fmt.Fprintf(&b, "module %s: %d samples of %d metrics\n", m.Name, m.Samples, len(m.Metrics))
		if m.Error != "" {
			fmt.Fprintf(&b, "  %s\n", comment(m.Error))
		}
		var hardware []string
		for name, n := range m.Metrics {
			if strings.HasPrefix(name, hw.Prefix) {
				hardware = append(hardware, fmt.Sprintf("  %s %d", name, n))
			}
		}
		slices.Sort(hardware)
		for _, line := range hardware {
			b.WriteString(line + "\n")
		}
	}
	if len(t.Unread) > 0 {
		b.WriteString("read by no module:\n")
	}
	for _, u := range t.Unread {
		vendor := ""
		if u.Enterprise != 0 {
			vendor = fmt.Sprintf(" (enterprise %d)", u.Enterprise)
		}
		fmt.Fprintf(&b, "  %7d below %s%s, such as %s\n", u.Variables, u.Below, vendor, u.Example)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
