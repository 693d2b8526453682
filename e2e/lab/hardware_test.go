//go:build linux && amd64

package lab

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// properties are those of a device of QEMU, as its command line and its monitor take them: JSON with typed values.
type properties map[string]any

func (p properties) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		return err.Error() // strings and numbers only
	}
	return string(text)
}

// disk is one disk of the machine.
type disk struct {
	id   string // of QEMU's device
	hwID string // the agent's hw_id, or how it begins
	properties
}

// disks are those of the machine. NVMe disks have ports of their own, from which they can be unplugged. A disk comes back where it was:
// by itself QEMU would put the USB disk into another port each time, and the place is its hw_id.
func disks() []disk {
	all := []disk{
		{"nvme0", "serial:QEMU_NVMe_Ctrl:LABNVME0", properties{"driver": "nvme", "bus": "port0", "serial": "LABNVME0"}},
		{"nvme1", "serial:QEMU_NVMe_Ctrl:LABNVME1", properties{"driver": "nvme", "bus": "port1", "serial": "LABNVME1"}},
		{"sata0", "wwn:5000c50000000001", properties{"driver": "ide-hd", "bus": "ide.0", "serial": "LABSATA0", "model": "LAB DISK", "wwn": 0x5000c50000000001}},
		{"sata1", "wwn:5000c50000000002", properties{"driver": "ide-hd", "bus": "ide.1", "serial": "LABSATA1", "model": "LAB DISK", "wwn": 0x5000c50000000002}},
		{"scsi0", "wwn:5000c50000000003", properties{"driver": "scsi-hd", "bus": "scsi.0", "scsi-id": 0, "serial": "LABSCSI0", "vendor": "LAB", "product": "SCSIDISK", "wwn": 0x5000c50000000003}},
		{"scsi1", "wwn:5000c50000000004", properties{"driver": "scsi-hd", "bus": "scsi.0", "scsi-id": 1, "serial": "LABSCSI1", "vendor": "LAB", "product": "SCSIDISK", "wwn": 0x5000c50000000004}},
		{"usb0", "at:pci:0000:00:03.0/", properties{"driver": "usb-storage", "bus": "xhci.0", "port": "1", "serial": "LABUSB0"}},
	}
	for _, d := range all {
		d.properties["id"], d.properties["drive"] = d.id, d.id+"-image"
	}
	return all
}

// brokenSector is a sector that each disk cannot read (blkdebug of QEMU: docs/devel/blkdebug.rst), of 512 bytes. It lies far from
// what the kernel reads by itself to find partitions and file systems.
const brokenSector = 40960

// nic is one network device besides that by which the test reaches the machine.
type nic struct {
	id, mac string
	properties
}

// nics have no ROM to boot from, which the machine does not need.
func nics() []nic {
	all := []nic{
		{"nic1", "52:54:00:00:00:11", properties{"driver": "e1000e", "bus": "port2"}},
		{"nic2", "52:54:00:00:00:12", properties{"driver": "virtio-net-pci", "bus": "port3"}},
	}
	for _, n := range all {
		n.properties["id"], n.properties["netdev"], n.properties["mac"], n.properties["romfile"] = n.id, n.id+"-net", n.mac, ""
	}
	return all
}

// hardware are QEMU's arguments that make the machine. The second management controller is the one that is simulated at that address.
func hardware(t *testing.T, line string) []string {
	t.Helper()
	dir := t.TempDir()
	args := append(firmware(),
		"-M", "q35", "-smp", "2", "-m", strconv.Itoa(memory),
		"-device", "virtio-net-pci,netdev=net0,mac=52:54:00:00:00:10,romfile=",
		"-device", "virtio-scsi-pci,id=scsi", "-device", "qemu-xhci,id=xhci",
		"-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng",
	)
	for i := range 4 {
		args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=port%d,bus=pcie.0,chassis=%d,slot=%[2]d", i, i+1))
	}
	for _, d := range disks() {
		image := filepath.Join(dir, d.id)
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, 64<<20); err != nil {
			t.Fatal(err)
		}
		args = append(args,
			"-blockdev", fmt.Sprintf("driver=blkdebug,node-name=%s-image,image.driver=file,image.filename=%s,"+
				"inject-error.0.event=none,inject-error.0.iotype=read,inject-error.0.errno=5,inject-error.0.sector=%d", d.id, image, brokenSector),
			"-device", d.String())
	}
	for _, n := range nics() {
		args = append(args, "-netdev", fmt.Sprintf("user,id=%s-net,restrict=on", n.id), "-device", n.String())
	}
	records, inventory := filepath.Join(dir, "sdr"), filepath.Join(dir, "fru")
	if err := os.WriteFile(records, sensorRecords(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inventory, boardInventory(), 0o600); err != nil {
		t.Fatal(err)
	}
	// The kernel numbers them from the last: /dev/ipmi1 is the one behind the line.
	return append(args, "-chardev", "socket,id=line,reconnect=1,host="+strings.Replace(line, ":", ",port=", 1), "-device", "ipmi-bmc-extern,id=bmc2,chardev=line",
		"-device", "isa-ipmi-kcs,bmc=bmc2,ioport=0xca8,irq=7",
		"-device", "ipmi-bmc-sim,id=bmc1,sdrfile="+records+",frudatafile="+inventory+",mfg_id=0x1234,product_id=0x42,fwrev1=3,fwrev2=0x21",
		"-device", "isa-ipmi-kcs,bmc=bmc1")
}

// sensor is one of the management controller's, with a linear reading: value = raw * multiplier * 10^exponent.
type sensor struct {
	number     byte
	name       string
	kind, unit byte // IPMI 2.0, tables 42-3 and 43-15
	multiplier int
	exponent   int
	raw        byte // the first reading
	entity     byte // table 43-13
}

func sensors() []sensor {
	const temperature, voltage, current, fan = 1, 2, 3, 4
	const celsius, volts, amperes, watts, rpm = 1, 4, 5, 6, 18
	return []sensor{
		{number: 1, name: "Inlet Temp", kind: temperature, unit: celsius, multiplier: 1, raw: 24, entity: 0x40},
		{number: 2, name: "CPU1 Temp", kind: temperature, unit: celsius, multiplier: 1, raw: 51, entity: 3},
		{number: 3, name: "CPU2 Temp", kind: temperature, unit: celsius, multiplier: 1, raw: 53, entity: 3},
		{number: 4, name: "FAN1", kind: fan, unit: rpm, multiplier: 100, raw: 62, entity: 29},
		{number: 5, name: "FAN2", kind: fan, unit: rpm, multiplier: 100, raw: 60, entity: 29},
		{number: 6, name: "P12V", kind: voltage, unit: volts, multiplier: 6, exponent: -2, raw: 201, entity: 7},
		{number: 7, name: "P3V3", kind: voltage, unit: volts, multiplier: 2, exponent: -2, raw: 165, entity: 7},
		{number: 8, name: "PSU1 Current", kind: current, unit: amperes, multiplier: 1, exponent: -1, raw: 17, entity: 10},
		{number: 9, name: "PSU1 Power", kind: 0x0b, unit: watts, multiplier: 4, raw: 70, entity: 10},
	}
}

// sensorRecords are the sensors' full records (IPMI 2.0, table 43-1), one after the other, and for each sensor a compact one
// (table 43-2) of another controller: QEMU's controller has the sensors only of which it finds compact records, by their
// numbers, and does not look at the controller. Who asks this one's sensors passes over them.
func sensorRecords() []byte {
	var out []byte
	for i, s := range sensors() {
		r := make([]byte, 48)
		binary.LittleEndian.PutUint16(r, uint16(i+1))
		r[2], r[3] = 0x51, 0x01
		r[5], r[7], r[8], r[9] = 0x20, s.number, s.entity, s.number
		r[10], r[11] = 0x67, 0x68 // events and scanning on; limits readable and settable
		r[12], r[13] = s.kind, 0x01
		r[21] = s.unit
		r[24], r[25] = byte(s.multiplier), byte(s.multiplier>>8)<<6
		r[29] = byte(s.exponent) << 4
		r[31], r[34] = s.raw, 0xff
		r[47] = 0xc0 | byte(len(s.name))
		r[4] = byte(len(r) + len(s.name) - 5)
		out = append(append(out, r...), s.name...)
		c := make([]byte, 34)
		c[2], c[3], c[4] = 0x51, 0x02, 29
		c[5], c[7], c[8], c[9] = 0x22, s.number, s.entity, s.number
		c[10], c[12], c[13], c[32] = 0x40, s.kind, 0x01, 0xc1
		c[33] = 'x'
		out = append(out, c...)
	}
	return out
}

// boardInventory is an inventory with a product area (IPMI FRU Information Storage Definition 1.3, sections 8 and 12).
func boardInventory() []byte {
	area := []byte{1, 0, 25}
	for _, text := range []string{"LAB", "MACHINE", "PN1", "V1", "LABMACHINE"} {
		area = append(area, 0xc0|byte(len(text)))
		area = append(area, text...)
	}
	area = append(area, 0xc0, 0xc0, 0xc1) // no asset tag, no file, the end
	for len(area)%8 != 7 {
		area = append(area, 0)
	}
	area[1] = byte((len(area) + 1) / 8)
	header := []byte{1, 0, 0, 0, 1, 0, 0}
	return append(append(header, sum(header)), append(area, sum(area))...)
}

// sum makes the sum of all bytes 0.
func sum(of []byte) (s byte) {
	for _, b := range of {
		s -= b
	}
	return s
}
