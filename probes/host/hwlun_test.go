//go:build linux

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scsiDisk makes a disk of SCSI below sys.
func scsiDisk(t *testing.T, sys, name, path string, files map[string]string) {
	t.Helper()
	device := filepath.Join(sys, "devices", path)
	files["block/"+name+"/size"] = "2097152"
	for file, content := range files {
		at := filepath.Join(device, file)
		if strings.HasPrefix(file, "../") {
			at = filepath.Clean(at)
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(sys, "block"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{filepath.Join(sys, "block", name): filepath.Join(device, "block", name), filepath.Join(device, "block", name, "device"): device} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLogicalDisks: a unit of storage is one logical disk with its paths, a volume of a RAID controller is one, and a disk stays a disk.
func TestLogicalDisks(t *testing.T) {
	sys := t.TempDir()
	lun := func(state string) map[string]string {
		return map[string]string{"wwid": "naa.60050768010000000000000000000001", "vendor": "IBM", "model": "2145", "state": state}
	}
	scsiDisk(t, sys, "sda", "pci0000:00/0000:3b:00.0/host1/rport-1:0-0/target1:0:0/1:0:0:0", lun("running"))
	scsiDisk(t, sys, "sdb", "pci0000:00/0000:3b:00.0/host1/rport-1:0-1/target1:0:1/1:0:1:0", lun("running"))
	scsiDisk(t, sys, "sdc", "pci0000:00/0000:3b:00.1/host2/rport-2:0-0/target2:0:0/2:0:0:0", lun("transport-offline"))
	scsiDisk(t, sys, "sdd", "platform/host3/session1/target3:0:0/3:0:0:0", map[string]string{"wwid": "naa.60050768010000000000000000000002", "state": "running"})
	scsiDisk(t, sys, "sde", "pci0000:00/0000:5e:00.0/host4/target4:2:0/4:2:0:0", map[string]string{"model": "PERC H730", "state": "running", "../../scsi_host/host4/proc_name": "megaraid_sas"})
	scsiDisk(t, sys, "sdf", "pci0000:00/0000:5e:00.0/host4/target4:0:7/4:0:7:0", map[string]string{"model": "ST4000", "wwid": "naa.5000c500a1b2c3d4", "state": "running"})
	scsiDisk(t, sys, "sdg", "pci0000:00/0000:5f:00.0/host5/target5:1:0/5:1:0:0", map[string]string{"model": "LOGICAL VOLUME", "raid_level": "RAID 1(+0)", "../../scsi_host/host5/proc_name": "smartpqi", "state": "running"})
	got := hardwareOf(t, Config{ProcPath: t.TempDir(), SysPath: sys, UdevPath: t.TempDir()})
	for _, want := range []string{
		`hw_logical_disk_limit_bytes{hw_id="wwn:60050768010000000000000000000001"`, `hw_logical_disk_limit_bytes{hw_id="wwn:60050768010000000000000000000002"`,
		`hw_type="physical_disk"`, `hw_model="PERC H730"`, `hw_model="LOGICAL VOLUME"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for _, line := range strings.Split(got, "\n") {
		unit := strings.Contains(line, "000000000001")
		switch {
		case strings.HasPrefix(line, "hw_component_info") && strings.Contains(line, `"physical_disk"`) && !strings.Contains(line, "5000c500a1b2c3d4"):
			t.Errorf("a physical disk: %s", line)
		case unit && strings.Contains(line, "#"):
			t.Errorf("a path is a component: %s", line)
		case unit && strings.Contains(line, `hw_member_state="active"`) && !strings.HasSuffix(line, " 2"),
			unit && strings.Contains(line, `hw_member_state="missing"`) && !strings.HasSuffix(line, " 1"),
			unit && strings.Contains(line, `hw_state="degraded"`) && !strings.HasSuffix(line, " 1"):
			t.Error(line)
		}
	}
	if n := strings.Count(got, "hw_component_info"); n < 5 {
		t.Errorf("%d components in\n%s", n, got)
	}
}

// TestVirtualFunctionsAndNames: functions of SR-IOV are no ports, and a PCI device has the names of udev's database.
func TestVirtualFunctionsAndNames(t *testing.T) {
	sys, udev := t.TempDir(), t.TempDir()
	write := func(path, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, physfn := range map[string]bool{"eth0": false, "eth0v1": true} {
		write(sys+"/class/net/"+name+"/operstate", "up\n")
		write(sys+"/class/net/"+name+"/address", "02:00:00:00:00:01\n")
		write(sys+"/class/net/"+name+"/device/vendor", "0x8086\n")
		if physfn {
			write(sys+"/class/net/"+name+"/device/physfn/vendor", "0x8086\n")
		}
	}
	pci := sys + "/bus/pci/devices/0000:3b:00.0"
	write(pci+"/vendor", "0x8086\n")
	write(pci+"/device", "0x1572\n")
	write(pci+"/aer_dev_fatal", "TOTAL_ERR_FATAL 0\n")
	write(udev+"/+pci:0000:3b:00.0", "E:ID_VENDOR_FROM_DATABASE=Intel Corporation\nE:ID_MODEL_FROM_DATABASE=Ethernet Controller X710\n")
	got := hardwareOf(t, Config{ProcPath: t.TempDir(), SysPath: sys, UdevPath: udev})
	if strings.Contains(got, "eth0v1") || !strings.Contains(got, `hw_name="eth0"`) || !strings.Contains(got, `hw_vendor="Intel Corporation"`) || !strings.Contains(got, `hw_model="Ethernet Controller X710"`) {
		t.Error(got)
	}
}

// TestChipsOfOneDevice: three chips below one device, and two sensors of a chip with one label, are distinguished; a limit that the kernel gives as
// "not set" and an input that cannot be read are left out.
func TestChipsOfOneDevice(t *testing.T) {
	sys := t.TempDir()
	link := func(device, chip string) {
		t.Helper()
		class := filepath.Join(sys, "class/hwmon")
		if err := os.MkdirAll(class, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("../../devices", device, "hwmon", chip), filepath.Join(class, chip)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../..", filepath.Join(sys, "devices", device, "hwmon", chip, "device")); err != nil {
			t.Fatal(err)
		}
	}
	const radio, cpu = "platform/soc/phy0", "pci0000:00/0000:00:18.3"
	files := map[string]string{}
	for i, chip := range []string{"hwmon0", "hwmon1", "hwmon2"} {
		files["devices/"+radio+"/hwmon/"+chip+"/name"] = fmt.Sprintf("radio_%d\n", i)
		files["devices/"+radio+"/hwmon/"+chip+"/temp1_input"] = fmt.Sprintf("%d000\n", 50+i)
	}
	for name, content := range map[string]string{"name": "k10temp", "temp1_input": "45125", "temp1_label": "Tctl", "temp3_input": "44000", "temp3_label": "Tctl", "temp3_max": "65261850", "temp4_input": ""} {
		files["devices/"+cpu+"/hwmon/hwmon5/"+name] = content + "\n"
	}
	write(t, sys, files)
	for _, chip := range []string{"hwmon0", "hwmon1", "hwmon2"} {
		link(radio, chip)
	}
	link(cpu, "hwmon5")
	got := hardwareOf(t, Config{ProcPath: t.TempDir(), SysPath: sys, UdevPath: t.TempDir()})
	ids := map[string]bool{}
	for _, line := range strings.Split(got, "\n") {
		if strings.HasPrefix(line, "hw_temperature_celsius") {
			ids[line[:strings.LastIndex(line, " ")]] = true
		}
	}
	if len(ids) != 5 || strings.Contains(got, "hw_temperature_limit_celsius") {
		t.Errorf("%d temperatures in\n%s", len(ids), got)
	}
}
