package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPageLinksResolve: each link of a page to a file of this repository leads to a file, and its part behind # to a heading
// or an anchor there.
func TestPageLinksResolve(t *testing.T) {
	pages := pageTexts(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	links := 0
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link %s: %v", page, m[1], err)
			} else if anchor != "" && !anchors(pages[to])[anchor] {
				t.Errorf("%s: link %s: no such heading", page, m[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("found only %d links: the search is broken", links)
	}
}

// pageTexts returns the texts of all Markdown files, without code blocks.
func pageTexts(t *testing.T) map[string]string {
	t.Helper()
	code := regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
	pages := make(map[string]string)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		pages[path] = code.ReplaceAllStringFunc(string(text), func(c string) string {
			if strings.HasPrefix(c, "```") {
				return ""
			}
			return strings.Trim(c, "`") // a heading may have it
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// anchors returns the anchors of a page, as GitHub makes them of its headings.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range regexp.MustCompile(`<a id="([^"]+)">`).FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.+)$`).FindAllStringSubmatch(text, -1) {
		title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		found[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")] = true
	}
	return found
}

// TestNamedPathsExist: the files and folders that the pages for developers name exist.
func TestNamedPathsExist(t *testing.T) {
	pages, err := filepath.Glob("../../docs/adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	path := regexp.MustCompile("`((?:cmd|agent|wal|remotewrite|probes|receivers|internal|e2e|deploy|docs)(?:/[a-zA-Z0-9_.-]+)*)`")
	names := 0
	for _, page := range append(pages, "../../ARCHITECTURE.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range path.FindAllSubmatch(text, -1) {
			names++
			if _, err := os.Stat(filepath.Join("../..", string(m[1]))); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
	}
	if names < 50 {
		t.Errorf("found only %d names: the search is broken", names)
	}
}

// TestPagesNamedInCodeExist: a page of docs that a Go file names exists, so that no message sends its reader nowhere.
func TestPagesNamedInCodeExist(t *testing.T) {
	page := regexp.MustCompile(`\bdocs/[a-z/-]+\.md\b`)
	names := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, name := range page.FindAllString(string(text), -1) {
			names++
			if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
				t.Errorf("%s names %s: %v", path, name, err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if names < 40 {
		t.Errorf("found only %d names: the search is broken", names)
	}
}
