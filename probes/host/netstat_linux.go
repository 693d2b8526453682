package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"hwsagent/probes"
)

// netstat reads the selected counters of the network protocols.
type netstat struct {
	pairs    [2]file // a line of names, then a line of values
	snmp6    file    // a name and a value on each line
	families familyCache
	key      []byte
}

func newNetstat(e *environment) reader {
	wanted := e.pattern(&e.NetstatFields)
	return &netstat{
		pairs: [2]file{{path: e.proc("net/netstat")}, {path: e.proc("net/snmp")}},
		snmp6: file{path: e.proc("net/snmp6")},
		families: familyCache{make: func(field string) *probes.Family {
			return wantedFamily(wanted, "node_netstat_", field, "The counter "+field+" of the network protocols.")
		}},
	}
}

func (n *netstat) read(_ context.Context, r *probes.Round) error {
	for i := range n.pairs {
		b, err := n.pairs[i].read()
		if err != nil {
			return err
		}
		var names []byte
		for line := range lines(b) {
			if names == nil {
				names = line
				continue
			}
			if err := n.addPair(r, names, line); err != nil {
				return fmt.Errorf("parse %s: %w", n.pairs[i].path, err)
			}
			names = nil
		}
	}
	b, err := n.snmp6.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no IPv6
	}
	if err != nil {
		return err
	}
	for line := range lines(b) {
		name, rest := word(line)
		// "Ip6InOctets": the protocol ends with the 6.
		if end := bytes.IndexByte(name, '6') + 1; end > 0 {
			value, _ := word(rest)
			n.add(r, name[:end], name[end:], value)
		}
	}
	return nil
}

// addPair adds the counters of "Tcp: InSegs OutSegs" with "Tcp: 5 7".
func (n *netstat) addPair(r *probes.Round, names, values []byte) error {
	protocol, names := word(names)
	again, values := word(values)
	if !bytes.Equal(protocol, again) {
		return fmt.Errorf("values of %q follow names of %q", again, protocol)
	}
	protocol = bytes.TrimSuffix(protocol, []byte(":"))
	for {
		var name, value []byte
		name, names = word(names)
		value, values = word(values)
		if len(name) == 0 || len(value) == 0 {
			if len(name) != len(value) {
				return fmt.Errorf("%s has more names than values, or fewer", protocol)
			}
			return nil
		}
		n.add(r, protocol, name, value)
	}
}

func (n *netstat) add(r *probes.Round, protocol, name, value []byte) {
	n.key = append(append(append(n.key[:0], protocol...), '_'), name...)
	f := n.families.of(n.key)
	if f == nil {
		return
	}
	if v, ok := float(value); ok {
		r.Add(f, v)
	}
}

// sockstat reads how many sockets there are and how much memory they take.
type sockstat struct {
	files    [2]file
	families familyCache
	key      []byte
	page     float64 // bytes
}

func newSockstat(e *environment) reader {
	return &sockstat{
		files: [2]file{{path: e.proc("net/sockstat")}, {path: e.proc("net/sockstat6")}},
		families: familyCache{make: func(field string) *probes.Family {
			return gauge("node_sockstat_"+field, "The field "+field+" of /proc/net/sockstat or sockstat6.")
		}},
		page: float64(os.Getpagesize()),
	}
}

func (s *sockstat) read(_ context.Context, r *probes.Round) error {
	found := false
	for i := range s.files {
		b, err := s.files[i].read()
		if errors.Is(err, fs.ErrNotExist) {
			continue // that IP version is off
		}
		if err != nil {
			return err
		}
		found = true
		for line := range lines(b) {
			protocol, rest := word(line)
			protocol = bytes.TrimSuffix(protocol, []byte(":"))
			for len(rest) > 0 {
				var name, value []byte
				name, rest = word(rest)
				value, rest = word(rest)
				v, ok := float(value)
				if !ok {
					break
				}
				s.key = append(append(append(s.key[:0], protocol...), '_'), name...)
				r.Add(s.families.of(s.key), v)
				if string(name) == "mem" { // in pages
					s.key = append(s.key, "_bytes"...)
					r.Add(s.families.of(s.key), v*s.page)
				}
			}
		}
	}
	if !found {
		return errAbsent
	}
	return nil
}
