package status

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"hwsagent/internal/text"
)

// WriteText renders s for a terminal, problems last so that they are not scrolled away. s must come from [Judge].
func WriteText(out io.Writer, s Status) error {
	b := bufio.NewWriter(out)
	v := s.Conclusion()
	mark := map[string]string{LevelOK: "OK", SeverityWarning: "WARNING", SeverityError: "ERROR"}[v.Level]
	fmt.Fprintf(b, "%s: %s\n\n", mark, v.Text)
	writeAgent(b, s)

	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	writeTargets(table, s)
	if err := table.Flush(); err != nil {
		return err
	}
	for _, t := range s.Targets {
		if t.Fallback != "" {
			fmt.Fprintf(b, "%s gets remote write 1.0: it %s; asked again at %s\n", Plain(t.Name), Plain(Cut(text.FirstLine(t.Fallback), 120)), Clock(s.Now, t.FallbackUntil))
		}
		if t.Plain != "" {
			fmt.Fprintf(b, "%s gets snappy instead of zstd: it %s; zstd is tried again after a restart\n", Plain(t.Name), Plain(Cut(text.FirstLine(t.Plain), 120)))
		}
	}
	writeProbes(table, s)
	if err := table.Flush(); err != nil {
		return err
	}
	writeReceivers(table, s)
	writeScrape(table, s)
	if err := table.Flush(); err != nil {
		return err
	}
	writeFindings(b, Findings(s))
	return b.Flush()
}

// writeAgent prints the version, the configuration and the log.
func writeAgent(b io.Writer, s Status) {
	fmt.Fprintf(b, "hwsagent %s", s.Version)
	if s.Running && !s.Started.IsZero() {
		fmt.Fprintf(b, ", up %s", Span(s.Now.Sub(s.Started)))
	}
	if !s.Running {
		fmt.Fprint(b, ", not running (start it: hwsagent run); read from the storage directory")
	}
	if s.Config.File != "" {
		fmt.Fprintf(b, "; configuration %s of %s", s.Config.File, Clock(s.Now, s.Config.LoadedAt))
	}
	w := s.WAL
	segments := fmt.Sprintf("%d segments", w.Segments)
	if w.Segments == 1 {
		segments = "1 segment"
	}
	fmt.Fprintf(b, "\nlog: %s in %s", Size(w.Bytes), segments)
	if s.Running {
		fmt.Fprintf(b, ", at most %s; %s series, %s in", Size(w.MaxBytes), Count(uint64(max(0, w.Series))), Rate(w.SamplesPerSec))
	}
	if w.FreeBytes > 0 || w.Error != "" { // else it is not known yet
		fmt.Fprintf(b, "; %s free", Size(w.FreeBytes))
	} else {
		fmt.Fprint(b, ";")
	}
	fmt.Fprintf(b, " at %s\n", w.Dir)
	if d, ok := Lasts(s); ok {
		fmt.Fprintf(b, "if no target accepts data, the log lasts %s at this rate\n", Lasting(d))
	}
}

// writeTargets prints the table of targets; that of a stopped agent has fewer columns.
func writeTargets(table io.Writer, s Status) {
	switch {
	case len(s.Targets) == 0:
	case s.Running:
		fmt.Fprint(table, "\nTARGET\tSTATE\tBEHIND\tWAITING\tSIZE\tOLDEST\tSENT\tREFUSED\tLOST\tSHARDS\tLAST ERROR\n")
	default:
		fmt.Fprint(table, "\nTARGET\tBEHIND\tWAITING\tSIZE\tOLDEST\tDELIVERED\tREFUSED\tLOST\n")
	}
	for _, t := range s.Targets {
		if !s.Running {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", Plain(t.Name), Span(Seconds(t.LagSeconds)), Count(t.PendingSamples),
				Size(t.PendingBytes), Clock(s.Now, t.OldestPending), Count(t.Ledger.Delivered), Count(t.Ledger.Undelivered().Refused), Count(t.Ledger.Undelivered().Lost))
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d/%d\t%s\n", Plain(t.Name), Word(s, t), Span(Seconds(t.LagSeconds)),
			Count(t.PendingSamples), Size(t.PendingBytes), Clock(s.Now, t.OldestPending), Rate(t.SentPerSec),
			Count(t.Ledger.Undelivered().Refused), Count(t.Ledger.Undelivered().Lost), t.Shards, t.MaxShards, lastError(s, t))
	}
}

// writeProbes prints the table of probes.
func writeProbes(table io.Writer, s Status) {
	if len(s.Probes) > 0 {
		fmt.Fprint(table, "\nPROBE\tTYPE\tSTATE\tLAST\tTOOK\tSAMPLES\tEVERY\tERROR\n")
	}
	for _, p := range s.Probes {
		if RefusedByLog(s, p) {
			p.State, p.LastError = OutcomeRefused, logFails // the log's problem says why
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", Plain(p.Name), p.Type, p.State, Ago(s.Now, p.LastRun), Span(p.Took),
			Count(uint64(max(0, p.Samples))), Span(p.Interval), orDash(Plain(Cut(text.FirstLine(p.LastError), 70))))
	}
}

// writeReceivers prints the table of receivers.
func writeReceivers(table io.Writer, s Status) {
	if len(s.Receivers) > 0 {
		fmt.Fprint(table, "\nRECEIVER\tLISTENS ON\tLAST\tREQUESTS\tSAMPLES\tSERIES\tREFUSED\tLAST REFUSAL\n")
	}
	for _, r := range s.Receivers {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", Plain(r.Name), r.Listen, Ago(s.Now, r.LastRequest), Count(r.Requests), Count(r.Samples),
			Count(uint64(max(0, r.ActiveSeries))), orDash(ByReason(r.RefusedRequests)), orDash(Plain(Cut(text.FirstLine(r.LastError), 70))))
	}
}

// writeFindings prints the problems and their remedies.
func writeFindings(b io.Writer, all []Finding) {
	for i, f := range all {
		if i == 0 {
			fmt.Fprint(b, "\n")
		}
		fmt.Fprintf(b, "%s %s: %s\n", strings.ToUpper(f.Severity[:1])+f.Severity[1:], Plain(f.subject()), indent(f.Text))
		for _, a := range f.Tries {
			whom := ""
			if a.For != "" {
				whom = " (" + Plain(a.For) + ")"
			}
			fmt.Fprintf(b, "    Try%s: %s\n", whom, Plain(a.Text))
		}
	}
}

// lastError returns why t accepts nothing and since when, else the last error unless a later request succeeded.
func lastError(s Status, t TargetStatus) string {
	if down := Down(s, t); down != "" {
		return Plain(Cut(Why(t), 70)) + " (" + down + ")"
	}
	if t.LastError == "" {
		return "–"
	}
	return Plain(Cut(Brief(t, t.LastError), 70)) + " (" + Ago(s.Now, t.LastErrorAt) + ")"
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// Cut shortens s to at most n characters.
func Cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// Plain removes control characters, so that texts of receivers and devices cannot control the terminal, nor turn the
// words behind them around.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 || strings.ContainsRune(BidiControl, r) {
			return '?'
		}
		return r
	}, strings.ReplaceAll(s, "\t", " "))
}

func indent(s string) string {
	return strings.ReplaceAll(Plain(strings.TrimRight(s, "\n")), "\n", "\n    ")
}

// BidiControl are the characters that set the direction of the text behind them, also of the agent's own words beside a
// device's (Unicode's property Bidi_Control).
const BidiControl = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
