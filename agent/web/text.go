package web

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText renders s for a terminal, problems last so that they are not scrolled away. s must come from [Judged].
func WriteText(out io.Writer, s Status) error {
	b := bufio.NewWriter(out)
	v := s.verdict()
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
			fmt.Fprintf(b, "%s gets remote write 1.0: it %s; asked again at %s\n", plain(t.Name), plain(cut(firstLine(t.Fallback), 120)), clock(s.Now, t.FallbackUntil))
		}
		if t.Plain != "" {
			fmt.Fprintf(b, "%s gets snappy instead of zstd: it %s; not tried before %s\n", plain(t.Name), plain(cut(firstLine(t.Plain), 120)), clock(s.Now, t.PlainUntil))
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
	writeFindings(b, findings(s))
	return b.Flush()
}

// writeAgent prints the version, the configuration and the log.
func writeAgent(b io.Writer, s Status) {
	fmt.Fprintf(b, "hwsagent %s", s.Version)
	if s.Running && !s.Started.IsZero() {
		fmt.Fprintf(b, ", up %s", span(s.Now.Sub(s.Started)))
	}
	if !s.Running {
		fmt.Fprint(b, ", not running; read from the storage directory")
	}
	if s.Config.File != "" {
		fmt.Fprintf(b, "; configuration %s of %s", s.Config.File, clock(s.Now, s.Config.LoadedAt))
	}
	w := s.WAL
	segments := fmt.Sprintf("%d segments", w.Segments)
	if w.Segments == 1 {
		segments = "1 segment"
	}
	fmt.Fprintf(b, "\nlog: %s in %s", size(w.Bytes), segments)
	if s.Running {
		fmt.Fprintf(b, ", at most %s; %s series, %s in", size(w.MaxBytes), count(uint64(max(0, w.Series))), rate(w.SamplesPerSec))
	}
	fmt.Fprintf(b, "; %s free at %s\n", size(w.FreeBytes), w.Dir)
	if d, ok := Lasts(s); ok {
		fmt.Fprintf(b, "if no target accepts data, the log lasts %s at this rate\n", lasting(d))
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
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain(t.Name), span(seconds(t.LagSeconds)), count(t.PendingSamples),
				size(t.PendingBytes), clock(s.Now, t.OldestPending), count(t.Ledger.Delivered), count(t.Ledger.Dropped["rejected"]), count(t.Ledger.Lost))
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d/%d\t%s\n", plain(t.Name), t.State, span(seconds(t.LagSeconds)),
			count(t.PendingSamples), size(t.PendingBytes), clock(s.Now, t.OldestPending), rate(t.SentPerSec),
			count(t.Ledger.Dropped["rejected"]), count(t.Ledger.Lost), t.Shards, t.MaxShards, lastError(s, t))
	}
}

// writeProbes prints the table of probes.
func writeProbes(table io.Writer, s Status) {
	if len(s.Probes) > 0 {
		fmt.Fprint(table, "\nPROBE\tTYPE\tSTATE\tLAST\tTOOK\tSAMPLES\tEVERY\tERROR\n")
	}
	for _, p := range s.Probes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain(p.Name), p.Type, p.State, ago(s.Now, p.LastRun), span(p.Took),
			count(uint64(max(0, p.Samples))), span(p.Interval), orDash(plain(cut(firstLine(p.LastError), 70))))
	}
}

// writeReceivers prints the table of receivers.
func writeReceivers(table io.Writer, s Status) {
	if len(s.Receivers) > 0 {
		fmt.Fprint(table, "\nRECEIVER\tLISTENS ON\tLAST\tREQUESTS\tSAMPLES\tSERIES\tREFUSED\tLAST REFUSAL\n")
	}
	for _, r := range s.Receivers {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain(r.Name), r.Listen, ago(s.Now, r.LastRequest), count(r.Requests), count(r.Samples),
			count(uint64(max(0, r.ActiveSeries))), orDash(byReason(r.RefusedRequests)), orDash(plain(cut(firstLine(r.LastError), 70))))
	}
}

// writeFindings prints the problems and their remedies.
func writeFindings(b io.Writer, all []Finding) {
	for i, f := range all {
		if i == 0 {
			fmt.Fprint(b, "\n")
		}
		fmt.Fprintf(b, "%s %s: %s\n", strings.ToUpper(f.Severity[:1])+f.Severity[1:], plain(f.subject()), indent(f.Text))
		for _, a := range f.Tries {
			whom := ""
			if a.For != "" {
				whom = " (" + plain(a.For) + ")"
			}
			fmt.Fprintf(b, "    Try%s: %s\n", whom, plain(a.Text))
		}
	}
}

// lastError returns the last error of t, unless a later request succeeded.
func lastError(s Status, t TargetStatus) string {
	if t.LastError == "" {
		return "–"
	}
	text := plain(cut(brief(t, t.LastError), 70)) + " (" + ago(s.Now, t.LastErrorAt)
	if t.NextTry.After(s.Now) {
		text += ", next try " + until(s.Now, t.NextTry)
	}
	return text + ")"
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// cut shortens s to at most n characters.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// plain removes control characters, so that texts of receivers and devices cannot control the terminal, nor turn the
// words behind them around.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 || strings.ContainsRune(turns, r) {
			return '?'
		}
		return r
	}, strings.ReplaceAll(s, "\t", " "))
}

func indent(s string) string {
	return strings.ReplaceAll(plain(strings.TrimRight(s, "\n")), "\n", "\n    ")
}
