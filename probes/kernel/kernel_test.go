//go:build linux

package kernel

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"hwsagent/probes"
	"hwsagent/probes/tape"
	"hwsagent/probes/tape/tapetest"
)

var update = flag.Bool("update", false, "write testdata/golden.prom anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// said has messages in the form of the source that the pattern names, written for this test, and what they count as.
var said = []struct{ message, want string }{
	{"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "nvidia_xid 79 pci_device pci:0000:3b:00.0"},
	{"NVRM: Xid (PCI:0000:3B:00 GPU-I:01 GPU-CI:00): 13, pid=4711, name=train, Graphics Exception", "nvidia_xid 13 pci_device pci:0000:3b:00.0"},
	{"mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 12: b600000000070005", "machine_check exception host "},
	{"[Hardware Error]: CPU 3: Machine Check: 0 Bank 8: 8c00004000010092", "machine_check logged host "},
	{"mce: [Hardware Error]: Machine check events logged", "machine_check logged host "},
	{"{3}[Hardware Error]: event severity: corrected", "apei corrected host "},
	{"[Hardware Error]: event severity: fatal", "apei fatal host "},
	{"pcieport 0000:00:1c.0: AER: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)", "pcie_aer correctable pci_device pci:0000:00:1c.0"},
	{"pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)", "pcie_aer correctable pci_device pci:0000:00:1c.0"},
	{"nvme 0000:01:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, (Requester ID)", "pcie_aer nonfatal pci_device pci:0000:01:00.0"},
	{"mlx5_core 0000:5e:00.1: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Receiver ID)", "pcie_aer fatal pci_device pci:0000:5e:00.1"},
	{"nvme nvme0: I/O tag 627 (a273) opcode 0x1 (I/O Cmd) QID 5 timeout, aborting req_op:WRITE(1) size:8192", "nvme aborting physical_disk serial:SAMSUNG_PM1733:S5NONX0R1"},
	{"nvme nvme0: I/O 12 QID 3 timeout, reset controller", "nvme reset_controller physical_disk serial:SAMSUNG_PM1733:S5NONX0R1"},
	{"nvme nvme7: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", "nvme controller_down physical_disk disk:nvme7"},
	{"nvme nvme0: Disabling device after reset failure: -19", "nvme reset_failed physical_disk serial:SAMSUNG_PM1733:S5NONX0R1"},
	{"nvme nvme0: Removing after probe failure status: -19", "nvme reset_failed physical_disk serial:SAMSUNG_PM1733:S5NONX0R1"},
	{"nvme nvme0: Device not ready; aborting reset, CSTS=0x1", "nvme not_ready physical_disk serial:SAMSUNG_PM1733:S5NONX0R1"},
	{"ata3.00: exception Emask 0x0 SAct 0x400 SErr 0x0 action 0x6 frozen", "ata exception physical_disk wwn:5000c500a1b2c3d7"},
	{"ata3.00: failed command: READ FPDMA QUEUED", "ata failed_command physical_disk wwn:5000c500a1b2c3d7"},
	{"ata3: exception Emask 0x10 SAct 0x0 SErr 0x4040000 action 0xe frozen t1", "ata exception physical_disk wwn:5000c500a1b2c3d7"},
	{"ata9.00: disable device", "ata disabled physical_disk disk:ata9"},
	{"sd 2:0:0:0: [sda] tag#12 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=30s", "scsi time_out physical_disk wwn:5000c500a1b2c3d7"},
	{"sd 2:0:0:0: [sda] tag#12 Sense Key : Medium Error [current] [descriptor] ", "scsi medium_error physical_disk wwn:5000c500a1b2c3d7"},
	{"sd 2:0:0:0: [sda] Sense Key : Hardware Error [deferred] ", "scsi hardware_error physical_disk wwn:5000c500a1b2c3d7"},
	{"I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", "block io physical_disk wwn:5000c500a1b2c3d7"},
	{"blk_update_request: critical medium error, dev sdq, sector 99 op 0x0:(READ) flags 0x80700", "block critical_medium physical_disk disk:sdq"},
	{"critical target error, dev dm-3, sector 99 op 0x3:(DISCARD) flags 0x0", "block critical_target logical_disk disk:dm-3"},
	{"EXT4-fs error (device sda1): ext4_find_entry:1683: inode #2: comm bash: reading directory lblock 0", "filesystem ext4 physical_disk wwn:5000c500a1b2c3d7"},
	{"EXT4-fs error (device sda1) in ext4_reserve_inode_write:5866: IO failure", "filesystem ext4 physical_disk wwn:5000c500a1b2c3d7"},
	{"EXT4-fs (sda1): Remounting filesystem read-only", "filesystem ext4_read_only physical_disk wwn:5000c500a1b2c3d7"},
	{"XFS (nvme0n1p2): Metadata corruption detected at xfs_agf_verify+0x5b/0x150 [xfs], xfs_agf block 0x1 ", "filesystem xfs physical_disk serial:SAMSUNG_PM1733:S5NONX0R1"},
	{"XFS (sda2): Metadata CRC error detected at xfs_dinode_verify+0x9b/0x7c0 [xfs], inode 0x43 dinode", "filesystem xfs physical_disk wwn:5000c500a1b2c3d7"},
	{"XFS (sda2): Internal error ltrec.rm_startblock > bno at line 553 of file fs/xfs/libxfs/xfs_rmap.c.  Caller xfs_rmap_unmap+0x2a/0x30 [xfs]", "filesystem xfs physical_disk wwn:5000c500a1b2c3d7"},
	{"XFS (sda2): metadata I/O error in \"xfs_imap_to_bp+0x4d/0x70 [xfs]\" at daddr 0x40 len 32 error 5", "filesystem xfs physical_disk wwn:5000c500a1b2c3d7"},
	{"XFS (sda2): Corruption Alert: Buffer at daddr 0x40 had permanent write failures!", "filesystem xfs physical_disk wwn:5000c500a1b2c3d7"},
	{"XFS (sda2): Corruption of in-memory data (0x8) detected at xfs_trans_cancel+0x12d/0x150 [xfs] (fs/xfs/xfs_trans.c:1098).  Shutting down filesystem.", "filesystem xfs_shutdown physical_disk wwn:5000c500a1b2c3d7"},
	{"XFS (dm-0): Log I/O Error (0x2) detected at xlog_ioend_work+0x9d/0xa0 [xfs] (fs/xfs/xfs_log.c:1378).  Shutting down filesystem.", "filesystem xfs_shutdown logical_disk disk:dm-0"},
	{"BTRFS error (device sda3 state EA): bdev /dev/sda3 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0", "filesystem btrfs physical_disk wwn:5000c500a1b2c3d7"},
	{"BTRFS: error (device sda3 state A) in btrfs_commit_transaction:2523: errno=-5 IO failure (Error while writing out transaction)", "filesystem btrfs physical_disk wwn:5000c500a1b2c3d7"},
	{"BTRFS critical (device sda3): corrupt leaf: root=2 block=30408704 slot=0, unexpected item end", "filesystem btrfs physical_disk wwn:5000c500a1b2c3d7"},
	{"Out of memory: Killed process 4711 (java) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0", "oom_kill global host "},
	{"Memory cgroup out of memory: Killed process 4712 (train) total-vm:1kB", "oom_kill cgroup host "},
}

// quiet are messages of a well machine that resemble the others.
var quiet = []string{
	"ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)", "ata3: hard resetting link", "nvme nvme0: pci function 0000:01:00.0", "XFS (sda2): Mounting V5 Filesystem", "EXT4-fs (sda1): mounted filesystem with ordered data mode",
	"pcieport 0000:00:1c.0: AER: enabled with IRQ 122", "mce: CPU0: Thermal monitoring enabled (TM1)", "Out of memory and no killable processes...", "BTRFS info (device sda3): disk space caching is enabled", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
	"XFS (loop1): Log I/O Error (0x6) detected at xfs_fs_goingdown+0x63/0xb0 (fs/xfs/xfs_fsops.c:475).  Shutting down filesystem.", "XFS (loop1): Corruption detected. Unmount and run xfs_repair", "XFS (loop1): User initiated shutdown received. Shutting down filesystem",
	"sd 2:0:0:0: [sda] tag#12 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=2s", "sd 2:0:0:0: [sda] tag#12 Sense Key : Illegal Request [current] ", "sd 2:0:0:0: [sda] tag#12 Add. Sense: Unrecovered read error",
	"program said: NVRM: Xid (PCI:0000:3b:00): 79, x", "java invoked oom-killer: gfp_mask=0xcc0, order=0",
}

// sysfs is a machine with a SATA disk sda at ata3 and an NVMe disk.
func sysfs(t *testing.T) string {
	t.Helper()
	sys := t.TempDir()
	put := func(name, text string) {
		name = filepath.Join(sys, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda/device/wwid", "naa.5000c500a1b2c3d7\n")
	put("devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda/device/model", "ST4000NM0035\n")
	put("class/nvme/nvme0/model", "SAMSUNG PM1733   \n")
	put("class/nvme/nvme0/serial", "S5NONX0R1  \n")
	put("block/x", "")
	if err := os.Symlink("../devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda", filepath.Join(sys, "block/sda")); err != nil {
		t.Fatal(err)
	}
	return sys
}

func TestMessages(t *testing.T) {
	p := newPlaces(sysfs(t))
	p.look()
	seen := map[string]bool{}
	for _, c := range said {
		e, ok := recognise(c.message)
		if k := p.key(e); !ok || fmt.Sprintf("%s %s %s %s", k.Event, k.Code, k.Kind, k.ID) != c.want {
			t.Errorf("%q is %+v, want %s", c.message, k, c.want)
		}
		for i := range patterns {
			if patterns[i].message.MatchString(c.message) {
				seen[patterns[i].message.String()] = true
			}
		}
	}
	for i := range patterns {
		if !seen[patterns[i].message.String()] || patterns[i].source == "" {
			t.Errorf("%s: no message is tested, or no source is named", patterns[i].message)
		}
	}
	for _, message := range quiet {
		if e, ok := recognise(message); ok {
			t.Errorf("%q is %+v", message, e)
		}
	}
}

// machineLog is a log whose records outlive the probe, as the kernel's: each opening begins at the oldest record.
type machineLog struct {
	t       *testing.T
	boot    string
	records []string
	next    uint64
	opened  int
}

func (m *machineLog) say(facility int, message string) {
	m.records = append(m.records, fmt.Sprintf("%d,%d,%d,-;%s\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:1c.0\n", facility<<3|3, m.next, 1000+m.next, message))
	m.next++
}

// probe returns a probe that reads the log by the system calls of the real one: a socket keeps records apart, too, and has
// none at its end.
func (m *machineLog) probe(state string) *Probe {
	m.t.Helper()
	p, err := New(Config{}, state)
	if err != nil {
		m.t.Fatal(err)
	}
	p.places = newPlaces(sysfs(m.t))
	p.boot = func() (string, error) { return m.boot, nil }
	p.open = func() (source, error) {
		m.opened++
		return &reopened{log: m}, nil
	}
	return p
}

// reopened gives the records of a machineLog through a socket, one at a time.
type reopened struct {
	log  *machineLog
	at   int
	real *kmsg
}

func (r *reopened) Next() ([]byte, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(pair[0]) }()
	if r.at < len(r.log.records) {
		if err := unix.Send(pair[0], []byte(r.log.records[r.at]), 0); err != nil {
			return nil, err
		}
		r.at++
	}
	r.real = &kmsg{descriptor: pair[1]}
	defer func() { _ = r.real.Close() }()
	return r.real.Next()
}

func (r *reopened) Close() error { return nil }

// round returns what a round says, and its error; it ends as if the log of the agent had taken the samples.
func round(t *testing.T, p *Probe) (string, error) {
	t.Helper()
	r := probes.NewRound(0)
	err := p.Collect(t.Context(), r)
	var out []string
	for _, s := range r.Samples() {
		line := strings.TrimPrefix(s.Family.Name, "hw_kernel_")
		for i := 0; i < len(s.Labels); i += 2 {
			if name := s.Labels[i]; name == "hw_kernel_event" || name == "hw_kernel_code" || name == "hw_id" || name == "hw_name" {
				line += " " + s.Labels[i+1]
			}
		}
		out = append(out, fmt.Sprintf("%s %v", line, s.Value))
	}
	slices.Sort(out)
	p.Committed(err)
	return strings.Join(out, "\n"), err
}

func want(t *testing.T, p *Probe, lines ...string) {
	t.Helper()
	got, err := round(t, p)
	slices.Sort(lines)
	if d := cmp.Diff(strings.Join(lines, "\n"), got); err != nil || d != "" {
		t.Errorf("%v\n(-want +got):\n%s", err, d)
	}
}

// TestGolden: the series of a machine that has had all of the messages; the tests of the dashboard read them.
func TestGolden(t *testing.T) {
	m := &machineLog{t: t, boot: "a"}
	for _, c := range said {
		m.say(0, c.message)
	}
	r := probes.NewRound(0)
	r.Source = "kernel"
	if err := m.probe("").Collect(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range r.Samples() {
		var labels []string
		for i := 0; i < len(s.Labels); i += 2 {
			if s.Labels[i+1] != "" {
				labels = append(labels, fmt.Sprintf("%s=%q", s.Labels[i], s.Labels[i+1]))
			}
		}
		slices.Sort(labels)
		lines = append(lines, fmt.Sprintf("%s{%s} %v\n", s.Family.Name, strings.Join(labels, ","), s.Value))
	}
	slices.Sort(lines)
	got := strings.Join(lines, "")
	if *update {
		if err := os.WriteFile("testdata/golden.prom", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile("testdata/golden.prom")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(golden), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("it reads differently (-want +got):\n%s", d)
	}
}

// TestRestart: what was said while the agent was down counts once, and nothing counts twice: after an orderly restart, after a
// kill at any time, and after a reboot, whose log begins anew.
func TestRestart(t *testing.T) {
	state := filepath.Join(t.TempDir(), "probe_state", "kernel.json")
	m := &machineLog{t: t, boot: "a"}
	m.say(0, said[0].message)
	m.say(1, said[0].message) // a program writes to the log
	p := m.probe(state)
	xid := func(n int) string {
		return fmt.Sprintf("errors_total pci:0000:3b:00.0 0000:3b:00.0 nvidia_xid 79 %d", n)
	}
	want(t, p, "lost_messages_total 0", xid(1))
	m.say(0, said[0].message)
	want(t, p, "lost_messages_total 0", xid(2))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	m.say(0, said[0].message)
	p = m.probe(state)
	want(t, p, "lost_messages_total 0", xid(3))

	m.say(0, said[0].message) // read, but the agent is killed before its log has the round
	r := probes.NewRound(0)
	if err := p.Collect(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	p.Committed(errors.New("the commit failed"))
	p = m.probe(state)
	want(t, p, "lost_messages_total 0", xid(4))

	m.records, m.boot, m.next = nil, "b", 0
	m.say(0, "Linux version 6.12")
	m.say(0, said[0].message)
	p = m.probe(state)
	want(t, p, "lost_messages_total 0", xid(5))
	want(t, m.probe(state), "lost_messages_total 0", xid(5))

	// Records that were overwritten while the agent was down are counted.
	m.next += 7
	m.say(0, said[0].message)
	m.records = m.records[2:]
	want(t, m.probe(state), "lost_messages_total 7", xid(6))
}

// TestState: a damaged state file costs the counts of earlier runs, with a reason; the next round writes a new one.
func TestState(t *testing.T) {
	state := filepath.Join(t.TempDir(), "kernel.json")
	m := &machineLog{t: t, boot: "a"}
	m.say(0, said[0].message)
	for _, text := range []string{"", "{", `{"schema":2}`, `{"schema":1,"counts":[{"kind":"toaster","n":5}]}`} {
		if err := os.WriteFile(state, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := round(t, m.probe(state))
		if valid := strings.Contains(text, "toaster"); valid != (err == nil) || !valid && !strings.Contains(err.Error(), "they begin at 0") || !strings.Contains(got, "79 1") || strings.Contains(got, "5") {
			t.Errorf("%q: %v\n%s", text, err, got)
		}
		if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		want(t, m.probe(state), "lost_messages_total 0", "errors_total pci:0000:3b:00.0 0000:3b:00.0 nvidia_xid 79 1")
	}
}

func TestFailures(t *testing.T) {
	m := &machineLog{t: t, boot: "a"}
	p := m.probe("")
	p.open = func() (source, error) { return nil, os.ErrPermission }
	if got, err := round(t, p); !errors.Is(err, os.ErrPermission) || got != "" {
		t.Errorf("%v\n%s", err, got)
	}
	broken := &script{steps: []error{nil, errOverwritten, errors.New("broken")}, record: []byte("3,5,9,-;" + said[0].message)}
	p.open = func() (source, error) { return broken, nil }
	if _, err := round(t, p); err == nil || !strings.Contains(err.Error(), "read the kernel's log: broken") || !broken.closed {
		t.Errorf("%v, closed %v", err, broken.closed)
	}
	p = m.probe("")
	p.config.Events = []string{"oom_kill"}
	m.say(0, said[0].message)
	m.say(0, said[len(said)-1].message)
	want(t, p, "lost_messages_total 0", "errors_total oom_kill cgroup 1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Collect(ctx, probes.NewRound(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	err := (&Config{Events: []string{"smoke"}, Exclude: "("}).Validate()
	if err == nil || !strings.Contains(err.Error(), `events[0]: "smoke" is none of nvidia_xid, `) || !strings.Contains(err.Error(), "exclude: ") {
		t.Errorf("the error is %v", err)
	}
}

// script is a log that fails as the test says.
type script struct {
	steps  []error
	record []byte
	closed bool
}

func (s *script) Next() ([]byte, error) {
	err := s.steps[0]
	s.steps = s.steps[1:]
	return s.record, err
}

func (s *script) Close() error {
	s.closed = true
	return nil
}

// TestBounds: a driver that prints other names without end makes a thousand series, and an error that says so.
func TestBounds(t *testing.T) {
	m := &machineLog{t: t, boot: "a"}
	for i := range maxSeries + 5 {
		m.say(0, fmt.Sprintf("I/O error, dev dm-%d, sector 1 op 0x0:(READ)", i))
	}
	p := m.probe("")
	got, err := round(t, p)
	if n := strings.Count(got, "errors_total"); n != maxSeries || !errors.Is(err, probes.ErrPartial) || !strings.Contains(err.Error(), "5 events are not counted") {
		t.Errorf("%d series, %v", n, err)
	}
}

// TestThisMachine reads the log of the machine that runs the test, where it may.
func TestThisMachine(t *testing.T) {
	p, err := New(Config{}, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := round(t, p)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
		t.Skipf("needs to read /dev/kmsg: %v", err)
	}
	if err != nil || p.counts.Next == 0 || !strings.Contains(got, "lost_messages_total") {
		t.Errorf("%v, next %d\n%s", err, p.counts.Next, got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// A recording has the messages that count, without names of programs, and counts the same elsewhere.
func TestReplay(t *testing.T) {
	m := &machineLog{t: t, boot: "a"}
	m.say(0, "audit: a secret of the owner")
	for _, c := range said {
		m.say(0, c.message)
	}
	p := m.probe("")
	want := tapetest.Collect(t, p)
	taped := tape.New("kernel")
	if err := p.Record(t.Context(), taped); err != nil {
		t.Fatal(err)
	}
	file, text := tapetest.File(t, taped, p)
	for _, word := range []string{"secret", "java", "bash", "train"} {
		if strings.Contains(text, word) {
			t.Errorf("%q is in the recording:\n%s", word, text)
		}
	}
	again, err := Replay(file)
	if err != nil {
		t.Fatal(err)
	}
	got := tapetest.Collect(t, again)
	total := func(r *probes.Round) (n float64) {
		for _, s := range r.Samples() {
			n += s.Value
		}
		return n
	}
	if total(got) != total(want) || total(got) != float64(len(said)) {
		t.Errorf("%v events, want %v of %d messages", total(got), total(want), len(said))
	}
}

func FuzzRecord(f *testing.F) {
	for _, c := range said {
		f.Add([]byte("3,17,99,-;"+c.message+"\n SUBSYSTEM=pci\n"), false)
	}
	f.Add([]byte("6,0,0,c;x"), true)
	f.Fuzz(func(t *testing.T, b []byte, twice bool) {
		steps := []error{nil, errEnd}
		if twice {
			steps = []error{nil, nil, errEnd}
		}
		p, err := New(Config{}, "")
		if err != nil {
			t.Fatal(err)
		}
		p.places.sys = "/nonexistent"
		p.boot = func() (string, error) { return "a", nil }
		p.open = func() (source, error) { return &script{steps: steps, record: b}, nil }
		r := probes.NewRound(0)
		if err := p.Collect(t.Context(), r); err != nil {
			t.Error(err)
		}
		if n := len(r.Samples()); n > 2 {
			t.Errorf("one record makes %d samples", n)
		}
		for _, s := range r.Samples() {
			if len(s.Labels)%2 != 0 || math.IsNaN(s.Value) || s.Value > 1 && s.Family.Name == "hw_kernel_errors_total" {
				t.Errorf("%+v", s)
			}
		}
	})
}

// TestStateFileCannotBeWritten: the next round reports it, and the counts are saved once the file can be written.
func TestStateFileCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file in place of the directory
		t.Fatal(err)
	}
	p := &Probe{state: filepath.Join(dir, "kernel.json"), counts: newCounts(), log: nowhere{}}
	p.counts.Next = 1
	p.Committed(nil)
	if err := p.Collect(t.Context(), new(probes.Round)); err == nil || !strings.Contains(err.Error(), "a restart would count events twice") {
		t.Fatalf("the error is %v", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p.Committed(nil)
	if err := p.Collect(t.Context(), new(probes.Round)); err != nil || p.saved != 1 {
		t.Errorf("saved up to %d, %v", p.saved, err)
	}
}

// nowhere is a log without records.
type nowhere struct{}

func (nowhere) Next() ([]byte, error) { return nil, errEnd }
func (nowhere) Close() error          { return nil }
