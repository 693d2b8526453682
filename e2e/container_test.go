package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestContainerFile: the files that the image copies are in the repository or made by the stage before, the image
// begins from scratch, and its user is not root. No test builds it: that needs a container engine.
func TestContainerFile(t *testing.T) {
	text, err := os.ReadFile("../deploy/container/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(string(text), "\nFROM scratch\n")
	if !ok || !regexp.MustCompile(`(?m)^USER 65532:65532$`).MatchString(last) {
		t.Errorf("the image is not from scratch for the user 65532:\n%s", last)
	}
	known := regexp.MustCompile(`^(#.*|FROM \S+( AS \w+)?|ARG VERSION=unknown|WORKDIR /src|COPY .+|RUN .+|USER .+|VOLUME \[.+\]|EXPOSE 9464|ENTRYPOINT \[.+\]|CMD \[.+\]|)$`)
	copies := 0
	for i, line := range strings.Split(string(text), "\n") {
		if !known.MatchString(line) {
			t.Errorf("line %d: %s", i+1, line)
		}
		source, ok := strings.CutPrefix(line, "COPY --from=build /src/")
		if !ok {
			continue
		}
		copies++
		source, _, _ = strings.Cut(source, " ")
		if _, err := os.Stat(filepath.Join("..", source)); err != nil && source != "bin/hwsagent" {
			t.Error(err)
		}
	}
	if copies != 2 || !strings.Contains(last, `ENTRYPOINT ["/usr/bin/hwsagent"]`) {
		t.Errorf("%d files are copied", copies)
	}
}
