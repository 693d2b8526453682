package deadletter

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// Folder holds the dead letters of all targets, below the storage path.
const Folder = "deadletters"

// Dir returns the directory of a target's dead letters. It escapes the name, including dots, so that it is always
// a single path element. It also escapes the first letter of names that Windows reserves for devices, such as con or
// lpt1, because no directory can have them. The log has no target whose escaped name is too long (queue.CheckName).
func Dir(storage, target string) string {
	name := strings.ReplaceAll(url.QueryEscape(target), ".", "%2E")
	if isDevice(name) {
		name = fmt.Sprintf("%%%02X", name[0]) + name[1:]
	}
	return filepath.Join(storage, Folder, name)
}

// isDevice reports whether Windows reserves a name without a dot for a device. See
// https://learn.microsoft.com/windows/win32/fileio/naming-a-file.
func isDevice(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(name) == 4 && (name[:3] == "com" || name[:3] == "lpt") && '0' <= name[3] && name[3] <= '9'
}
