package snmptool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"hwsagent/probes/snmp"
	"hwsagent/probes/tape"
)

// Options are what the commands about one device share.
type Options struct {
	Target  string
	Auth    snmp.Auth
	Timeout time.Duration // of one packet
	Retries int
	// Definitions are directories of definitions of hardware beside those of the agent.
	Definitions []string
	Logger      *slog.Logger
}

func (o *Options) walker() (*snmp.Walker, error) {
	return snmp.NewWalker(config(o.Target, o.Auth, o.Timeout, o.Retries), nil, o.Logger)
}

// Object is a variable for a person.
type Object struct {
	OID   string `json:"oid"`
	Name  string `json:"name"` // the OID where no built-in module knows it
	Type  string `json:"type"`
	Value string `json:"value"`
}

// ErrName means that what should be an OID or the name of an object is neither. Nothing was sent.
var ErrName = errors.New("it is no OID, and no built-in module has an object of that name; give a number, such as 1.3.6.1.2.1.1, or a name, such as ifDescr")

// Walk reads what is below root, an OID or the name of an object that a built-in module knows. What was read before an
// error is returned with it.
func Walk(ctx context.Context, o Options, root string) ([]Object, error) {
	names := snmp.NewNames()
	at, ok := names.Root(root)
	if !ok {
		return nil, fmt.Errorf("walk %q: %w", root, ErrName)
	}
	w, err := o.walker()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	vars, err := w.Walk(ctx, at)
	all := make([]Object, 0, len(vars))
	for i := range vars {
		v := &vars[i]
		all = append(all, Object{OID: v.OID, Name: names.Name(v.OID), Type: v.Type.String(), Value: v.Text()})
	}
	return all, err
}

// Recorded says what a recording holds and what it does not.
type Recorded struct {
	File      string         `json:"file"`
	Variables int            `json:"variables"`
	LeftOut   int            `json:"left_out"` // variables of trees that are not kept
	Replaced  map[string]int `json:"replaced"` // texts, by kind
	Problem   string         `json:"problem,omitempty"`
}

// Record walks all of a device and writes it to file, which must not exist, in snmpsim's format, without what tells
// whose device it is, as words says. Of a walk that fails in its
// midst, what was read is written, and Problem says so.
func Record(ctx context.Context, c snmp.Config, file string, words *tape.Redactor, logger *slog.Logger) (Recorded, error) {
	done := Recorded{File: file, Replaced: map[string]int{}}
	w, err := snmp.NewWalker(c, nil, logger)
	if err != nil {
		return done, err
	}
	defer w.Close()
	vars, err := w.Walk(ctx, "1.3.6.1")
	if err == nil {
		var more []snmp.Variable // LLDP lies in IEEE's tree
		more, err = w.Walk(ctx, "1.0.8802")
		vars = append(more, vars...)
	}
	if len(vars) == 0 {
		return done, errors.Join(err, errors.New("the device returned nothing; no file is written"))
	}
	if err != nil {
		done.Problem = err.Error()
	}
	r := redactor{words}
	r.learn(vars, string(c.Auth.Community), c.Auth.Username)
	if err := done.write(r, vars); err != nil {
		return done, err
	}
	done.LeftOut, done.Replaced = r.LeftOut(), r.Replaced()
	return done, nil
}

func (done *Recorded) write(r redactor, vars []snmp.Variable) (err error) {
	f, err := os.OpenFile(done.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	for _, v := range vars {
		if r.left(v.OID) {
			continue
		}
		if text, ok := line(r.value(v)); ok {
			fmt.Fprintln(out, text) // Flush has the error
			done.Variables++
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}
