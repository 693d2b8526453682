package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
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
	known := regexp.MustCompile(`^(#.*|FROM \S+( AS \w+)?|ARG VERSION=unknown|WORKDIR /src|COPY .+|RUN .+|USER .+|VOLUME \[.+\]|EXPOSE 9464|HEALTHCHECK .+|ENTRYPOINT \[.+\]|CMD \[.+\]|)$`)
	if !strings.Contains(last, `HEALTHCHECK --start-period=60s CMD ["/usr/bin/hwsagent", "healthy", "--storage.path=/var/lib/hwsagent"]`) {
		t.Error("the image has no health check")
	}
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

// TestMemoryLimits: where a file of deploy limits memory, Go's limit is 90 % of it, and a literal.
func TestMemoryLimits(t *testing.T) {
	for file, limit := range map[string]*regexp.Regexp{
		"kubernetes/daemonset.yaml":             regexp.MustCompile(`limits: \{memory: (\d+)Mi\}\n          securityContext`),
		"kubernetes-discovery/statefulset.yaml": regexp.MustCompile(`limits: \{memory: (\d+)(?:Mi|Gi)\}`),
		"container/compose.yaml":                regexp.MustCompile(`mem_limit: (\d+)m`),
	} {
		text, err := os.ReadFile(filepath.Join("../deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		most, got := limit.FindSubmatch(text), regexp.MustCompile(`(\d+)MiB`).FindSubmatch(text)
		if most == nil || got == nil {
			t.Errorf("%s has no limit of memory, or none for Go", file)
			continue
		}
		bound, _ := strconv.Atoi(string(most[1]))
		if strings.Contains(string(most[0]), "Gi}") {
			bound *= 1024
		}
		if go90, _ := strconv.Atoi(string(got[1])); go90 != bound*9/10 {
			t.Errorf("%s: %d MiB for Go, want %d", file, go90, bound*9/10)
		}
	}
}

// TestHealthyInAnEmptyRoot: the health check of the image needs nothing but the binary, and tells an agent that runs from one that
// does not.
func TestHealthyInAnEmptyRoot(t *testing.T) {
	a := startAgent(t, "probes: []\n")
	ask := func() ([]byte, error) {
		cmd := exec.Command(binary(t), "healthy", "--storage.path="+a.storage)
		cmd.Env, cmd.Dir = []string{}, "/"
		return cmd.CombinedOutput()
	}
	if out, err := ask(); err != nil || string(out) != "hwsagent is healthy\n" {
		t.Errorf("a running agent: %v\n%s", err, out)
	}
	a.terminate(10 * time.Second)
	out, err := ask()
	if e := (*exec.ExitError)(nil); !errors.As(err, &e) || e.ExitCode() != 7 {
		t.Errorf("a stopped agent: %v\n%s", err, out)
	}
}
