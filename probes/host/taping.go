package host

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"hwsagent/probes/tape"
)

// Parts of a recording: the first element of its paths, and the words for the kind of a path.
const (
	procPart, sysPart, udevPart = "proc", "sys", "udev"

	isFile, isLink = tape.OK, "link"
)

// Replay returns a probe that reads the machine of a recording, which it unpacks below dir, an empty directory. It only
// has hw_* and other data from files; file systems would be those of this machine, and are left out.
func Replay(t *tape.Tape, dir string, log *slog.Logger) (*Probe, error) {
	if err := unpackTape(t, dir); err != nil {
		return nil, fmt.Errorf("write the recording below %s: %w", dir, err)
	}
	c := Config{ProcPath: filepath.Join(dir, procPart), SysPath: filepath.Join(dir, sysPart), UdevPath: filepath.Join(dir, udevPart), RootFSPath: dir, Collectors: hardwareNames}
	return New(c, log, nil)
}

// unpackTape writes the files and links of a recording. It never writes outside of dir, whatever the recording
// contains.
func unpackTape(t *tape.Tape, dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, part := range [...]string{procPart, sysPart, udevPart} {
		if err := root.MkdirAll(part, 0o700); err != nil {
			return err
		}
	}
	for i := range t.Exchanges {
		if err := unpackOne(root, &t.Exchanges[i]); err != nil {
			return err
		}
	}
	for i := range t.Exchanges { // a link may lead outside through others
		if e := &t.Exchanges[i]; e.Status == isLink {
			if _, err := root.Stat(path.Clean(e.Ask)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("the link %q: %w", e.Ask, err)
			}
		}
	}
	return nil
}

func unpackOne(root *os.Root, e *tape.Exchange) error {
	part, _, _ := strings.Cut(e.Ask, "/")
	if !filepath.IsLocal(filepath.FromSlash(e.Ask)) || part != procPart && part != sysPart && part != udevPart {
		return fmt.Errorf("%q is not a path of such a recording", e.Ask)
	}
	name := path.Clean(e.Ask)
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	if e.Status != isLink {
		return root.WriteFile(name, e.Answer, 0o600)
	}
	to := string(e.Answer)
	if path.IsAbs(to) || !filepath.IsLocal(path.Join(path.Dir(name), to)) {
		return fmt.Errorf("the link %q leads out of the recording, to %q", e.Ask, to)
	}
	return root.Symlink(to, name)
}

// Redact finds the texts that identify the owner of the machine: in DMI, disks, network devices and power supplies.
func (*Probe) Redact(t *tape.Tape, r *tape.Redactor) {
	for i := range t.Exchanges {
		e := &t.Exchanges[i]
		if e.Status != isFile {
			continue
		}
		text := strings.TrimSpace(string(e.Answer))
		for line := range strings.Lines(text) { // lines of udev's database
			if uuid, ok := strings.CutPrefix(line, "E:MD_UUID="); ok {
				r.Learn(tape.Serials, uuid)
			}
			if strings.HasPrefix(line, "E:ID_PATH=") {
				for _, wwn := range worldWide.FindAllStringSubmatch(line, -1) {
					r.Learn(tape.Serials, wwn[1])
				}
			}
		}
		kind := identity(path.Base(e.Ask))
		if strings.HasSuffix(e.Ask, "/dm/name") {
			kind = tape.Names
		}
		switch {
		case kind == "" && strings.Contains(e.Ask, "/enclosure/") && path.Base(e.Ask) == "id": // the enclosure's World Wide Name
			r.Learn(tape.Serials, strings.TrimPrefix(text, "0x"))
		case kind == "":
		case kind == tape.Serials:
			for _, prefix := range [...]string{"naa.", "eui.", "nvme.", "t10.", "uuid.", "0x"} {
				if rest, ok := strings.CutPrefix(text, prefix); ok {
					text = rest
				}
			}
			r.Learn(kind, text)
		default:
			r.Learn(kind, text)
		}
	}
}

// worldWide matches a World Wide Name in a path of udev's.
var worldWide = regexp.MustCompile(`0x([0-9a-f]{16})`)

// identity returns the kind of a file's content by its name.
func identity(name string) string {
	switch name {
	case "product_serial", "board_serial", "chassis_serial", "product_uuid", "board_asset_tag", "chassis_asset_tag", "serial", "serial_number", "wwid", "uuid", "nguid", "eui64", "wwn", "unique_id",
		"port_name", "node_name", "fabric_name", "sas_address", "node_guid", "sys_image_guid", "port_guid", "subsysnqn", "hostnqn",
		"host_sas_address", "serial_num", "serialnum", "permanent_port_name":
		return tape.Serials
	case "phys_port_id", "phys_switch_id":
		return tape.MACs
	case "hostname", "node_desc", "symbolic_name", "ifalias":
		return tape.Names
	}
	return ""
}
