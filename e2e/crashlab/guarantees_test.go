//go:build linux

package crashlab

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuaranteesNameTests keeps docs/guarantees.md honest: every test that it names
// exists where the link says.
func TestGuaranteesNameTests(t *testing.T) {
	const docs = "../../docs"
	text, err := os.ReadFile(filepath.Join(docs, "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\[(Test\w+)\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1)
	if len(links) < 20 {
		t.Fatalf("only %d tests are named", len(links))
	}
	for _, link := range links {
		source, err := os.ReadFile(filepath.Join(docs, link[2]))
		if err != nil {
			t.Errorf("%s: %v", link[1], err)
		} else if !strings.Contains(string(source), "func "+link[1]+"(t *testing.T)") {
			t.Errorf("%s has no %s", link[2], link[1])
		}
	}
}
