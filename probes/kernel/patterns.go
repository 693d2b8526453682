package kernel

import (
	"regexp"
	"slices"
	"strings"
)

// place is what a pattern's group named device says.
type place int

const (
	machine place = iota // nothing: the event is the whole machine's
	pci                  // a PCI address, perhaps without the function
	disk                 // sda, nvme0, nvme0n1p2, dm-0
	ataPort              // ata3
)

// pattern recognises one kind of message.
type pattern struct {
	event   string
	needs   string // a word in each of the messages, so that the expression is tried on few
	message *regexp.Regexp
	place   place
	// code is the event's code if the message has no group named code.
	code string
	// source is the file and the function that writes the message, in Linux 6.12, or a module's. Forms of
	// older versions are accepted where the pattern says so; those of 6.1 are read there.
	source string
}

// patterns are tried in order; the first that matches counts.
var patterns = []pattern{
	{"nvidia_xid", "NVRM: Xid", regexp.MustCompile(`^NVRM: Xid \(PCI:(?P<device>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})[^)]{0,40}\): (?P<code>[0-9]{1,4})\b`), pci, "",
		"NVIDIA/open-gpu-kernel-modules src/nvidia/src/kernel/gpu/rc/kernel_rc.c krcReportXid, driver 570"},
	{"machine_check", "Machine Check", regexp.MustCompile(`^(?:mce: )?\[Hardware Error\]: CPU [0-9]+: Machine Check(?P<code> Exception)?: [0-9a-fA-F]+ Bank [0-9]+: `), machine, "logged",
		"arch/x86/kernel/cpu/mce/core.c __print_mce"},
	{"machine_check", "Machine check", regexp.MustCompile(`^(?:mce: )?\[Hardware Error\]: Machine check events logged`), machine, "logged",
		"arch/x86/kernel/cpu/mce/core.c mce_notify_irq"},
	{"apei", "event severity", regexp.MustCompile(`\[Hardware Error\]: event severity: (?P<code>fatal|recoverable|corrected|info|unknown)`), machine, "",
		"drivers/firmware/efi/cper.c cper_estatus_print, called by drivers/acpi/apei/ghes.c __ghes_print_estatus and, for errors before the start, bert.c bert_print_all"},
	{"pcie_aer", "Bus Error: severity", regexp.MustCompile(`^\S+ (?P<device>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]): (?:AER: )?PCIe Bus Error: severity=(?P<code>Correct|Uncorrect[a-z]* \(Non-Fatal|Uncorrect[a-z]* \(Fatal)`), pci, "",
		"drivers/pci/pcie/aer.c aer_print_error; Corrected before 5.15"},
	{"nvme", "timeout", regexp.MustCompile(`^nvme (?P<device>nvme[0-9]+): I/O (?:tag )?[0-9]+ .{0,80}\btimeout, (?P<code>aborting|reset controller|completion polled|disable controller)`), disk, "",
		"drivers/nvme/host/pci.c nvme_timeout; without the word tag in 6.1"},
	{"nvme", "will reset", regexp.MustCompile(`^nvme (?P<device>nvme[0-9]+): controller is down; will reset`), disk, "controller_down", "drivers/nvme/host/pci.c nvme_warn_reset"},
	{"nvme", "failure", regexp.MustCompile(`^nvme (?P<device>nvme[0-9]+): (?:Disabling device after reset failure|Removing after probe failure status): `), disk, "reset_failed", "drivers/nvme/host/pci.c nvme_reset_work; Removing in 6.1"},
	{"nvme", "not ready", regexp.MustCompile(`^nvme (?P<device>nvme[0-9]+): Device not ready; aborting`), disk, "not_ready", "drivers/nvme/host/core.c nvme_wait_ready"},
	{"ata", "exception Emask", regexp.MustCompile(`^(?P<device>ata[0-9]+)(?:\.[0-9]+)?: exception Emask `), ataPort, "exception", "drivers/ata/libata-eh.c ata_eh_link_report"},
	{"ata", "failed command", regexp.MustCompile(`^(?P<device>ata[0-9]+)(?:\.[0-9]+)?: failed command: `), ataPort, "failed_command", "drivers/ata/libata-eh.c ata_eh_link_report"},
	{"ata", "disable", regexp.MustCompile(`^(?P<device>ata[0-9]+)\.[0-9]+: disabled?(?: device)?$`), ataPort, "disabled", "drivers/ata/libata-eh.c ata_dev_disable; disabled in versions older than 6.1"},
	// DID_OK says only that the disk answered; the sense key is the code then.
	{"scsi", "FAILED Result", regexp.MustCompile(`^sd [0-9:]+ \[(?P<device>sd[a-z]+)\] .{0,40}\bFAILED Result: hostbyte=(?P<code>DID_[A-NP-Z]\w{1,40}|0x[0-9a-f]{2})`), disk, "", "drivers/scsi/scsi_logging.c scsi_print_result, drivers/scsi/constants.c hostbyte_table"},
	{"scsi", "Sense Key : ", regexp.MustCompile(`^sd [0-9:]+ \[(?P<device>sd[a-z]+)\] (?:tag#[0-9]+ )?Sense Key : (?P<code>Recovered Error|Not Ready|Medium Error|Hardware Error|Data Protect|Aborted Command) `), disk, "",
		"drivers/scsi/scsi_logging.c scsi_format_sense_hdr, drivers/scsi/constants.c snstext"},
	{"block", " error, dev ", regexp.MustCompile(`^(?:\w+: )?(?P<code>I/O|critical medium|critical target|critical nexus|critical space allocation|timeout|recoverable transport|protection|device offline|unknown) error, dev (?P<device>[\w-]{1,64}), sector [0-9]+`), disk, "",
		"block/blk-mq.c blk_print_req_error; with the name of a function in front before 5.16"},
	{"filesystem", "EXT", regexp.MustCompile(`^EXT[234]-fs error \(device (?P<device>[\w-]{1,64})\)`), disk, "ext4", "fs/ext4/super.c __ext4_error"},
	{"filesystem", "read-only", regexp.MustCompile(`^EXT[234]-fs \((?P<device>[\w-]{1,64})\): Remounting filesystem read-only`), disk, "ext4_read_only", "fs/ext4/super.c ext4_handle_error"},
	// Bit 2 of the flags, or another text in versions older than 6.1, says that a user asked for the shutdown.
	{"filesystem", "hutting down", regexp.MustCompile(`^XFS \((?P<device>[\w-]{1,64})\): [^(]{1,60}(?:\(0x[0-9a-f]*[0-389ab]\) )?[Dd]etected\b.{0,200}?\bShutting down filesystem`), disk, "xfs_shutdown", "fs/xfs/xfs_fsops.c xfs_do_force_shutdown, fs/xfs/xfs_mount.h SHUTDOWN_FORCE_UMOUNT"},
	{"filesystem", "XFS (", regexp.MustCompile(`^XFS \((?P<device>[\w-]{1,64})\): (?:Metadata \S+(?: error)? detected|Internal error |Corruption Alert: |metadata I/O error)`), disk, "xfs",
		"fs/xfs/xfs_error.c xfs_buf_verifier_error, xfs_inode_verifier_error, xfs_error_report; fs/xfs/xfs_buf.c xfs_buf_ioerror_alert, xfs_buftarg_drain"},
	{"filesystem", "BTRFS", regexp.MustCompile(`^BTRFS:? (?:error|critical) \(device (?P<device>[\w-]{1,64})(?: state \w+)?\)`), disk, "btrfs", "fs/btrfs/messages.c __btrfs_handle_fs_error, _btrfs_printk"},
	{"oom_kill", "Killed process", regexp.MustCompile(`^Memory cgroup out of memory: Killed process [0-9]+`), machine, "cgroup", "mm/oom_kill.c __oom_kill_process"},
	{"oom_kill", "Killed process", regexp.MustCompile(`^Out of memory(?: \([^)]{1,40}\))?: Killed process [0-9]+`), machine, "global", "mm/oom_kill.c __oom_kill_process"},
}

// events returns the kinds of events, in order.
func events() (all []string) {
	for i := range patterns {
		if !slices.Contains(all, patterns[i].event) {
			all = append(all, patterns[i].event)
		}
	}
	return all
}

// event is what a message reports.
type event struct {
	event, code string
	device      string // a PCI address, a disk's or a port's name; "" for the machine
	place       place
}

// recognise returns the event that a message reports.
func recognise(message string) (e event, ok bool) {
	for i := range patterns {
		p := &patterns[i]
		if !strings.Contains(message, p.needs) {
			continue
		}
		m := p.message.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		e = event{event: p.event, code: p.code, place: p.place}
		for n, name := range p.message.SubexpNames() {
			switch {
			case m[n] == "":
			case name == "device":
				e.device = m[n]
			case name == "code":
				e.code = code(m[n])
			}
		}
		if p.place == pci {
			e.device = strings.ToLower(e.device)
			if !strings.Contains(e.device, ".") { // NVIDIA's driver names no function; a GPU is the first
				e.device += ".0"
			}
		}
		return e, true
	}
	return event{}, false
}

// code returns a code as a label's value: reset_controller of "reset controller", nonfatal of "Uncorrectable (Non-Fatal".
func code(text string) string {
	low := strings.ToLower(strings.TrimSpace(text))
	switch {
	case low == "correct":
		return "correctable"
	case strings.HasSuffix(low, "(non-fatal"):
		return "nonfatal"
	case strings.HasSuffix(low, "(fatal"):
		return "fatal"
	}
	return strings.NewReplacer("i/o", "io", " ", "_", "/", "_").Replace(strings.TrimPrefix(low, "did_"))
}
