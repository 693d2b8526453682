package status

import (
	"fmt"
	"strings"
)

// strangers reports values of the label without a target of their own: a warning if their samples are dropped.
func strangers(t *TenantsStatus) (severity, text, try string) {
	var names []string
	for i, s := range t.Strangers {
		if i == 3 {
			names = append(names, fmt.Sprintf("and %d more", len(t.Strangers)-i))
			break
		}
		if s.Value == "" {
			names = append(names, s.Why)
			continue
		}
		names = append(names, fmt.Sprintf("%q (%s)", s.Value, s.Why))
	}
	text = "samples arrive for unknown tenants: " + strings.Join(names, ", ")
	try = "raise hwsagent.tenant.max_tenants, or correct the label " + t.Label + " with write_relabel_configs"
	if t.Default != "" {
		return SeverityNote, text + "; they are sent as those of " + t.Default, try
	}
	return SeverityWarning, text + "; they are dropped and counted", try + ", or name a default"
}
