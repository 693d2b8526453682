package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// A panic in a goroutine ends the process unless that goroutine recovers it. So each
// goroutine that does an input's work runs under a guard of package internal/panics. These
// trees hold the inputs.
func inputTrees() []string {
	return []string{"probes", "receivers", "agent", "internal/exposition", "internal/pages", "internal/panics"}
}

// unguarded returns the goroutines that need no guard: by file and function, each with the reason.
func unguarded() map[string]string {
	const (
		waits   = "it starts or waits for parts whose own goroutines are guarded, and does nothing else"
		targets = "it belongs to the targets' side: no body of an input passes through it"
		command = "it belongs to a command that people run, not to the agent that runs"
		watches = "it waits in a system call for the end of a process and touches no data"
		sockets = "it closes a socket, or ends its wait, and does nothing else"
		results = "the work runs under a guard; outside it a panic becomes a result, or the next piece is taken"
		tests   = "it answers from a recording in tests; the agent that runs starts none"
	)
	return map[string]string{
		"agent/changes.go do":                          "it runs one change of the configuration under a guard, and notes its end",
		"agent/stop.go":                                waits + "; the web server and the watchers of rate and clock read no input",
		"agent/check.go testTarget":                    targets,
		"agent/beat/beat.go Every":                     "it puts ticks into channels, and runs nothing of those who listen",
		"agent/control/ask.go Ask":                     command,
		"agent/queues/skip.go askSkip":                 command,
		"agent/check/check.go checkLive":               command,
		"agent/targets/family.go":                      targets,
		"agent/queues/replay.go":                       command,
		"agent/targets/target.go":                      targets,
		"agent/targets/set.go":                         targets,
		"agent/web/server.go serve":                    "it serves the page, which reads no input",
		"probes/exec/process_linux.go watch":           watches,
		"probes/exec/process_other.go watch":           watches,
		"probes/snmp/session.go send":                  sockets,
		"probes/ipmi/session.go exchange":              sockets,
		"probes/nut/client.go dial":                    sockets,
		"receivers/scrape/dnssd.go exchange":           sockets,
		"probes/exec/flights.go Start":                 results,
		"probes/redfish/walk.go fetch":                 results,
		"probes/snmp/recording/agent.go":               tests,
		"receivers/scrape/kubernetes/discovery.go Run": "the work runs under the job's guard, which the options have as a function",
		"probes/host/dbus_linux.go do":                 "it is a call of a library, whose goroutines read the socket; signals and calls, at which they could panic, are kept from them",
		"agent/hardware/snmptool/discover.go":          command,
		"agent/top/top.go":                             command,
		"receivers/set.go Close":                       waits,
		"receivers/scrape/pool.go release":             waits,
		"receivers/scrape/scraper.go Run":              waits,
		"receivers/scrape/try.go scrape":               results,
		"receivers/scrape/scraper.go stop":             waits,
	}
}

// goroutine is a place where one is started.
type goroutine struct {
	file, function string
	body           *ast.FuncLit // nil if it is not written there
}

// goroutines finds the go statements of a file, and the calls that start a goroutine: Go of a
// wait group or an error group, and AfterFunc.
func goroutines(s source) (all []goroutine) {
	for _, d := range s.ast.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		add := func(e ast.Expr) {
			body, _ := e.(*ast.FuncLit)
			all = append(all, goroutine{s.file, f.Name.Name, body})
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				add(n.Call.Fun)
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if ok && (sel.Sel.Name == "Go" || sel.Sel.Name == "AfterFunc") && len(n.Args) > 0 {
					add(n.Args[len(n.Args)-1])
				}
			}
			return true
		})
	}
	return all
}

// harmless are the calls that a guarded goroutine may make outside its guard.
func harmless(call *ast.CallExpr) bool {
	name := types.ExprString(call.Fun)
	return slices.Contains([]string{"close", "time.Since"}, name) || strings.HasSuffix(name, ".Wait") || strings.HasSuffix(name, ".Done")
}

// guards reports whether a call runs its argument under a guard.
func guards(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Do" && sel.Sel.Name != "Run" {
		return false
	}
	guard := strings.ToLower(types.ExprString(sel.X))
	return strings.HasSuffix(guard, "guard") || strings.HasSuffix(guard, "guard()") || strings.HasSuffix(guard, ".panics")
}

// starts reports whether a call starts a goroutine, which is looked at by itself.
func starts(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Go"
}

// guarded reports whether everything that a goroutine does is under a guard.
func (g goroutine) guarded() bool {
	if g.body == nil {
		return false
	}
	under, beside := false, false
	var look func(n ast.Node) bool
	look = func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		switch {
		case !ok:
			return true
		case guards(call):
			under = true
			return false
		case named(call):
			if work, ok := call.Args[len(call.Args)-1].(*ast.FuncLit); ok {
				ast.Inspect(work.Body, look)
				return false
			}
		case starts(call), harmless(call):
			return false
		}
		beside = true
		return false
	}
	ast.Inspect(g.body.Body, look)
	return under && !beside
}

// named reports whether a call does its last argument's work under a name for the stop's
// report. That changes nothing about panics, so the work is looked at.
func named(call *ast.CallExpr) bool { return types.ExprString(call.Fun) == "watchdog.Do" }

// TestGoroutinesOfInputsAreGuarded: no goroutine of an input can end the process by a panic.
func TestGoroutinesOfInputsAreGuarded(t *testing.T) {
	used, found := map[string]bool{}, 0
	for _, s := range sources(t, 0) {
		in := func(tree string) bool { return below(s.dir(), tree) }
		if s.isTest() || !slices.ContainsFunc(inputTrees(), in) || below(s.dir(), "agent/demo") {
			continue
		}
		for _, g := range goroutines(s) {
			if g.guarded() {
				found++
				continue
			}
			reviewed := ""
			for key := range unguarded() {
				if key == g.file+" "+g.function || key == g.file || below(g.file, key) {
					reviewed = key
				}
			}
			if used[reviewed] = true; reviewed == "" {
				t.Errorf("%s: %s starts a goroutine without a guard: a panic in it ends the agent. Run its work by Do or Run of the input's *panics.Guard", g.file, g.function)
			}
		}
	}
	for key := range unguarded() {
		if !used[key] {
			t.Errorf("%s is reviewed, and starts no goroutine without a guard: remove it from the list", key)
		}
	}
	if found < 8 {
		t.Errorf("only %d goroutines are guarded: the search is broken", found)
	}
}

// TestGoroutineSearchBites proves that the search finds what it is there to find.
func TestGoroutineSearchBites(t *testing.T) {
	for code, want := range map[string]bool{
		`go func() { work() }()`:                                         false,
		`go work()`:                                                      false,
		`wg.Go(work)`:                                                    false,
		`wg.Go(func() { work() })`:                                       false,
		`g.Go(func() error { return work() })`:                           false,
		`time.AfterFunc(1, func() { work() })`:                           false,
		`go func() { _ = guard.Run(work); work() }()`:                    false,
		`go func() { defer work(); _ = guard.Run(work) }()`:              false,
		`go func() { other.Do(work) }()`:                                 false,
		`go func() { _ = guard.Run(work) }()`:                            true,
		`go func() { _ = x.guard().Run(func() { work() }) }()`:           true,
		`go func() { defer close(c); err := l.guard.Do(w); c <- err }()`: true,
	} {
		s := parseFunc(t, code)
		all := goroutines(s)
		if len(all) != 1 || all[0].guarded() != want {
			t.Errorf("%s: %d goroutines, want one with guarded = %t", code, len(all), want)
		}
	}
}

// parseFunc returns a file with one function of that body.
func parseFunc(t *testing.T, body string) source {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {\n"+body+"\n}\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	return source{file: "x.go", ast: f}
}
