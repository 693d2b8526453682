package snmptool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v4"

	"hwsagent/internal/text"
	"hwsagent/probes/devices"
	"hwsagent/probes/snmp"
)

// maxAddresses bounds a search: a /16.
const maxAddresses = 1 << 16

// workers is the number of addresses asked at a time; the rate limits them, too.
const workers = 256

// Search configures a search for devices.
type Search struct {
	Ranges  []string    // CIDR, or single addresses
	Port    uint16      // of SNMP
	Logins  []snmp.Auth // tried in this order, each at most once per device
	Rate    float64     // requests per second in total
	Timeout time.Duration
	Logger  *slog.Logger
	// Progress, if set, is called now and then with the addresses asked, all addresses, and devices found. Calls
	// do not overlap.
	Progress func(asked, all, found int)
}

// Found is the result of a search.
type Found struct {
	Asked   int          `json:"asked"` // addresses
	Devices []Discovered `json:"devices"`
	// Refused are addresses at which SNMP answers but rejects every login.
	Refused []Refusal `json:"refused"`
}

// Discovered is a device that answered.
type Discovered struct {
	Target      string `json:"target"`
	Login       int    `json:"login"` // index in the search's list, from 0
	Name        string `json:"name"`
	ObjectID    string `json:"object_id"`
	Description string `json:"description"`
}

// Refusal is an address that answers but rejects the login.
type Refusal struct {
	Target string `json:"target"`
	Why    string `json:"why"`
}

// Discover asks each address of the ranges for its identity. It tries each login once until one succeeds, and never
// resends, so that no device counts two failures for one secret. So a lost packet may hide a device.
func Discover(ctx context.Context, s Search) (Found, error) {
	targets, err := addresses(s.Ranges, s.Port)
	if err != nil {
		return Found{}, err
	}
	for i := range s.Logins { // report an invalid login before anything is sent
		w, err := snmp.NewWalker(config(targets[0], s.Logins[i], s.Timeout, 0), nil, s.Logger)
		if err != nil {
			return Found{}, fmt.Errorf("login %d: %w", i+1, err)
		}
		w.Close()
	}
	var paces devices.Paces
	pace := paces.For("", &devices.List{MaxRequests: s.Rate})
	found := Found{Devices: []Discovered{}, Refused: []Refusal{}}
	var mu sync.Mutex // guards found
	next := make(chan string)
	var wg sync.WaitGroup
	for range min(workers, len(targets)) {
		wg.Go(func() {
			for target := range next {
				device, refusal := s.ask(ctx, target, pace)
				mu.Lock()
				found.Asked++
				if device != nil {
					found.Devices = append(found.Devices, *device)
				} else if refusal != nil {
					found.Refused = append(found.Refused, *refusal)
				}
				if s.Progress != nil {
					s.Progress(found.Asked, len(targets), len(found.Devices))
				}
				mu.Unlock()
			}
		})
	}
feed:
	for _, t := range targets {
		select {
		case next <- t:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	place := map[string]int{}
	for i, t := range targets {
		place[t] = i
	}
	slices.SortFunc(found.Devices, func(a, b Discovered) int { return place[a.Target] - place[b.Target] })
	slices.SortFunc(found.Refused, func(a, b Refusal) int { return place[a.Target] - place[b.Target] })
	return found, ctx.Err()
}

// ask tries the logins at one address.
func (s *Search) ask(ctx context.Context, target string, pace *devices.Pace) (*Discovered, *Refusal) {
	var refusal *Refusal
	for i, auth := range s.Logins {
		if ctx.Err() != nil {
			return nil, nil
		}
		w, err := snmp.NewWalker(config(target, auth, s.Timeout, 0), pace, s.Logger)
		if err != nil {
			return nil, &Refusal{target, err.Error()} // detected before anything was sent
		}
		vars, err := w.Identify(ctx)
		w.Close()
		if err == nil {
			text := func(oid string) string { v := vars[oid]; return v.Text() }
			return &Discovered{Target: target, Login: i, Name: text(snmp.SysName), ObjectID: text(snmp.SysObjectID), Description: text(snmp.SysDescr)}, nil
		}
		switch snmp.Reason(err) {
		case devices.Login, devices.Protocol:
			refusal = &Refusal{target, err.Error()}
		case devices.Refused, devices.NoRoute: // another login would not help
			return nil, refusal
		}
	}
	return nil, refusal
}

// addresses returns the targets of the ranges, without the network and broadcast addresses of IPv4.
func addresses(ranges []string, port uint16) ([]string, error) {
	var all []string
	seen := map[netip.Addr]bool{}
	for _, text := range ranges {
		if a, err := netip.ParseAddr(text); err == nil {
			text = netip.PrefixFrom(a, a.BitLen()).String()
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("read the range %q: want an address or a range such as 192.0.2.0/24", text)
		}
		p = p.Masked()
		size := p.Addr().BitLen() - p.Bits()
		if size > 16 || len(all)+1<<size > maxAddresses {
			return nil, fmt.Errorf("the ranges have more than %d addresses; search them one after the other", maxAddresses)
		}
		for a, i := p.Addr(), 0; i < 1<<size; a, i = a.Next(), i+1 {
			edge := a.Is4() && size > 1 && (i == 0 || i == 1<<size-1)
			if seen[a] || edge {
				continue
			}
			seen[a] = true
			target := a.String()
			if port != 161 {
				target = net.JoinHostPort(target, strconv.Itoa(int(port)))
			}
			all = append(all, target)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("name a range to search, such as 192.0.2.0/24")
	}
	return all, nil
}

// Write prints the devices as entries of a configuration, one for each login. It omits secrets that were given
// inline.
func (f *Found) Write(w io.Writer, logins []snmp.Auth) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s asked, %s, %s every login\n", text.Plural(f.Asked, "address", "addresses"),
		text.Plural(len(f.Devices), "device answers", "devices answer"), text.Plural(len(f.Refused), "refuses", "refuse"))
	for _, r := range f.Refused {
		fmt.Fprintf(&b, "# refused: %s: %s\n", r.Target, comment(r.Why))
	}
	if len(f.Devices) > 0 {
		b.WriteString("probes:\n")
	}
	for i, auth := range logins {
		mine := slices.DeleteFunc(slices.Clone(f.Devices), func(d Discovered) bool { return d.Login != i })
		if len(mine) == 0 {
			continue
		}
		fmt.Fprintf(&b, "  - name: snmp-%d\n    type: snmp\n    targets:\n", i+1)
		for _, d := range mine {
			fmt.Fprintf(&b, "      - %q  # %s\n", d.Target, comment(cmp.Or(d.Name, "no name")+": "+d.Description))
		}
		if err := writeLogin(&b, auth); err != nil {
			return err
		}
		fmt.Fprintf(&b, "    modules: [%s]\n    interval: 60s\n    timeout: 30s\n", suggested)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeLogin writes the key auth of an entry; it writes nothing for the default login.
func writeLogin(b *strings.Builder, auth snmp.Auth) error {
	login, err := yaml.Dump(auth)
	if err != nil {
		return fmt.Errorf("write the login: %w", err)
	}
	if strings.TrimSpace(string(login)) == "{}" {
		return nil
	}
	b.WriteString("    auth:\n")
	for l := range strings.Lines(strings.TrimSpace(string(login))) {
		b.WriteString("      " + strings.TrimRight(l, "\n") + "\n")
	}
	return nil
}

// suggested are modules that may apply to any device.
const suggested = "system, if_mib, hardware"

// comment prepares a text for a comment: texts of a device may contain line ends.
func comment(s string) string {
	s = text.OneLine(s)
	if r := []rune(s); len(r) > 100 {
		s = string(r[:100]) + "…"
	}
	return s
}
