package pushgateway

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/common/model"

	"hwsagent/receivers"
)

const (
	root         = "/metrics/job" // of every group's address
	base64Suffix = "@base64"
)

// maxGroupLabels bounds the labels of a group, the job included.
const maxGroupLabels = 32

// groupOf reads the labels of a group from the path of a request, after its %-escapes are
// resolved: /metrics/job/<job>{/<label>/<value>}, where <label>@base64 says that its value is
// in base64url, with or without padding, and "=" stands for the empty value. The last value
// may be empty as it is. A slash in a value needs base64, as in the Pushgateway: %2F separates
// as / does.
func groupOf(path string) (map[string]string, error) {
	wrong := func(format string, args ...any) error {
		return receivers.Refuse(receivers.BadRequest, http.StatusBadRequest, format, args...)
	}
	rest, ok := strings.CutPrefix(path, "/metrics/")
	if !ok {
		return nil, wrong("the path does not begin with %s/", root)
	}
	if strings.Contains(rest, "//") {
		return nil, wrong("the path has two slashes beside each other: write an empty value, and one with a slash, in base64: /<label>%s/<value>", base64Suffix)
	}
	parts := strings.Split(rest, "/")
	if len(parts) == 3 && parts[2] == "" {
		parts = parts[:2] // a slash after the job ends the path
	}
	if strings.TrimSuffix(parts[0], base64Suffix) != model.JobLabel {
		return nil, wrong("the path does not begin with %s/", root)
	}
	if len(parts)%2 != 0 {
		return nil, wrong("the path has a label without a value: %s/<job>{/<label>/<value>}", root)
	}
	if len(parts)/2 > maxGroupLabels {
		return nil, wrong("the path has more than %d labels", maxGroupLabels)
	}
	group := map[string]string{}
	for i := 0; i < len(parts); i += 2 {
		name, value, err := pair(parts[i], parts[i+1])
		if err != nil {
			return nil, wrong("the path: %s", err)
		}
		if _, twice := group[name]; twice {
			return nil, wrong("the path has the label %q twice", name)
		}
		group[name] = value
	}
	if group[model.JobLabel] == "" {
		return nil, wrong("the job is empty")
	}
	return group, nil
}

// pair reads one label of a path. A name that begins with U__ is escaped as the Pushgateway
// takes it with --push.enable-utf8-names; one that is no valid escape stands for itself.
func pair(name, value string) (string, string, error) {
	plain, encoded := strings.CutSuffix(name, base64Suffix)
	plain = model.UnescapeName(plain, model.ValueEncodingEscaping)
	if encoded {
		b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "="))
		if err != nil {
			return "", "", fmt.Errorf("the value of %q is no base64url", plain)
		}
		value = string(b)
	}
	switch {
	case !model.UTF8Validation.IsValidLabelName(plain) || plain == model.MetricNameLabel || strings.HasPrefix(plain, model.ReservedLabelPrefix):
		return "", "", fmt.Errorf("%q is no name of a label", plain)
	case !model.LabelValue(value).IsValid():
		return "", "", fmt.Errorf("the value of %q is not UTF-8", plain)
	}
	return plain, value, nil
}
