package hw

import "strings"

// DiskID is the ID of a disk, the same from each source that knows its World Wide Name, in whatever
// form (naa.5000c500a1b2c3d4, 0x5000c500a1b2c3d4, 5000C500A1B2C3D4, eui.0025385b91b1f2f0), or else its
// model and serial number; "" if neither is known. An NVMe disk has names for its namespaces only, so its
// sources give none.
func DiskID(wwn, model, serial string) string {
	w := strings.ToLower(strings.TrimSpace(wwn))
	for _, prefix := range [...]string{"naa.", "0x"} {
		w = strings.TrimPrefix(w, prefix)
	}
	switch {
	case w != "" && strings.Trim(w, "0") != "" && !strings.HasPrefix(w, "t10."):
		return "wwn:" + w
	case strings.TrimSpace(serial) != "":
		return "serial:" + strings.TrimPrefix(words(model)+":", ":") + words(serial)
	case w != "" && strings.Trim(w, "0") != "":
		return "t10:" + words(strings.TrimPrefix(w, "t10.")) // vendor, model and serial in one
	}
	return ""
}

// words is s with one underscore for each run of blanks.
func words(s string) string { return strings.Join(strings.Fields(s), "_") }
