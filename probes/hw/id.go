package hw

import "strings"

// DiskID returns the ID of a disk, the same for each source that knows its World Wide Name, in any form
// (naa.5000c500a1b2c3d4, 0x5000c500a1b2c3d4, 5000C500A1B2C3D4, eui.0025385b91b1f2f0), or else its model and serial
// number; "" if neither is known. An NVMe disk only has such names for its namespaces, so its sources give none.
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

// words returns s with one underscore for each run of blanks.
func words(s string) string { return strings.Join(strings.Fields(s), "_") }

// identity appends the labels that identify a machine: serial number and UUID.
func (p *Report) identity(labels []string) []string {
	for i := 0; i+1 < len(p.Facts); i += 2 {
		if name := p.Facts[i]; name == Serial || name == UUID {
			labels = append(labels, name, known(name, p.Facts[i+1]))
		}
	}
	return labels
}

// placeholders are texts that vendors leave in place of a serial number: the defaults of firmware from American
// Megatrends, Insyde and Phoenix, and words for "none".
var placeholders = [...]string{
	"To Be Filled By O.E.M.", "Default string", "System Serial Number", "Chassis Serial Number", "Not Specified", "Not Available", "Not Applicable", "None", "Unknown", "N/A", "NA", "Empty",
	"INVALID", "NO DIMM", "0123456789", "123456789", "1234567890", "01234567890123456789AB",
}

// known returns a label's value in the form common to all sources: a serial number without surrounding blanks, a UUID
// in lower case; "" for a placeholder.
func known(label, value string) string {
	switch label {
	case Serial:
		value = strings.TrimSpace(value)
		for _, p := range placeholders {
			if strings.EqualFold(value, p) {
				return ""
			}
		}
		if oneCharacter(value) {
			return ""
		}
	case UUID:
		value = strings.TrimSpace(value)
		lower := strings.ToLower(value)
		if strings.Trim(lower, "-0123456789abcdef") != "" { // a vendor's own form, such as NVIDIA's GPU-…
			return value
		}
		value = lower
		switch {
		case oneCharacter(strings.ReplaceAll(value, "-", "")): // absent or not set (SMBIOS, DSP0134, 7.2.1)
			return ""
		case value == "03000200-0400-0500-0006-000700080009", value == "00020003-0004-0005-0006-000700080009": // defaults of boards without a UUID
			return ""
		}
	}
	return value
}

// oneCharacter reports whether all characters of s are the same, as in 0000.
func oneCharacter(s string) bool { return s != "" && strings.Trim(s, s[:1]) == "" }
