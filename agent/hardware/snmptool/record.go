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

// Options are shared by the commands about one device.
type Options struct {
	Target  string
	Auth    snmp.Auth
	Timeout time.Duration // of one packet
	Retries int
	// Definitions are directories of definitions of hardware in addition to the agent's.
	Definitions []string
	Logger      *slog.Logger
}

func (o *Options) walker() (*snmp.Walker, error) {
	return snmp.NewWalker(config(o.Target, o.Auth, o.Timeout, o.Retries), nil, o.Logger)
}

// Object is a variable in readable form.
type Object struct {
	OID   string `json:"oid"`
	Name  string `json:"name"` // the OID if no built-in module names it
	Type  string `json:"type"`
	Value string `json:"value"`
}

// ErrName means that the argument is neither an OID nor the name of an object. Nothing was sent.
var ErrName = errors.New("it is no OID and no known name; give a number, such as 1.3.6.1.2.1.1, or a name, such as system, ifTable or ifDescr")

// Walk reads the subtree of root, an OID, or a name that [snmp.Names.Root] knows. With an error it returns
// the part read so far.
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

// Recorded describes a recording and its omissions.
type Recorded struct {
	File      string         `json:"file"`
	Variables int            `json:"variables"`
	LeftOut   int            `json:"left_out"` // variables of excluded trees
	Replaced  map[string]int `json:"replaced"` // texts, by kind
	Problem   string         `json:"problem,omitempty"`
}

// Record walks a whole device and writes it to file, which must not exist, in snmpsim's format. words removes the data that
// identifies the owner of the device. If the walk fails midway, Record writes the part read so far, and Problem has the
// error.
func Record(ctx context.Context, c snmp.Config, file string, words *tape.Redactor, logger *slog.Logger) (Recorded, error) {
	done := Recorded{File: file, Replaced: map[string]int{}}
	w, err := snmp.NewWalker(c, nil, logger)
	if err != nil {
		return done, err
	}
	defer w.Close()
	vars, err := w.Walk(ctx, "1.3.6.1")
	if err == nil {
		var more []snmp.Variable // LLDP is in IEEE's tree
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
			fmt.Fprintln(out, text) // Flush returns the error
			done.Variables++
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}
