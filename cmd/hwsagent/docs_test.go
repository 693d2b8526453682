package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"hwsagent/agent/status"
)

// TestDocumented: every command, flag and exit code stands in docs/configuration.md or
// the README, as the program has it.
func TestDocumented(t *testing.T) {
	var docs strings.Builder
	for _, page := range []string{"../../README.md", "../../docs/configuration.md", "../../docs/commands.md", "../../docs/status.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(text)
	}
	c := &cli{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	flags := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.HasParent() && !strings.Contains(docs.String(), strings.TrimPrefix(cmd.CommandPath(), "hwsagent ")) {
			t.Errorf("the command %q is in no page", cmd.CommandPath())
		}
		for _, flag := range regexp.MustCompile(`--[a-z.-]+`).FindAllString(cmd.LocalFlags().FlagUsages(), -1) {
			flags++
			if !strings.Contains(docs.String(), flag) {
				t.Errorf("the flag %s of %q is in no page", flag, cmd.CommandPath())
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(c.root())
	if flags < 10 {
		t.Errorf("found only %d flags: the search is broken", flags)
	}

	codes := regexp.MustCompile(`(?m)^  (\d)  (.+)$`).FindAllStringSubmatch(status.ExitCodes(), -1)
	if len(codes) != status.ExitLeft+1 {
		t.Errorf("the help tells %d exit codes, want %d", len(codes), status.ExitLeft+1)
	}
	for _, code := range codes {
		if !regexp.MustCompile(`(?m)^\| ` + code[1] + ` \| ` + regexp.QuoteMeta(code[2])).MatchString(docs.String()) {
			t.Errorf("the exit code %s (%s) is in no page", code[1], code[2])
		}
	}
}
