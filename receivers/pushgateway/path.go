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
	root         = "/metrics/job" // prefix of every group's path
	base64Suffix = "@base64"
)

// maxGroupLabels bounds the labels of a group, the job included.
const maxGroupLabels = 32

// groupOf parses the labels of a group from the unescaped path of a request: /metrics/job/<job>{/<label>/<value>},
// where <label>@base64 marks a value in base64url, with or without padding, and "=" means the empty value. The last
// value may also be left empty. A slash in a value needs base64, as in the Pushgateway: %2F separates as / does.
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
		parts = parts[:2] // the path ends with a slash after the job
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

// pair parses one label of a path. It unescapes a name that begins with U__, like the Pushgateway with
// --push.enable-utf8-names; an invalid escape stands for itself.
func pair(name, value string) (string, string, error) {
	plain, encoded := strings.CutSuffix(name, base64Suffix)
	plain = model.UnescapeName(plain, model.ValueEncodingEscaping)
	if encoded {
		b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "="))
		if err != nil {
			return "", "", fmt.Errorf("the value of %q is not valid base64url", plain)
		}
		value = string(b)
	}
	switch {
	case !model.UTF8Validation.IsValidLabelName(plain) || plain == model.MetricNameLabel || strings.HasPrefix(plain, model.ReservedLabelPrefix):
		return "", "", fmt.Errorf("%q is not a label name", plain)
	case !model.LabelValue(value).IsValid():
		return "", "", fmt.Errorf("the value of %q is not UTF-8", plain)
	}
	return plain, value, nil
}
