package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strconv"

	"hwsagent/probes"
)

// conntrack reads the connection tracking table, if the module is there.
type conntrack struct {
	count, limit string
	stat         file
	fields       map[string]*probes.Family
	order        []string

	entries, maximum *probes.Family
}

func newConntrack(e *environment) reader {
	c := &conntrack{
		count:   e.proc("sys/net/netfilter/nf_conntrack_count"),
		limit:   e.proc("sys/net/netfilter/nf_conntrack_max"),
		stat:    file{path: e.proc("net/stat/nf_conntrack")},
		fields:  make(map[string]*probes.Family),
		entries: gauge("node_nf_conntrack_entries", "Tracked connections."),
		maximum: gauge("node_nf_conntrack_entries_limit", "How many connections can be tracked."),
	}
	for _, f := range [...]struct{ name, help string }{
		{"found", "Searched entries that were found."},
		{"invalid", "Packets that could not be tracked."},
		{"ignore", "Packets that were tracked already."},
		{"insert", "Entries inserted."},
		{"insert_failed", "Entries that could not be inserted because they were there."},
		{"drop", "Packets dropped because no entry could be made."},
		{"early_drop", "Entries dropped to make room for new ones."},
		{"search_restart", "Searches begun anew because the table was resized."},
	} {
		c.order = append(c.order, f.name)
		c.fields[f.name] = gauge("node_nf_conntrack_stat_"+f.name, f.help)
	}
	return c
}

func (c *conntrack) read(_ context.Context, r *probes.Round) error {
	count, ok := number(c.count)
	if !ok {
		return errAbsent
	}
	r.Add(c.entries, count)
	if v, ok := number(c.limit); ok {
		r.Add(c.maximum, v)
	}
	b, err := c.stat.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// A line of names, then a line of hexadecimal numbers for each CPU.
	var names [][]byte
	sums := make(map[string]float64)
	for line := range lines(b) {
		if names == nil {
			names = bytes.Fields(line)
			continue
		}
		for _, name := range names {
			var digits []byte
			digits, line = word(line)
			v, _ := hexadecimal(digits)
			sums[string(name)] += v
		}
	}
	for _, name := range c.order {
		if v, ok := sums[name]; ok {
			r.Add(c.fields[name], v)
		}
	}
	return nil
}

// softnet reads what each CPU did with packets, from /proc/net/softnet_stat.
type softnet struct {
	file    file
	labels  labelCache
	columns [12]*probes.Family // by column; nil: obsolete
}

func newSoftnet(e *environment) reader {
	return &softnet{
		file:   file{path: e.proc("net/softnet_stat")},
		labels: labelCache{name: "cpu"},
		columns: [12]*probes.Family{
			0:  counter("node_softnet_processed_total", "Packets processed."),
			1:  counter("node_softnet_dropped_total", "Packets dropped because the backlog was full."),
			2:  counter("node_softnet_times_squeezed_total", "How often the time for packets was used up while more were waiting."),
			8:  counter("node_softnet_cpu_collision_total", "Collisions on a device's transmit lock."),
			9:  counter("node_softnet_received_rps_total", "How often the CPU was woken to process packets of another."),
			10: counter("node_softnet_flow_limit_count_total", "How often a flow reached its limit."),
			11: gauge("node_softnet_backlog_len", "Packets in the backlog."),
		},
	}
}

func (s *softnet) read(_ context.Context, r *probes.Round) error {
	b, err := s.file.read()
	if err != nil {
		return optional(err)
	}
	row := 0
	var id [20]byte
	for line := range lines(b) {
		cpu := strconv.AppendInt(id[:0], int64(row), 10)
		row++
		// Offline CPUs have no line; newer kernels (5.10) have the CPU's number in column 13.
		if fields := bytes.Fields(line); len(fields) > 12 {
			if n, ok := hexadecimal(fields[12]); ok {
				cpu = strconv.AppendInt(id[:0], int64(n), 10)
			}
		}
		labels := s.labels.of(cpu)
		for _, f := range s.columns {
			var digits []byte
			digits, line = word(line)
			if v, ok := hexadecimal(digits); ok && f != nil {
				r.Add(f, v, labels...)
			}
		}
	}
	return nil
}

// schedstat reads how long each CPU ran tasks and let them wait.
type schedstat struct {
	file                         file
	labels                       labelCache
	running, waiting, timeslices *probes.Family
}

func newSchedstat(e *environment) reader {
	return &schedstat{
		file:       file{path: e.proc("schedstat")},
		labels:     labelCache{name: "cpu"},
		running:    counter("node_schedstat_running_seconds_total", "Time that the CPU ran tasks."),
		waiting:    counter("node_schedstat_waiting_seconds_total", "Time that tasks waited for the CPU."),
		timeslices: counter("node_schedstat_timeslices_total", "Time slices run."),
	}
}

func (s *schedstat) read(_ context.Context, r *probes.Round) error {
	b, err := s.file.read()
	if err != nil {
		return optional(err)
	}
	for line := range lines(b) {
		name, rest := word(line)
		id, ok := bytes.CutPrefix(name, []byte("cpu"))
		if !ok {
			continue
		}
		var last [3]float64 // of nine numbers
		for i := range 9 {
			var digits []byte
			digits, rest = word(rest)
			if v, ok := float(digits); ok && i >= 6 {
				last[i-6] = v
			}
		}
		labels := s.labels.of(id)
		r.Add(s.running, last[0]/1e9, labels...)
		r.Add(s.waiting, last[1]/1e9, labels...)
		r.Add(s.timeslices, last[2], labels...)
	}
	return nil
}

// arp counts the kernel's known neighbours by device.
type arp struct {
	file    file
	entries *probes.Family
}

func newARP(e *environment) reader {
	return &arp{file{path: e.proc("net/arp")}, gauge("node_arp_entries", "Entries of the ARP table.")}
}

func (a *arp) read(_ context.Context, r *probes.Round) error {
	b, err := a.file.read()
	if err != nil {
		return optional(err)
	}
	counts := make(map[string]float64)
	var order []string
	first := true
	for line := range lines(b) {
		if first { // the heading
			first = false
			continue
		}
		fields := bytes.Fields(line)
		if len(fields) < 6 {
			continue
		}
		device := string(fields[5])
		if counts[device]++; counts[device] == 1 {
			order = append(order, device)
		}
	}
	for _, device := range order {
		r.Add(a.entries, counts[device], "device", device)
	}
	return nil
}

// udpQueues sums the bytes in the queues of all UDP sockets.
type udpQueues struct {
	files  [2]file
	ip     [2]string
	queues *probes.Family
}

func newUDPQueues(e *environment) reader {
	return &udpQueues{
		files:  [2]file{{path: e.proc("net/udp")}, {path: e.proc("net/udp6")}},
		ip:     [2]string{"v4", "v6"},
		queues: gauge("node_udp_queues", "Bytes of kernel memory in the queues of UDP sockets."),
	}
}

func (u *udpQueues) read(_ context.Context, r *probes.Round) error {
	found := false
	for i := range u.files {
		b, err := u.files[i].read()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		found = true
		var rx, tx float64
		for line := range lines(b) {
			var queues []byte
			for range 5 { // sl, local, remote, state, queues
				queues, line = word(line)
			}
			t, q, ok := bytes.Cut(queues, []byte(":"))
			if !ok {
				continue // the heading
			}
			waiting, _ := hexadecimal(q)
			sending, _ := hexadecimal(t)
			rx += waiting
			tx += sending
		}
		r.Add(u.queues, tx, "ip", u.ip[i], "queue", "tx")
		r.Add(u.queues, rx, "ip", u.ip[i], "queue", "rx")
	}
	if !found {
		return errAbsent
	}
	return nil
}
