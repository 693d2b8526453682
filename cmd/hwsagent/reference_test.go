package main

import (
	"bytes"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hwsagent/agent/status"
	"hwsagent/internal/tools/reference"
)

var update = flag.Bool("update", false, "write docs/reference/commands.md anew")

// TestReference holds docs/reference/commands.md to the commands, their flags and the exit codes.
func TestReference(t *testing.T) {
	for _, name := range []string{"HWSAGENT_CONFIG", "STATE_DIRECTORY"} { // which change defaults
		t.Setenv(name, "")
	}
	c := &cli{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	root := c.root()
	var b strings.Builder
	b.WriteString("# Commands\n\nGenerated from the code: `make reference`. [operate.md](../operate.md) explains when to use which. Flags work before and after the command.\n\n## Flags of every command\n\n")
	writeFlags(&b, root.PersistentFlags())
	b.WriteString("\n## Exit codes\n\n| code | |\n|---|---|\n")
	codes := regexp.MustCompile(`(?m)^  (\d)  (.+)$`).FindAllStringSubmatch(status.ExitCodes(), -1)
	if len(codes) != status.ExitLeft+1 {
		t.Errorf("the help tells %d exit codes, want %d", len(codes), status.ExitLeft+1)
	}
	for _, code := range codes {
		fmt.Fprintf(&b, "| %s | %s |\n", code[1], code[2])
	}
	b.WriteString("\nIf several apply, `check` exits with the first in the order 3, 1, 4, 5. After SIGTERM or SIGINT the agent exits within two seconds, any other command within ten.\n")
	commands := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		commands++
		if n := len(cmd.Short); n > 60 || n == 0 {
			t.Errorf("%s: its short description has %d characters, not 1 to 60", cmd.CommandPath(), n)
		}
		writeCommand(&b, cmd)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	for _, sub := range root.Commands() {
		walk(sub)
	}
	if commands < 35 {
		t.Errorf("found only %d commands: the search is broken", commands)
	}
	reference.Page(t, "../../docs/reference/commands.md", b.String(), *update)
}

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", strings.TrimPrefix(cmd.CommandPath(), "hwsagent "))
	text := cmd.Short
	if cmd.Long != "" {
		text += ". " + cmd.Long
	}
	text, _, _ = strings.Cut(text, "\n\nExit codes:")
	fmt.Fprintf(b, "```\n%s\n```\n\n%s\n", cmd.UseLine(), strings.TrimSuffix(reference.Code(prose(text)), ".")+".")
	if cmd.LocalNonPersistentFlags().HasAvailableFlags() {
		b.WriteString("\n")
		writeFlags(b, cmd.LocalNonPersistentFlags())
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.TrimRight(strings.ReplaceAll("\n"+cmd.Example, "\n  ", "\n")[1:], "\n"))
	}
}

// prose joins the lines of each paragraph; an indented line stays one of its own.
func prose(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		lines := strings.Split(p, "\n")
		for j, line := range lines {
			switch {
			case strings.HasPrefix(line, " "):
				lines[j] = "\n- " + strings.TrimSpace(line)
			case j > 0:
				lines[j] = " " + line
			}
		}
		paragraphs[i] = strings.Join(lines, "")
	}
	return strings.Join(paragraphs, "\n\n")
}

func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| flag | default | |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		def := ""
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.Name != "config.file" {
			def = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.TrimSpace("--"+f.Name+" "+value), def, strings.ReplaceAll(reference.Code(usage), "|", `\|`))
	})
}
