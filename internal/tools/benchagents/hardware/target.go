// Package hardware serves pages of hardware metrics for measurements of agents: many series whose values move as temperatures, fans,
// counters and states do. All of it follows from a seed, so that each agent sees the same values.
package hardware

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// families is the number of metric families of a target: each component with each kind of value.
const families = 40

// kind says how the values of a family change.
type kind int

const (
	temperature kind = iota // in steps of half a degree around a set point, every other scrape
	fan                     // around a speed, in steps of 30 revolutions, at nearly each scrape
	counter                 // grows at its own rate, at nine scrapes of ten
	state                   // 0 or 1, and changes once in a thousand scrapes
)

// kinds returns, for each kind, the suffix of a family's name, its type and its help.
func kinds() []struct{ suffix, of, help string } {
	return []struct{ suffix, of, help string }{
		temperature: {"temperature_celsius", "gauge", "Temperature at the sensor."},
		fan:         {"fan_speed_rpm", "gauge", "Speed of the fan that cools the component."},
		counter:     {"operations_total", "counter", "Operations that the component has finished."},
		state:       {"failed", "gauge", "Whether the component says that it has failed."},
	}
}

func components() []string {
	return []string{"cpu", "dimm", "nvme", "disk", "nic", "gpu", "psu", "fan", "board", "chassis"}
}

// series is one line of a page: its text up to the value, and the state of the value.
type series struct {
	text  string // "# HELP …" and "# TYPE …" of the family too, for its first series
	kind  kind
	value float64
	rate  float64 // for a counter its largest step; else the mean of its values
}

// Target is a page of series resembling hardware metrics. The same seed gives the same sequence of pages. Safe for
// concurrent requests.
type Target struct {
	mu     sync.Mutex
	random *rand.Rand
	series []series
	page   []byte // the last page; its memory is reused

	served atomic.Int64 // see Served
	first  atomic.Int64 // when the first page was requested, in nanoseconds since the epoch; 0: not yet
}

// NewTarget returns the target with that number, of a run's load, with size series.
func NewTarget(seed uint64, number, size int) *Target {
	t := &Target{random: rand.New(rand.NewPCG(seed, uint64(number))), series: make([]series, 0, size)}
	for f := range families {
		n := size / families
		if f < size%families {
			n++
		}
		t.addFamily(number, f, n)
	}
	return t
}

// addFamily adds n series: 25 sensors a host.
func (t *Target) addFamily(number, family, n int) {
	const sensors = 25
	component, k := components()[family/len(kinds())], kind(family%len(kinds()))
	what := kinds()[k]
	name := "hw_" + component + "_" + what.suffix
	head := fmt.Sprintf("# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, what.help, what.of)
	for i := range n {
		host := number*1000 + i/sensors
		s := series{kind: k}
		s.text = fmt.Sprintf(`%s%s{host="node-%05d.fra1.example.net",id="%s-%s",component="%s",sensor="%s %c%d",location="room %d row %c rack %02d"} `,
			head, name, host, component, serial(component, host, i%sensors), component, what.of, 'A'+rune(i%5), i/5%5, number%4, 'A'+rune(host%7), host%42)
		head = ""
		switch k {
		case temperature:
			s.rate = float64(30 + t.random.IntN(40))
			s.value = s.rate
		case fan:
			s.rate = float64(2400 + 30*t.random.IntN(300))
			s.value = s.rate
		case counter:
			s.rate = float64(1 + t.random.IntN(5000))
			s.value = float64(t.random.IntN(1e9))
		case state: // all is well
		}
		t.series = append(t.series, s)
	}
}

// Served returns how many samples were on all requested pages.
func (t *Target) Served() int64 { return t.served.Load() }

// First returns when the first page was requested; ok is false if none was.
func (t *Target) First() (at time.Time, ok bool) {
	ns := t.first.Load()
	return time.Unix(0, ns), ns != 0
}

// serial returns a serial number in the style of vendors: all values of a part have the same one, and different parts
// have different ones.
func serial(component string, host, slot int) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s/%d/%d", component, host, slot)
	const digits, most = 36, 36 * 36 * 36 * 36 * 36 * 36 * 36
	return strings.ToUpper(strconv.FormatUint(rand.NewPCG(h.Sum64(), 0).Uint64()%most, digits))
}

// move changes a value for the next scrape.
func (s *series) move(random *rand.Rand) {
	switch s.kind {
	case temperature:
		if random.IntN(2) == 0 {
			s.value = s.rate + float64(random.IntN(9)-4)/2
		}
	case fan:
		if random.IntN(5) > 0 {
			s.value = s.rate + 30*float64(random.IntN(7)-3)
		}
	case counter:
		if random.IntN(10) > 0 {
			s.value += float64(1 + random.IntN(int(s.rate)))
		}
	case state:
		if random.IntN(1000) == 0 {
			s.value = 1 - s.value
		}
	}
}

// ServeHTTP answers a scrape in the text format 0.0.4, uncompressed: the cost of compression is the same for all
// agents.
func (t *Target) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	t.first.CompareAndSwap(0, time.Now().UnixNano())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(t.page)))
	if _, err := w.Write(t.page); err == nil { // otherwise the agent has gone
		t.served.Add(int64(len(t.series)))
	}
}

// next writes the page of the next scrape.
func (t *Target) next() {
	t.page = t.page[:0]
	for i := range t.series {
		s := &t.series[i]
		s.move(t.random)
		t.page = append(t.page, s.text...)
		t.page = strconv.AppendFloat(t.page, s.value, 'g', -1, 64)
		t.page = append(t.page, '\n')
	}
}
