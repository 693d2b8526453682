package status

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Span formats a length of time for people, with two or three significant digits.
func Span(d time.Duration) string {
	s := math.Abs(d.Seconds())
	one := func(v float64, unit string) string {
		if v < 9.95 {
			return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + " " + unit
		}
		return strconv.FormatFloat(v, 'f', 0, 64) + " " + unit
	}
	switch {
	case s == 0:
		return "0 s"
	case s < 0.0995:
		return one(s*1000, "ms")
	case s < 99.5:
		return one(s, "s")
	case s < 99.5*60:
		return one(s/60, "min")
	case s < 72*3600:
		return one(s/3600, "h")
	}
	return one(s/86400, "days")
}

// Seconds converts a number of seconds, at most to the longest time that can be represented.
func Seconds(s float64) time.Duration {
	if s > math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}

// Ago formats how long before now t was: "never" for the zero time.
func Ago(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	if d < time.Second {
		return "now"
	}
	if d < 99*time.Second {
		return strconv.Itoa(int(d.Seconds())) + " s ago"
	}
	return Span(d) + " ago"
}

// Until formats how long after now t is.
func Until(now, t time.Time) string {
	if d := t.Sub(now); d > 0 {
		return "in " + Span(d)
	}
	return "now"
}

// Count formats a number with its thousands set apart.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:] // a narrow no-break space
	}
	return s
}

// Size formats a number of bytes in a fitting unit.
func Size(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, unit := float64(n), ""
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if v < 1023.5 {
			break
		}
		v, unit = v/1024, u
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// Rate formats a number per second.
func Rate(v float64) string {
	switch {
	case v == 0:
		return "0/s"
	case v < 9.95:
		return fmt.Sprintf("%.1f/s", v)
	}
	return Count(uint64(math.Round(v))) + "/s"
}

// Samples formats a number of samples with its noun.
func Samples(n uint64) string {
	if n == 1 {
		return "1 sample"
	}
	return Count(n) + " samples"
}

// onDisk says how many samples wait on disk, in words.
func onDisk(n uint64) string {
	if n == 1 {
		return "1 sample waits on disk"
	}
	return Count(n) + " samples wait on disk"
}

// Clock formats a point in time for people, in this host's time zone: with the date unless it is today's or last night's,
// and with the year if the date alone could be of this one.
func Clock(now, t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	t = t.In(now.Location())
	if now.Sub(t).Abs() < 20*time.Hour {
		return t.Format("15:04:05")
	}
	if now.Sub(t).Abs() > 300*24*time.Hour {
		return t.Format("Jan 2 2006 15:04")
	}
	return t.Format("Jan 2 15:04")
}

// Sum adds up counts.
func Sum(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}

// Percent returns part of whole in percent, at most 100, rounded up so that a small part is never 0.
func Percent(part, whole int64) int {
	if part <= 0 || whole <= 0 {
		return 0
	}
	return min(100, int(100*float64(part)/float64(whole))+1)
}
