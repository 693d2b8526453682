package results

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Table formats a run for people: how often each test ran and its figures, the parts, and how to repeat failures.
func (r Run) Table() string {
	var b strings.Builder
	width := len("what")
	for _, l := range r.Lines {
		width = max(width, len(l.What))
	}
	fmt.Fprintf(&b, "%-*s  %8s  %8s  %s\n", width, "what", "times", "lost", "figures")
	for _, l := range r.Lines {
		fmt.Fprintf(&b, "%-*s  %8d  %8d  %s", width, l.What, l.Count, l.Lost, l.Measured())
		if l.Failed {
			b.WriteString("  FAILED")
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	for _, o := range r.Outcomes {
		if o.Test == "" {
			fmt.Fprintf(&b, "%-8s %-10s %6.0f s\n", o.Verdict, o.Part, o.Seconds)
		}
	}
	for _, o := range r.Outcomes {
		if o.Test != "" && o.Replay != "" {
			fmt.Fprintf(&b, "\n%s %s\n  again: %s\n", o.Verdict, o.Test, o.Replay)
		}
	}
	return b.String()
}

// Measured formats the figures by name, to three places: "healed s max 0.55, refused 12".
func (l Line) Measured() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(l.Figures)) {
		words = append(words, strings.ReplaceAll(name, "_", " ")+" "+strconv.FormatFloat(math.Round(l.Figures[name]*1000)/1000, 'f', -1, 64))
	}
	return strings.Join(words, ", ")
}
