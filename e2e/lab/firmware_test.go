//go:build linux && amd64

package lab

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"
)

// memory is the machine's size in MiB: one module of memory.
const memory = 1536

// firmware are QEMU's arguments for the tables of its firmware: the machine and its memory module (SMBIOS, types 1 and 17).
func firmware() []string {
	return []string{
		"-smbios", "type=1,manufacturer=LAB,product=MACHINE,serial=LABMACHINE,uuid=6d2e1c50-0000-4000-8000-000000000001",
		"-smbios", "type=17,loc_pfx=LABSLOT,bank=LABBANK,manufacturer=LABMEMORY,serial=LABMODULE,part=LAB-DIMM,speed=2666",
	}
}

// compareFirmware compares the machine and its memory modules with the firmware's tables as the kernel reads them: it takes the tables
// apart by itself (the kernel's Documentation/ABI/testing/sysfs-firmware-dmi-entries and drivers/firmware/dmi-id.c).
func compareFirmware(t *testing.T, v *vm, r *record) []*comparison {
	t.Helper()
	c := &comparison{ours: r.latest("host")}
	kernels := func(file string) string { return strings.TrimSpace(v.run("/bin/cat", "/sys/class/dmi/id/"+file)) }
	c.want(1, "hw_component_info", "hw_type", "enclosure", "hw_vendor", kernels("sys_vendor"), "hw_model", kernels("product_name"), "hw_serial_number", kernels("product_serial"),
		"hw_uuid", kernels("product_uuid"), "hw_bios_version", kernels("bios_version"))

	const entries = "/sys/firmware/dmi/entries/"
	modules := strings.Fields(v.sh("cd " + entries + "; echo 17-*"))
	for _, name := range modules {
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v.run("/bin/base64", entries+name+"/raw")), ""))
		if err != nil || len(raw) < 0x20 || len(raw) < int(raw[1]) {
			t.Fatalf("the kernel's %s has %d bytes: %v", name, len(raw), err)
		}
		texts := bytes.Split(raw[raw[1]:], []byte{0})
		text := func(field int) string {
			if n := int(raw[field]); n > 0 && n <= len(texts) {
				return string(texts[n-1])
			}
			return ""
		}
		slot := text(0x10)
		c.want(1, "hw_component_info", "hw_type", "memory", "hw_name", slot, "hw_vendor", text(0x17), "hw_serial_number", text(0x18), "hw_model", text(0x1a))
		c.want(float64(binary.LittleEndian.Uint16(raw[0x0c:]))*(1<<20), "hw_memory_size_bytes", "hw_name", slot)
	}
	// The kernel's reading must be of this machine: else both would be wrong in the same way.
	c.want(1, "hw_component_info", "hw_type", "memory", "hw_id", "dimm:LABBANK_LABSLOT_0", "hw_serial_number", "LABMODULE", "hw_vendor", "LABMEMORY", "hw_model", "LAB-DIMM")
	c.want(memory<<20, "hw_memory_size_bytes", "hw_id", "dimm:LABBANK_LABSLOT_0")
	found := 0
	for key := range c.ours {
		if strings.HasPrefix(key, "hw_memory_size_bytes{") {
			found++
		}
	}
	if found != len(modules) {
		c.problem("the agent has %d memory modules, the kernel %q", found, modules)
	}
	return []*comparison{c}
}
