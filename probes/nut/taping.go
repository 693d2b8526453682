package nut

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"hwsagent/probes"
	"hwsagent/probes/tape"
)

// listDevices is the recorded request for the devices, with one name in each line of the answer.
const listDevices = "LIST UPS"

// refused is the prefix of the status of a device that upsd refuses; the code of RFC 9271 follows.
const refused = "ERR "

// taping is a session that records requests and answers.
type taping struct {
	session
	tape *tape.Tape
}

func (s taping) variables(device string) ([]variable, error) {
	vars, err := s.session.variables(device)
	var b strings.Builder
	for _, v := range vars {
		fmt.Fprintf(&b, "%s %s\n", v.name, quote(v.value))
	}
	status := tape.OK
	var no *refusal
	if errors.As(err, &no) {
		status = refused + no.code
	} else if err != nil {
		status = err.Error()
	}
	s.tape.Add("LIST VAR "+device, status, []byte(b.String()))
	return vars, err
}

// Record reads all devices once, as Collect does, and records upsd's requests and answers, without the login.
func (p *Probe) Record(ctx context.Context, t *tape.Tape) error {
	own := p.greet
	p.greet = func(ctx context.Context) (session, []string, func(), error) {
		s, names, done, err := own(ctx)
		if err != nil {
			return s, names, done, err
		}
		t.Add(listDevices, tape.OK, []byte(strings.Join(names, "\n")+"\n"))
		return taping{s, t}, names, done, nil
	}
	defer func() { p.greet = own }()
	return p.Collect(ctx, probes.NewRound(0))
}

// Variables that are not recorded: settings of a driver may contain a login or an address.
var (
	settings = regexp.MustCompile(`(?m)^driver\.parameter\..*\n`)
	numbers  = regexp.MustCompile(`(?m)^[a-z0-9.]*(?:serial|macaddr)[a-z0-9.]* "((?:[^"\\]|\\.)*)"$`)
	owners   = regexp.MustCompile(`(?m)^(?:[a-z0-9.]*\.(?:contact|location|id)|(?:outlet|ambient)\.[a-z0-9.]*(?:desc|name)) "((?:[^"\\]|\\.)*)"$`)
)

// Redact finds the texts that identify the owner of the devices, and removes the settings of drivers.
func (p *Probe) Redact(t *tape.Tape, r *tape.Redactor) {
	for i := range t.Exchanges {
		e := &t.Exchanges[i]
		e.Answer = settings.ReplaceAllFunc(e.Answer, func([]byte) []byte { r.LeaveOut(); return nil })
		for pattern, kind := range map[*regexp.Regexp]string{numbers: tape.Serials, owners: tape.Names} {
			for _, found := range pattern.FindAllSubmatch(e.Answer, -1) {
				r.Learn(kind, string(found[1]))
			}
		}
	}
}

// playing is a session that replays a recording.
type playing struct{ player *tape.Player }

func (s playing) logout() {}

func (s playing) variables(device string) ([]variable, error) {
	e, ok := s.player.Next("LIST VAR " + device)
	switch code, no := strings.CutPrefix(e.Status, refused); {
	case !ok:
		return nil, &refusal{code: "UNKNOWN-UPS"}
	case no:
		return nil, &refusal{code: code}
	case e.Status != tape.OK:
		return nil, errors.New(e.Status)
	}
	var vars []variable
	for text := range strings.Lines(string(e.Answer)) {
		words, err := split(text)
		if err != nil || len(words) != 2 {
			return nil, fmt.Errorf("the recording has the line %.40q, not a variable and its value", text)
		}
		vars = append(vars, variable{words[0], words[1]})
	}
	return vars, nil
}

// Replay returns a probe that reads the devices of a recording.
func Replay(t *tape.Tape) (*Probe, error) {
	p, err := New(Config{}, nil)
	if err != nil {
		return nil, err
	}
	player := t.Player()
	p.greet = func(context.Context) (session, []string, func(), error) {
		e, ok := player.Next(listDevices)
		names := strings.Fields(string(e.Answer))
		if !ok || len(names) == 0 {
			return nil, nil, func() {}, errors.New("the recording has no device")
		}
		return playing{player}, names, func() {}, nil
	}
	return p, nil
}
