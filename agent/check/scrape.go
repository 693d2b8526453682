package check

import (
	"context"
	"fmt"

	"hwsagent/agent/config"
	"hwsagent/internal/text"
)

// checkJob resolves the targets of a scrape job, but scrapes none of them.
func checkJob(ctx context.Context, jobs config.ScrapeJobs, name string) []Step {
	found := jobs.Look(ctx, name)
	switch {
	case found.Problem != "":
		return []Step{{Name: "discovery", Result: Fail, Text: found.Problem, Try: "correct that, or the entry in kubernetes_sd_configs"}}
	case found.Kept == 0:
		return []Step{{Name: "discovery", Result: Warn, Text: fmt.Sprintf("%s found, but relabel_configs keep none", text.Counted(found.Found, "target")),
			Try: "look at role, namespaces, selectors and relabel_configs"}}
	}
	return []Step{{Name: "discovery", Result: OK, Text: fmt.Sprintf("%s found, relabel_configs keep %d", text.Counted(found.Found, "target"), found.Kept)}}
}
