package tape

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds of a tape; the largest known, of a server with 128 processors, has 9,000 exchanges of 2 MiB.
const (
	MaxExchanges = 100_000
	MaxBytes     = 64 << 20 // of questions and answers together
	maxLine      = 4 << 20
)

// magic begins the first line of a file: the format's name and version, then the type of the probe.
const magic = "hwsagent-recording 1 "

// OK is the status of a successful answer.
const OK = "ok"

// Bytes is the status of a successful binary answer. The probe that asked removes from it the data that identifies the
// owner of the hardware.
const Bytes = "bytes"

// Exchange is a question and its answer.
type Exchange struct {
	Ask    string
	Status string // OK, or defined by the probe: an exit status, an HTTP status, file, link
	Answer []byte
}

// Tape is the exchanges with one machine or device, in order. Only Add may be called concurrently.
type Tape struct {
	Type      string // of the probe
	Exchanges []Exchange

	mu    sync.Mutex
	bytes int
	full  bool
	ended bool
}

// New returns an empty tape for a probe of that type.
func New(probeType string) *Tape { return &Tape{Type: probeType} }

// Add records an exchange, with a copy of the answer. Beyond the bounds it drops the exchange, see [Tape.Full], as it does
// after [Tape.End].
func (t *Tape) Add(ask, status string, answer []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	if size := len(ask) + len(answer); len(t.Exchanges) < MaxExchanges && t.bytes+size <= MaxBytes {
		t.bytes += size
		t.Exchanges = append(t.Exchanges, Exchange{ask, status, append([]byte(nil), answer...)})
		return
	}
	t.full = true
}

// End ends the recording: later exchanges are dropped. A program or disk that the probe has given up may answer at any
// time, even while the tape is redacted and written.
func (t *Tape) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}

// Full reports whether an exchange was dropped because of the bounds.
func (t *Tape) Full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.full
}

// Write writes the tape as readable text: after a first line with the type, for each exchange
//
//	> the question
//	= the status, unless it is ok
//	|a line of the answer
//	\the last line, without an end of line
//
// A binary answer is written in lines that begin with # and have hexadecimal digits.
func (t *Tape) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s%s\n", magic, t.Type) // Flush returns the error of any line
	for _, e := range t.Exchanges {
		fmt.Fprintf(out, "> %s\n", line(e.Ask))
		if e.Status != OK {
			fmt.Fprintf(out, "= %s\n", line(e.Status))
		}
		writeAnswer(out, e.Answer)
	}
	return out.Flush()
}

// line returns a text without control characters as it is; other texts, and those that look quoted, are quoted.
func line(s string) string {
	if isText(s) && !strings.ContainsAny(s, "\n\r") && !strings.HasPrefix(s, `"`) {
		return s
	}
	return strconv.Quote(s)
}

func writeAnswer(out *bufio.Writer, b []byte) {
	if text := string(b); isText(text) {
		for part := range strings.SplitAfterSeq(text, "\n") {
			if whole, ok := strings.CutSuffix(part, "\n"); ok {
				fmt.Fprintf(out, "|%s\n", whole)
			} else if part != "" {
				fmt.Fprintf(out, "\\%s\n", part)
			}
		}
		return
	}
	const row = 64
	for ; len(b) > 0; b = b[min(row, len(b)):] {
		fmt.Fprintf(out, "#%s\n", hex.EncodeToString(b[:min(row, len(b))]))
	}
}

// isText reports whether s is UTF-8 without control characters, except line feeds and tabs.
func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return (r < ' ' && r != '\n' && r != '\t') || r == 0x7f })
}

// Is reports whether a file begins like a tape.
func Is(beginning []byte) bool { return strings.HasPrefix(string(beginning), magic) }

// Read parses the output of [Tape.Write]. An error names the line.
func Read(r io.Reader) (*Tape, error) {
	in := bufio.NewScanner(io.LimitReader(r, 4*MaxBytes))
	in.Buffer(nil, maxLine)
	if !in.Scan() || !strings.HasPrefix(in.Text(), magic) {
		return nil, errors.Join(fmt.Errorf("line 1: is not %q and a type: this is not a recording of hwsagent, or one of a later version", strings.TrimSpace(magic)), in.Err())
	}
	t := New(strings.TrimPrefix(in.Text(), magic))
	for n := 2; in.Scan(); n++ {
		if err := t.take(in.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("read a recording: %w", err)
	}
	return t, nil
}

// take parses one line of a file.
func (t *Tape) take(text string) error {
	if text == "" {
		return errors.New("is empty")
	}
	if t.bytes += len(text); t.bytes > MaxBytes || len(t.Exchanges) > MaxExchanges {
		return fmt.Errorf("the recording is larger than %d exchanges or %d MiB", MaxExchanges, MaxBytes>>20)
	}
	kind, rest := text[0], text[1:]
	if kind == '>' {
		ask, err := unline(rest)
		t.Exchanges = append(t.Exchanges, Exchange{Ask: ask, Status: OK})
		return err
	}
	if len(t.Exchanges) == 0 {
		return errors.New("an answer stands before the first question")
	}
	e := &t.Exchanges[len(t.Exchanges)-1]
	var err error
	switch kind {
	case '=':
		e.Status, err = unline(rest)
	case '|':
		e.Answer = append(append(e.Answer, rest...), '\n')
	case '\\':
		e.Answer = append(e.Answer, rest...)
	case '#':
		var b []byte
		b, err = hex.DecodeString(rest)
		e.Answer = append(e.Answer, b...)
	default:
		err = fmt.Errorf("begins with %q; a line begins with one of > = | \\ #", kind)
	}
	return err
}

func unline(s string) (string, error) {
	s = strings.TrimPrefix(s, " ")
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	out, err := strconv.Unquote(s)
	if err != nil {
		return "", errors.New("has a quoted text that does not end, or a wrong escape")
	}
	return out, nil
}

// Player answers from a tape. It is safe for concurrent use.
type Player struct {
	mu    sync.Mutex
	byAsk map[string][]Exchange // the remaining answers to each question; the last one is repeated
}

// Player plays t from its beginning. t must not change afterwards.
func (t *Tape) Player() *Player {
	p := &Player{byAsk: make(map[string][]Exchange)}
	for _, e := range t.Exchanges {
		p.byAsk[e.Ask] = append(p.byAsk[e.Ask], e)
	}
	return p
}

// Next returns the answer to a question: for a repeated question the answers in their order, then the last one
// forever. ok is false for a question that is not on the tape.
func (p *Player) Next(ask string) (e Exchange, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.byAsk[ask]
	if len(left) == 0 {
		return Exchange{}, false
	}
	if len(left) > 1 {
		p.byAsk[ask] = left[1:]
	}
	return left[0], true
}
