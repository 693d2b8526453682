//go:build linux && amd64

package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// modules are what the machine's kernel loads, in this order. The test's own network comes first, so that it is eth0.
func modules() []string {
	return []string{
		"virtio_pci", "virtio_net", "e1000e", "nvme", "ahci", "virtio_scsi", "sd_mod", "sg", "xhci_pci", "usb-storage", "virtio_rng",
		"i2c-dev", "i2c-i801", "i2c-stub chip_addr=0x48,0x49,0x18", "lm75", "jc42", "drivetemp", "ipmi_si", "ipmi_devintf", "dummy numdummies=0", "bonding max_bonds=0",
		"ext4", "loop", "xfs", "raid1",
	}
}

// setup is what is done in the machine before its first process listens. The chips behind i2c-stub are registers in memory
// that the real drivers read: they hold what the test writes into them.
const setup = `set -e
/bin/busybox --install -s /bin
hostname lab
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
ip link set eth1 up
ip link set eth2 up
ip link add dummy0 type dummy
ip link set dummy0 up
for bus in /sys/bus/i2c/devices/i2c-*; do
	grep -q stub "$bus/name" || continue
	n=${bus##*-}
	echo $n >/run/stub
	# The bytes of a word are swapped: SMBus sends the lower one first, these chips the upper one.
	i2cset -y $n 0x48 0 0x8017 w # 23.5 degrees
	i2cset -y $n 0x48 2 0x004b w
	i2cset -y $n 0x48 3 0x0050 w
	i2cset -y $n 0x49 0 0x0029 w
	i2cset -y $n 0x49 2 0x004b w
	i2cset -y $n 0x49 3 0x0050 w
	i2cset -y $n 0x18 0 0x6f00 w
	i2cset -y $n 0x18 2 0x0005 w
	i2cset -y $n 0x18 4 0x5005 w
	i2cset -y $n 0x18 5 0x4002 w
	echo lm75 0x48 >$bus/new_device
	echo lm75 0x49 >$bus/new_device
	echo jc42 0x18 >$bus/new_device
done
test -e /run/stub
`

// tools are the programs of this host that the machine has, with Debian's packages.
func tools() map[string]string {
	return map[string]string{
		"smartctl": "smartmontools", "nvme": "nvme-cli", "ipmitool": "ipmitool", "prometheus-node-exporter": "prometheus-node-exporter", "i2cset": "i2c-tools",
	}
}

// agentConfig is the agent's configuration in the machine.
const agentConfig = `
global: {scrape_interval: 3s, scrape_timeout: 3s, external_labels: {site: lab}}
wal: {max_bytes: 64MiB, min_free_bytes: 1MiB}
probes:
  - {name: hwsagent, type: self, interval: 3s}
  - {name: host, type: host, interval: 4s, timeout: 4s, read_timeout: 1500ms}
  - {name: smart, type: smart, interval: 10s, timeout: 10s, read_timeout: 4s}
  - {name: ipmi, type: ipmi, target: /dev/ipmi0, interval: 4s, timeout: 4s}
  - {name: line, type: ipmi, target: /dev/ipmi1, interval: 4s, timeout: 4s}
remote_write:
  - {name: test, url: "%s", queue_config: {batch_send_deadline: 200ms, max_backoff: 1s}}
`

// startLab boots the machine and starts node_exporter and the agent in it, which writes to the URL. The address is that of the
// machine's second management controller.
func startLab(t *testing.T, write, line string) *vm {
	t.Helper()
	laboratory(t)
	qemu := needs(t, "qemu-system-x86_64", "qemu-system-x86")
	busybox := needs(t, "busybox", "busybox-static")
	modprobe := needs(t, "modprobe", "kmod")
	programs := map[string]string{}
	for name, debianPackage := range tools() {
		programs[name] = needs(t, name, debianPackage)
	}
	image, _, version := kernel(t)
	guest, agent := built(t, "./guest", ""), built(t, "../../cmd/hwsagent", "HWSAGENT_BINARY")
	initramfs := writeArchive(t, func(a *archive) {
		a.copy(guest, "/init")
		a.program(t, busybox, "/bin/busybox")
		a.entry("/bin/sh", cpioLink, []byte("busybox"))
		a.copy(agent, "/usr/bin/hwsagent")
		for name, path := range programs {
			a.program(t, path, "/usr/sbin/"+name)
		}
		a.modules(t, modprobe, version, modules())
		a.entry("/etc/lab/setup", cpioFile, []byte(setup))
		a.entry("/etc/passwd", cpioFile, []byte("root:x:0:0:root:/:/bin/sh\n"))
		a.entry("/etc/group", cpioFile, []byte("root:x:0:\n"))
		a.copy("/etc/os-release", "/etc/os-release")
		// The guest's loopback is another: QEMU gives it this host's under that address (slirp).
		a.entry("/etc/agent.yaml", cpioFile, fmt.Appendf(nil, agentConfig, strings.Replace(write, "127.0.0.1", "10.0.2.2", 1)))
	})
	arguments := append(hardware(t, line), accelerator(t, qemu, image)...)
	v := boot(t, qemu, append(arguments, "-kernel", image, "-initrd", initramfs, "-append", "console=ttyS0 panic=-1 net.ifnames=0 quiet"))
	v.start("/run/exporter.log", append([]string{"/usr/sbin/prometheus-node-exporter"}, exporterFlags()...)...)
	v.start("/run/agent.log", "/usr/bin/hwsagent", "run", "--config.file", "/etc/agent.yaml", "--storage.path", "/run/agent", "--web.listen-address", "127.0.0.1:9999")
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if a, err := v.ask(10*time.Second, request{Args: []string{"/bin/tail", "-n", "60", "/run/agent.log"}, Seconds: 5}); err == nil {
			t.Logf("the agent said:\n%s", a.Stdout)
		}
	})
	return v
}

// exporterFlags make Debian's node_exporter read what upstream's reads by default, as the probe host does: Debian's has other
// defaults for mount points, network devices and protocols.
func exporterFlags() []string {
	return []string{
		"--web.listen-address=127.0.0.1:9100", "--web.disable-exporter-metrics", "--collector.cpu.guest",
		"--collector.filesystem.mount-points-exclude=^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)",
		"--collector.netdev.device-exclude=^$",
		"--collector.netstat.fields=^(.*_(InErrors|InErrs)|Ip_Forwarding|Ip(6|Ext)_(InOctets|OutOctets)|Icmp6?_(InMsgs|OutMsgs)|" +
			"TcpExt_(Listen.*|Syncookies.*|TCPSynRetrans|TCPTimeouts|TCPOFOQueue|TCPRcvQDrop)|" +
			"Tcp_(ActiveOpens|InSegs|OutSegs|OutRsts|PassiveOpens|RetransSegs|CurrEstab)|" +
			"Udp6?_(InDatagrams|OutDatagrams|NoPorts|RcvbufErrors|SndbufErrors))$",
	}
}
