package replant

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

const (
	root = "../../.." // of the module

	// longest is for how long the tests that one mistake turns red may run. They take
	// seconds; the crash lab takes minutes.
	longest     = 3 * time.Minute
	longestSlow = 15 * time.Minute
)

// TestReplant brings each mistake back and sees the tests turn red.
func TestReplant(t *testing.T) {
	tier := os.Getenv("HWSAGENT_REPLANT")
	if tier == "" && os.Getenv("HWSAGENT_TORTURE") != "" {
		tier = "all"
	}
	if tier == "" {
		t.Skip("builds the product once for each mistake: run by make nightly (HWSAGENT_REPLANT=quick or all)")
	}
	all := mistakes(t)
	began := time.Now()
	if !t.Run("without", func(t *testing.T) { withoutMistakes(t, all, tier == "all") }) {
		t.Fatal("the tests must be green before a mistake can turn them red")
	}
	fmt.Printf("green without any mistake: %.0f s\n\n", time.Since(began).Seconds())

	var mu sync.Mutex
	var table []row
	t.Run("with", func(t *testing.T) {
		for _, m := range all {
			if tier != "all" && !slices.ContainsFunc(m.proofs, func(p proof) bool { return !p.slow }) {
				continue
			}
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				caught := replant(t, m, tier == "all")
				mu.Lock()
				defer mu.Unlock()
				table = append(table, row{m.name, caught, time.Since(began), t.Failed()})
			})
		}
	})
	slices.SortFunc(table, func(a, b row) int { return cmp.Compare(a.mistake, b.mistake) })
	for _, r := range table {
		fmt.Printf("%-44s %5.1f s  %s\n", r.mistake, r.took.Seconds(), r.caught)
	}
	fmt.Printf("%d mistakes in %.0f s\n", len(table), time.Since(began).Seconds())
	missed := 0
	for _, r := range table {
		if r.missed {
			missed++
		}
	}
	results.Add(t, results.Line{What: "known mistakes brought back, " + tier, Count: len(table), Figures: map[string]float64{"missed": float64(missed)}})
}

// row is what came of one mistake.
type row struct {
	mistake, caught string
	took            time.Duration
	missed          bool
}

// withoutMistakes runs all tests that are named anywhere: they are green.
func withoutMistakes(t *testing.T, all []mistake, slow bool) {
	var proofs []proof
	for _, m := range all {
		for _, p := range m.proofs {
			same := func(q proof) bool { return q.String() == p.String() }
			if (slow || !p.slow) && !slices.ContainsFunc(proofs, same) {
				proofs = append(proofs, p)
			}
		}
	}
	for _, group := range byPackage(proofs) {
		t.Run(strings.TrimPrefix(group[0].pkg, "./"), func(t *testing.T) {
			t.Parallel()
			out, failed := goTest(t, group, "")
			if err := green(group, out, failed); err != nil {
				t.Errorf("%v\n%s", err, tail(out))
			}
		})
	}
}

// replant brings one mistake back, and returns the tests that noticed.
func replant(t *testing.T, m mistake, slow bool) string {
	overlay, err := plant(t.TempDir(), m)
	if err != nil {
		t.Errorf("%s: %v", m.path, err)
		return "the patch does not apply"
	}
	var caught []string
	for _, group := range byPackage(m.proofs) {
		if group[0].slow && !slow {
			continue
		}
		out, failed := goTest(t, group, overlay)
		if err := red(group, out, failed); err != nil {
			t.Errorf("%s (%s): %v\n%s", m.path, m.what, err, tail(out))
			caught = append(caught, "NOT CAUGHT")
			continue
		}
		for _, p := range group {
			caught = append(caught, p.String())
		}
	}
	return strings.Join(caught, ", ")
}

// byPackage groups proofs that run in one go test, in the order of their packages.
func byPackage(proofs []proof) [][]proof {
	proofs = slices.Clone(proofs)
	slices.SortStableFunc(proofs, func(a, b proof) int { return cmp.Compare(a.pkg, b.pkg) })
	var groups [][]proof
	for i, p := range proofs {
		if n := len(groups); i > 0 && groups[n-1][0].pkg == p.pkg {
			groups[n-1] = append(groups[n-1], p)
			continue
		}
		groups = append(groups, []proof{p})
	}
	return groups
}

// plant applies a patch to copies of the files that it touches, below dir, and writes the
// overlay that puts them in place of the originals.
func plant(dir string, m mistake) (overlay string, err error) {
	for _, f := range m.files {
		b, err := os.ReadFile(filepath.Join(root, f))
		if errors.Is(err, fs.ErrNotExist) {
			continue // one that the patch makes
		}
		to := filepath.Join(dir, f)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o700)
		}
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	patch, err := filepath.Abs(m.path)
	if err != nil {
		return "", err
	}
	cmd := exec.Command("git", "apply", "--whitespace=nowarn", patch)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // not below some repository
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not apply any more, renew it: %w\n%s", err, out)
	}
	replace := map[string]string{}
	changed := false
	for _, f := range m.files {
		original, err := filepath.Abs(filepath.Join(root, f))
		if err != nil {
			return "", err
		}
		planted := filepath.Join(dir, f)
		before, _ := os.ReadFile(original)
		after, err := os.ReadFile(planted)
		if errors.Is(err, fs.ErrNotExist) {
			planted = "" // removed
		} else if err != nil {
			return "", err
		}
		changed = changed || !bytes.Equal(before, after)
		replace[original] = planted
	}
	if !changed {
		return "", errors.New("changes nothing")
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

// goTest runs the tests of one package, with an overlay unless that is "".
func goTest(t *testing.T, proofs []proof, overlay string) (output string, failed bool) {
	t.Helper()
	limit, slow := longest, proofs[0].slow
	if slow {
		limit = longestSlow
	}
	var names []string
	for _, p := range proofs {
		names = append(names, p.test)
	}
	args := []string{"test", "-v", "-vet=off", "-timeout", limit.String(), "-run", "^(" + strings.Join(names, "|") + ")$"}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
		if len(names) == 1 {
			args = append(args, "-failfast")
		}
	}
	// One seed, so that every run sees the same faults; the short tier of the lab; and figures of a test with a planted
	// mistake are not stored.
	env := append(os.Environ(), "HWSAGENT_SEED=1", "HWSAGENT_NIGHTLY=1", "HWSAGENT_TORTURE=", results.Env+"=")
	if slow {
		env = append(env, "HWSAGENT_E2E=1", "HWSAGENT_BINARY="+buildAgent(t, overlay))
	}
	cmd := exec.Command("go", append(args, proofs[0].pkg)...)
	cmd.Dir, cmd.Env = root, env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err != nil
}

// buildAgent builds the program for the crash lab, with the mistake in it.
func buildAgent(t *testing.T, overlay string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hwsagent")
	args := []string{"build", "-o", path}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, "./cmd/hwsagent")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, out)
	}
	return path
}

// tail returns the end of an output.
func tail(out string) string {
	const most = 4000
	if len(out) > most {
		return "…" + out[len(out)-most:]
	}
	return out
}
