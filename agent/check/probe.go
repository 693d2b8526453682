package check

import (
	"cmp"
	"context"
	"strings"

	"hwsagent/agent/config"
	"hwsagent/agent/status"
	"hwsagent/internal/text"
	"hwsagent/probes/catalog"
	"hwsagent/probes/devices"
)

// checkProbe runs a probe once. If the device cannot be reached, the reason becomes the name of the step.
func checkProbe(ctx context.Context, p *config.Probe, o Options) []Step {
	st, err := o.RunProbe(ctx, p, o.Logger)
	switch {
	case err != nil:
		return []Step{{Name: "make", Result: Fail, Text: err.Error()}}
	case st.State != "ok":
		name := cmp.Or(string(st.Why), "read")
		return []Step{{Name: name, Result: Fail, Text: st.LastError, Took: st.Took, Try: tryProbe(p, st)}}
	case st.LastError != "":
		return []Step{{Name: "read", Result: Warn, Took: st.Took, Text: text.Counted(st.Samples, "sample") + "; the probe could not read everything: " + st.LastError}}
	}
	return []Step{{Name: "read", Result: OK, Took: st.Took, Text: text.Counted(st.Samples, "sample") + " in " + status.Span(st.Took)}}
}

// portOf returns the port that a firewall must open to a device which a probe of that type reads.
func portOf(probeType string) string {
	t, _ := catalog.Find(probeType)
	return cmp.Or(t.Port, "its port")
}

// tryProbe returns what to do about a failed round. The error itself already names the known cause.
func tryProbe(p *config.Probe, st Round) string {
	alone := "then try it alone: hwsagent probe " + p.Name
	why, low := st.Why, strings.ToLower(st.LastError)
	switch {
	case st.State == "hung":
		return "look at the device or file system that it reads"
	case why == devices.Login:
		return "correct the login, or the account on the device; a few wrong logins lock an account, so wait between attempts; " + alone
	case why == devices.TLS:
		return "correct tls_config, or the setting that the text names, or the device's certificate; " + alone
	case why == devices.NoAnswer:
		return "is the device on, and does every firewall let " + portOf(p.Type) + " (or the one in target) through? " + alone
	case why == devices.Refused:
		return "switch the service on in the device, or correct the port in target; " + alone
	case why == devices.Name:
		return "correct the host in target, or write an address; look at /etc/resolv.conf; " + alone
	case why == devices.NoRoute:
		return "look at this machine's addresses and routes (ip route get); " + alone
	case why == devices.Protocol:
		return "is the device there of type " + p.Type + "? " + alone
	case why == devices.Secret:
		return "let the agent's user read the file with the secret (chown, chmod 400); " + alone
	case why == devices.Limit:
		return "raise max_requests_per_second, or the interval; " + alone
	case strings.Contains(low, "permission denied"), strings.Contains(low, "operation not permitted"), strings.Contains(low, "insufficient permissions"):
		return "give the agent's user the permissions in docs/probes/" + p.Type + ".md; check runs as you, so run it as the agent's user: sudo -u hwsagent hwsagent check --probe " + p.Name
	}
	return "correct that, and try it alone: hwsagent probe " + p.Name
}
