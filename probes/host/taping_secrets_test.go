//go:build linux

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/probes/tape"
)

// TestRecordHasNoSecrets: keys, addresses, World Wide Names and names of people's volumes and files that the kernel shows beside the
// hardware are not in a recording.
func TestRecordHasNoSecrets(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, to string) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, p); err != nil {
			t.Fatal(err)
		}
	}
	link("sys/class/nvme/nvme0", "../../devices/virtual/nvme-fabrics/ctl/nvme0")
	put("sys/devices/virtual/nvme-fabrics/ctl/nvme0/dhchap_secret", "DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:")
	link("sys/class/net/eth0", "../../devices/pci0000:00/0000:00:01.0/net/eth0")
	put("sys/devices/pci0000:00/0000:00:01.0/net/eth0/address", "3c:fd:fe:9d:12:34")
	put("sys/devices/pci0000:00/0000:00:01.0/net/eth0/phys_port_id", "3cfdfe9d1234")
	link("sys/class/scsi_host/host0", "../../devices/pci0000:00/0000:00:02.0/host0/scsi_host/host0")
	put("sys/devices/pci0000:00/0000:00:02.0/host0/scsi_host/host0/host_sas_address", "0x500605b00a1b2c3d")
	put("sys/devices/pci0000:00/0000:00:02.0/host0/scsi_host/host0/serial_num", "RFD1234K56789")
	put("sys/devices/pci0000:00/0000:00:02.0/host0/scsi_host/host0/serialnum", "FC71234567")
	link("sys/block/loop0", "../devices/virtual/block/loop0")
	put("sys/devices/virtual/block/loop0/loop/backing_file", "/home/alice/acme-payroll.img")
	link("sys/block/dm-0", "../devices/virtual/block/dm-0")
	put("sys/devices/virtual/block/dm-0/dm/name", "vg0-acme_payroll")
	put("udev/b8:0", "E:ID_PATH=pci-0000:01:00.0-sas-exp0x500304801e977b7f-phy0-lun-0\nE:ID_SERIAL=XX")
	put("proc/spl/kstat/zfs/dbgmsg", "timestamp message\n1 command: zfs snapshot tank/home/alice@x")
	c := Config{ProcPath: dir + "/proc", SysPath: dir + "/sys", UdevPath: dir + "/udev", RootFSPath: dir}
	p := mustNew(t, c)
	tp := tape.New("host")
	if err := p.Record(t.Context(), tp); err != nil {
		t.Fatal(err)
	}
	words, err := tape.NewRedactor(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Redact(tp, words)
	words.Tape(tp)
	var b strings.Builder
	if err := tp.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"DHHC-1:00:ia6z", "3cfdfe9d1234", "500605b00a1b2c3d", "RFD1234K56789", "FC71234567", "alice/acme", "acme_payroll", "500304801e977b7f", "tank/home/alice"} {
		if strings.Contains(b.String(), s) {
			t.Errorf("%s is in the recording", s)
		}
	}
	if !strings.Contains(b.String(), "class/net/eth0") {
		t.Errorf("the tree was not recorded:\n%s", b.String())
	}
}

// TestReplayFollowsNoChainOfLinks: links that lead out of the recording only together are refused.
func TestReplayFollowsNoChainOfLinks(t *testing.T) {
	outer := t.TempDir()
	if err := os.WriteFile(filepath.Join(outer, "secret"), []byte("OUTSIDE-THE-RECORDING\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(outer, "rec")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	tp := tape.New("host")
	tp.Add("sys/l", isLink, []byte("../proc"))
	tp.Add("sys/m", isLink, []byte("l/../.."))
	tp.Add("sys/class/dmi/id/sys_vendor", isFile, []byte("Vendor\n"))
	tp.Add("sys/class/dmi/id/product_name", isLink, []byte("../../../m/secret"))
	if _, err := Replay(tp, dir, quiet()); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a recording whose links lead outside: %v", err)
	}
}
