package nvidia

import (
	"regexp"
	"strings"
)

// link is a line of nvidia-smi nvlink about one link: its speed in bytes per second (0: inactive), or a count of errors.
type link struct {
	uuid, number string
	errors       string // the kind of errors; "" for the speed
	value        float64
}

var (
	linkOwner = regexp.MustCompile(`^GPU [0-9]+:.*\(UUID: ([-0-9A-Za-z]+)\)`)
	linkLine  = regexp.MustCompile(`^\s*Link ([0-9]{1,3}):\s*(.*?)\s*$`)
)

// maxLinks bounds how many lines are read: 16 GPUs with 18 links have 288, with three kinds of errors.
const maxLinks = 10_000

// parseLinks parses the output of nvidia-smi nvlink --status and --errorcounters, which is text for people.
func parseLinks(text string) []link {
	var all []link
	uuid := ""
	for line := range strings.Lines(text) {
		if m := linkOwner.FindStringSubmatch(line); m != nil {
			uuid = m[1]
			continue
		}
		m := linkLine.FindStringSubmatch(line)
		if m == nil || uuid == "" || len(all) == maxLinks {
			continue
		}
		one := link{uuid: uuid, number: m[1]}
		kind, count, isCount := strings.Cut(m[2], ":")
		known := true
		switch {
		case isCount:
			one.errors = strings.ReplaceAll(strings.ToLower(strings.TrimSuffix(strings.TrimSpace(kind), " Errors")), " ", "_")
			one.value, known = number(strings.TrimSpace(count))
		case m[2] == "<inactive>":
		default:
			one.value, known = number(m[2])
		}
		if known {
			all = append(all, one)
		}
	}
	return all
}
