package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hwsagent/internal/version"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// man returns the command that writes the manual pages, which packages install.
func (c *cli) man() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write the manual pages of all commands to a directory",
		Example: "  hwsagent man /usr/local/share/man/man1",
		Args:    arguments(1, 1),
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { // #nosec G301 -- a manual is for everybody
				return fmt.Errorf("write the manual pages: %w", err)
			}
			var written []string
			for _, page := range manualPages(cmd.Root(), version.Version) {
				if err := os.WriteFile(filepath.Join(args[0], page.name), []byte(page.text), 0o644); err != nil { // #nosec G306 -- a manual is for everybody
					return fmt.Errorf("write the manual page: %w", err)
				}
				written = append(written, page.name)
			}
			if c.json {
				c.printJSON(map[string]any{"schema": 1, "pages": written})
				return nil
			}
			fmt.Fprintf(c.stdout, "%d manual pages are in %s\n", len(written), args[0])
			return nil
		}),
	}
}

// manualPage is a page in the language of troff, with the macros of man(7).
type manualPage struct{ name, text string }

// manualPages returns the page of cmd and those of all commands below it. They have no date, so that the same program
// always writes the same pages.
func manualPages(cmd *cobra.Command, version string) []manualPage {
	if cmd.Hidden {
		return nil
	}
	pages := []manualPage{{pageName(cmd) + ".1", manualText(cmd, version)}}
	for _, sub := range cmd.Commands() {
		pages = append(pages, manualPages(sub, version)...)
	}
	return pages
}

// pageName returns the name of a command's page, such as hwsagent-targets-test.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func manualText(cmd *cobra.Command, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"hwsagent %s\" \"User Commands\"\n", troff(strings.ToUpper(pageName(cmd))), troff(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", troff(pageName(cmd)), troff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", troff(synopsis(cmd)))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s", paragraphs(cmp.Or(cmd.Long, cmd.Short)))
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", troffLines(cmd.Example))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range cmd.Commands() {
			if !sub.Hidden {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", troff(pageName(sub)), troff(sub.Short))
			}
		}
	}
	b.WriteString(".SH OPTIONS\n")
	b.WriteString(options(cmd.NonInheritedFlags()))
	if cmd.HasParent() {
		b.WriteString(options(cmd.InheritedFlags()))
	}
	b.WriteString(".SH FILES\n.TP\n.I /etc/hwsagent/agent.yaml\nThe configuration.\n.TP\n.I /var/lib/hwsagent\nThe log, savepoints and the control socket.\n")
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", troff(pageName(cmd.Parent())))
	}
	return b.String()
}

// synopsis returns how a command is called. The root is called with one of its commands.
func synopsis(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() && !cmd.HasParent() {
		return cmd.CommandPath() + " COMMAND [flags]"
	}
	return cmd.UseLine()
}

// options returns the flags, one paragraph each, in alphabetical order.
func options(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			value = "=" + value
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", troff("--"+f.Name+value), troff(usage))
	})
	return b.String()
}

// paragraphs keeps the lines of a text as they are: lists and tables in help texts are aligned by
// spaces.
func paragraphs(text string) string { return ".nf\n" + troffLines(text) + "\n.fi\n" }

func troffLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = troff(lines[i])
	}
	return strings.Join(lines, "\n")
}

var troffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "–", `\(en`)

// troff escapes a line of text so that troff finds no command in it.
func troff(line string) string {
	line = troffEscapes.Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
