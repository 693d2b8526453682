package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"

	"hwsagent/agent/status"
)

// TestEveryCommandHasExamplesThatParse: each command that help shows has an example, in its manual page too. Each line of it
// is a command line of that command, or of one below it, that the program takes: its flags, their values, and the
// number of its arguments.
func TestEveryCommandHasExamplesThatParse(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := hwsagent(t, "man", dir); code != status.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	seen := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		seen++
		page, err := os.ReadFile(filepath.Join(dir, pageName(cmd)+".1"))
		if err != nil || !strings.Contains(string(page), ".SH EXAMPLES") {
			t.Errorf("the manual page of %q has no examples (%v)", cmd.CommandPath(), err)
		}
		for line := range strings.Lines(cmd.Example) {
			line = strings.TrimSuffix(line, "\n")
			if err := taken(cmd.CommandPath(), line); err != "" {
				t.Errorf("%q, example %q: %s", cmd.CommandPath(), line, err)
			}
		}
		for _, sub := range cmd.Commands() {
			if !sub.Hidden {
				walk(sub)
			}
		}
	}
	walk((&cli{}).root())
	if seen < 30 {
		t.Errorf("looked at %d commands", seen)
	}
}

// taken reports why the program does not take an example of a command, or nothing.
func taken(path, example string) string {
	words := shellWords(example)
	if !strings.HasPrefix(example, "  ") || len(words) == 0 || words[0] != "hwsagent" {
		return "is not two spaces and a command line"
	}
	cmd, rest, err := (&cli{}).root().Find(words[1:])
	if err != nil {
		return err.Error()
	}
	if got := cmd.CommandPath(); got != path && !strings.HasPrefix(got, path+" ") {
		return "is of the command " + got
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err.Error()
	}
	for _, check := range []func() error{
		func() error { return cmd.ValidateArgs(cmd.Flags().Args()) }, cmd.ValidateRequiredFlags, cmd.ValidateFlagGroups,
	} {
		if err := check(); err != nil {
			return err.Error()
		}
	}
	return ""
}

// TestCommandsOfPagesParse: each command line of hwsagent in a block of the pages is one that the program takes.
func TestCommandsOfPagesParse(t *testing.T) {
	seen := 0
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/probes/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for i, block := range strings.Split(string(text), "```") {
				for line := range strings.SplitSeq(block, "\n") {
					if i%2 == 1 && strings.HasPrefix(line, "hwsagent ") && !strings.HasPrefix(line, "hwsagent ALL=") { // of sudoers
						seen++
						if wrong := taken("hwsagent", "  "+line); wrong != "" {
							t.Errorf("%s: %q: %s", page, line, wrong)
						}
					}
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("the pages have only %d command lines: the search is broken", seen)
	}
}

// TestExampleConfigurations: each configuration in deploy/examples is taken with no warning but those of its missing
// device lists and, in the container's, of its missing target, and docs/configuration.md names it.
func TestExampleConfigurations(t *testing.T) {
	files, err := filepath.Glob("../../deploy/examples/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	index, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../../deploy/container/agent.yaml") {
		code, stdout, stderr := hwsagent(t, "check", "--syntax-only", "--config.file", file)
		expected := strings.Count(stdout, ".yml: the file does not exist") + strings.Count(stdout, "no targets are configured")
		if code != status.ExitOK || strings.Count(stdout, "    ‼ ") != expected {
			t.Errorf("%s: exit %d\n%s%s", file, code, stdout, stderr)
		}
		if name := strings.TrimPrefix(file, "../../"); !strings.Contains(string(index), "../"+name) {
			t.Errorf("docs/configuration.md does not name %s", name)
		}
	}
}

// TestExamplesThatAreNotTaken: the check of examples finds each kind of mistake.
func TestExamplesThatAreNotTaken(t *testing.T) {
	for _, c := range []struct{ path, example, want string }{
		{"hwsagent status", "  hwsagent status", ""},
		{"hwsagent targets", "  hwsagent targets pause 'a b' # a comment", ""},
		{"hwsagent status", "hwsagent status", "two spaces"},
		{"hwsagent status", "  sudo hwsagent status", "two spaces"},
		{"hwsagent status", "  hwsagent check", "is of the command hwsagent check"},
		{"hwsagent status", "  hwsagent status --nope", "unknown flag"},
		{"hwsagent targets pause", "  hwsagent targets pause", "write: hwsagent targets pause NAME"},
		{"hwsagent top", "  hwsagent top --interval soon", "invalid"},
		{"hwsagent wal replay", "  hwsagent wal replay --target a", "required"},
		{"hwsagent check", "  hwsagent check --syntax-only --no-network", "if any flags in the group"},
	} {
		if got := taken(c.path, c.example); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.example, got, c.want)
		}
	}
}

// shellWords returns the words of a command line up to a comment, a pipe or a redirection. Quotes of either kind keep what is
// between them as it is.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	begun := false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, r := range line {
		switch {
		case r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case unicode.IsSpace(r):
			end()
		case r == '|' || r == '>' || r == '#' && !begun:
			end()
			return words
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	end()
	return words
}
