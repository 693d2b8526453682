package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPageLinksResolve: each link of a page to a file of this repository leads to one that exists, and to a heading or
// an anchor in it. A page of docs that a Go file names exists, too.
func TestPageLinksResolve(t *testing.T) {
	files := trackedFiles(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	named := regexp.MustCompile(`\bdocs/[a-z/-]+\.md\b`)
	anchors := map[string]map[string]bool{}
	links := 0
	for _, file := range files {
		isPage := strings.HasSuffix(file, ".md")
		if !isPage && !strings.HasSuffix(file, ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			continue // removed and not committed yet
		}
		if !isPage {
			for _, page := range named.FindAllString(string(text), -1) {
				if _, err := os.Stat(filepath.Join("..", "..", page)); err != nil {
					t.Errorf("%s names %s, which does not exist", file, page)
				}
			}
			continue
		}
		for _, m := range link.FindAllStringSubmatch(withoutCode(string(text)), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			links++
			path := file
			if to != "" {
				path = filepath.Join(filepath.Dir(file), to)
			}
			if _, err := os.Stat(filepath.Join("..", "..", path)); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", file, m[1])
				continue
			}
			if anchor == "" || !strings.HasSuffix(path, ".md") {
				continue
			}
			if anchors[path] == nil {
				anchors[path] = anchorsOf(t, path)
			}
			if !anchors[path][anchor] {
				t.Errorf("%s: %s has no heading or anchor %q", file, path, anchor)
			}
		}
	}
	if links < 100 {
		t.Errorf("found only %d links: the search is broken", links)
	}
}

// trackedFiles lists the files of the repository, new ones included.
func trackedFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("no git, so no list of files: %v", err)
	}
	return strings.Fields(string(out))
}

var fenced = regexp.MustCompile("(?s)```.*?```")

func withoutCode(text string) string { return fenced.ReplaceAllString(text, "") }

// anchorsOf returns the anchors of a page: its own, and those that GitHub makes of headings.
func anchorsOf(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`<a id="([^"]+)">`).FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(withoutCode(string(text)), -1) {
		name := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		name = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(name), "")
		found[strings.ReplaceAll(name, " ", "-")] = true
	}
	return found
}
