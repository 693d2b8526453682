package web

import "hwsagent/agent/status"

// Icons of the page in a browser's tab, by the level of the verdict: each has a colour and a shape of its own. They stand in the
// page itself, so that the tab of an agent that does not answer can change, too.
const (
	iconStart   markup = `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E`
	iconOK             = iconStart + `%3Ccircle cx='8' cy='8' r='8' fill='%23157347'/%3E%3Cpath d='M4 8.5l3 3 5-6' fill='none' stroke='%23fff' stroke-width='2'/%3E%3C/svg%3E`
	iconWarning        = iconStart + `%3Cpath d='M8 0l8 15H0z' fill='%23e0a100'/%3E%3Cpath d='M8 5v5m0 1.5v2' stroke='%23000' stroke-width='2'/%3E%3C/svg%3E`
	iconError          = iconStart + `%3Crect width='16' height='16' rx='2' fill='%23b42318'/%3E%3Cpath d='M4 4l8 8m0-8l-8 8' stroke='%23fff' stroke-width='2'/%3E%3C/svg%3E`
)

// icon returns the address of the icon for a level, as mark its sign.
func icon(level string) markup {
	switch level {
	case status.LevelOK, status.SeverityNote:
		return iconOK
	case status.SeverityWarning:
		return iconWarning
	}
	return iconError
}

// showIcon writes the link to the icon, with all of them for the script.
func showIcon(p *page, level string) {
	p.raw(`<link rel="icon" id="icon" href="` + icon(level) + `" data-ok="` + iconOK + `" data-warning="` + iconWarning + `" data-error="` + iconError + "\">\n")
}
