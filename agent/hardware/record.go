package hardware

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/hardware/snmptool"
	"hwsagent/internal/panics"
	"hwsagent/internal/redact"
	"hwsagent/probes"
	"hwsagent/probes/catalog"
	"hwsagent/probes/snmp"
	"hwsagent/probes/tape"
)

// recorder is implemented by probes that can record their hardware.
type recorder interface {
	// Record reads everything once. After an error, the tape has the answers before it.
	Record(ctx context.Context, t *tape.Tape) error
	// Redact finds the texts on the tape that identify the owner of the hardware, and removes those that r cannot
	// replace.
	Redact(t *tape.Tape, r *tape.Redactor)
}

// Recorded describes the content of a recording, and the parts that were left out.
type Recorded struct {
	File     string         `json:"file"`
	Type     string         `json:"type"`     // of the probe
	Answers  int            `json:"answers"`  // in the recording; over SNMP, variables
	LeftOut  int            `json:"left_out"` // answers and parts of answers left out
	Replaced map[string]int `json:"replaced"` // texts, by kind
	Problem  string         `json:"problem,omitempty"`
}

// RecordKinds returns the kinds of data that a recording contains only on request.
func RecordKinds() []string { return tape.Kinds() }

// recordWithin bounds a recording.
const recordWithin = 10 * time.Minute

// Record reads the hardware of one probe once and writes all answers to file, which must not exist. It removes
// everything that identifies the owner of the hardware, except the kinds in keep, see [RecordKinds]; secrets are always
// removed. If reading fails, it writes the answers before the error, and Problem has the error.
func Record(ctx context.Context, o Options, file string, keep []string) (Recorded, error) {
	done := Recorded{File: file}
	words, err := tape.NewRedactor(keep)
	if err != nil {
		return done, fmt.Errorf("%w: %w", config.ErrUsage, err)
	}
	chosen, err := o.chosen()
	if err != nil {
		return done, err
	}
	if len(chosen) != 1 {
		return done, fmt.Errorf("%w: %q has %d devices; name one, as in %s", config.ErrUsage, o.Probe, len(chosen), chosen[0].Name)
	}
	p := &chosen[0]
	done.Type = p.Type
	if _, err := os.Lstat(file); err == nil {
		return done, fmt.Errorf("write the recording: %s is there already; name another file", file)
	}
	learnPlace(words, p)
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	if s, ok := p.Settings.(*snmp.Config); ok {
		return recordDevice(ctx, *s, done, words, o.Logger)
	}
	return recordProbe(ctx, p, o, done, words)
}

// learnPlace adds the names of this machine and of the target to the words to replace.
func learnPlace(words *tape.Redactor, p *config.Probe) {
	names := []string{p.Target}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	for _, name := range names {
		if h, _, err := net.SplitHostPort(name); err == nil {
			name = h
		}
		if _, err := netip.ParseAddr(name); err == nil || strings.ContainsAny(name, "/:") { // an address or a device is not a host name
			continue
		}
		words.Learn(tape.Names, name)
		short, _, _ := strings.Cut(name, ".")
		words.Learn(tape.Names, short)
	}
}

func recordDevice(ctx context.Context, c snmp.Config, done Recorded, words *tape.Redactor, logger *slog.Logger) (Recorded, error) {
	if c.Auth.CommunityFile != "" {
		b, err := os.ReadFile(c.Auth.CommunityFile)
		if err != nil {
			return done, fmt.Errorf("read community_file: %w", err)
		}
		words.LearnSecret(tape.Names, string(b))
	}
	got, err := snmptool.Record(ctx, c, done.File, words, logger)
	done.Answers, done.LeftOut, done.Replaced, done.Problem = got.Variables, got.LeftOut, got.Replaced, got.Problem
	if err != nil {
		return done, fmt.Errorf("%w: %w", ErrProbe, err)
	}
	return done, nil
}

func recordProbe(ctx context.Context, p *config.Probe, o Options, done Recorded, words *tape.Redactor) (Recorded, error) {
	probe, err := wholeProbe(p, o, panics.New("probe "+p.Name, o.Logger))
	if err != nil {
		return done, fmt.Errorf("%w: %w", ErrProbe, err)
	}
	taker, ok := probe.(recorder)
	if !ok {
		return done, errors.Join(fmt.Errorf("%w: a probe of type %s cannot be recorded on this platform", config.ErrUsage, p.Type), closeProbe(probe))
	}
	t := tape.New(p.Type)
	err = errors.Join(taker.Record(ctx, t), closeProbe(probe))
	switch {
	case len(t.Exchanges) == 0:
		return done, fmt.Errorf("%w: no answers were read, and no file was written: %w", ErrProbe, err)
	case err != nil:
		done.Problem = err.Error()
	case t.Full():
		done.Problem = fmt.Sprintf("the recording exceeds the limit of %d answers or %d MiB", tape.MaxExchanges, tape.MaxBytes>>20)
	}
	taker.Redact(t, words)
	words.Tape(t)
	secrets := redact.Hold(p.Settings).Secrets()
	for i := range t.Exchanges {
		e := &t.Exchanges[i]
		e.Ask, e.Status, e.Answer = secrets.Cut(e.Ask), secrets.Cut(e.Status), []byte(secrets.Cut(string(e.Answer)))
	}
	done.Answers, done.LeftOut, done.Replaced = len(t.Exchanges), words.LeftOut(), words.Replaced()
	return done, writeTape(t, done.File)
}

// writeTape writes a new file that only its owner can read.
func writeTape(t *tape.Tape, file string) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- the user's own path
	if err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := t.Write(f); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}

// errOtherFormat means that a file is not a tape; it may be a recording of SNMP.
var errOtherFormat = errors.New("is not a recording of hwsagent record")

func readTape(file string) (t *tape.Tape, err error) {
	f, err := os.Open(file) // #nosec G304 -- the user's own path
	if err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := bufio.NewReader(f)
	begin, err := in.Peek(32)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	if !tape.Is(begin) {
		return nil, errOtherFormat
	}
	if t, err = tape.Read(in); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// replayOf returns the probe that reads a recording. For a machine's recording it writes files below dir.
func replayOf(t *tape.Tape, dir string, logger *slog.Logger) (probes.Probe, error) {
	if found, ok := catalog.Find(t.Type); ok && found.Replay != nil {
		return found.Replay(t, dir, logger)
	}
	return nil, fmt.Errorf("line 1: there is no recording of the type %.20q", t.Type)
}
