// Command reached checks the test coverage of a package: a share of all statements, and the body of every branch taken
// on an error.
//
//	reached -profile cover.out -min 95 wal
//
// A branch is an if or a case whose condition compares an error with nil, or calls errors.Is or errors.As. A branch
// that no test can reach has a comment in it, or on its line, with the reason:
//
//	if err != nil { // not reached: the kernel has no such error
package main

import (
	"bufio"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Waiver is the prefix of the comment that excuses a branch.
const Waiver = "// not reached: "

func main() {
	profile := flag.String("profile", "cover.out", "what go test -coverprofile wrote")
	least := flag.Float64("min", 95, "per cent of the statements that must have been executed")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: reached -profile FILE -min PERCENT DIRECTORY")
		os.Exit(2)
	}
	f, err := os.Open(*profile)
	if err == nil {
		defer f.Close()
		err = check(os.Stdout, f, flag.Arg(0), *least)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reached:", err)
		os.Exit(1)
	}
}

// block is one line of a profile: a stretch of statements.
type block struct {
	line, column       int // where it begins
	statements, counts int
}

// check reports on the package in dir; the error lists the violations.
func check(out io.Writer, profile io.Reader, dir string, least float64) error {
	files, err := readProfile(profile, filepath.Base(dir))
	if err != nil {
		return err
	}
	var statements, executed, branches, waived, missed int
	for _, name := range slices.Sorted(maps.Keys(files)) {
		blocks := files[name]
		for _, b := range blocks {
			statements += b.statements
			if b.counts > 0 {
				executed += b.statements
			}
		}
		all, err := errorBranches(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		branches += len(all)
		for _, br := range all {
			switch {
			case br.reached(blocks):
			case br.waived:
				waived++
			default:
				missed++
				fmt.Fprintf(out, "%s: no test reaches what an error leads to\n", br.at)
			}
		}
	}
	if statements == 0 {
		return fmt.Errorf("the profile has nothing of %s", dir)
	}
	percent := 100 * float64(executed) / float64(statements)
	fmt.Fprintf(out, "%s: %.1f %% of %d statements; %d branches of errors, %d waived, %d not reached\n",
		dir, percent, statements, branches, waived, missed)
	if percent < least {
		return fmt.Errorf("%.1f %% of the statements are executed, less than %.1f %%", percent, least)
	}
	if missed > 0 {
		return fmt.Errorf("%d branches of errors are not reached: write a test, or a comment %q", missed, Waiver+"why")
	}
	return nil
}

// readProfile reads the blocks of the files that lie in a directory of that name.
func readProfile(r io.Reader, dir string) (map[string][]block, error) {
	files := map[string][]block{}
	known := map[string]int{} // indices of blocks; the tests of several packages may have executed the same one
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		path, rest, ok := strings.Cut(lines.Text(), ":")
		if !ok || path == "mode" || filepath.Base(filepath.Dir(path)) != dir {
			continue
		}
		var b block
		var endLine, endColumn int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.line, &b.column, &endLine, &endColumn, &b.statements, &b.counts); err != nil {
			return nil, fmt.Errorf("read profile: %q: %w", lines.Text(), err)
		}
		name := filepath.Base(path)
		place := fmt.Sprint(name, b.line, " ", b.column, " ", endLine, " ", endColumn)
		if i, ok := known[place]; ok {
			files[name][i].counts += b.counts
			continue
		}
		known[place] = len(files[name])
		files[name] = append(files[name], b)
	}
	return files, lines.Err()
}

// branch is the body of an if or a case taken on an error.
type branch struct {
	at       token.Position // of the condition
	from, to token.Position // of the body
	waived   bool
}

// reached reports whether any block that begins in the body was executed.
func (br branch) reached(blocks []block) bool {
	for _, b := range blocks {
		after := b.line > br.from.Line || b.line == br.from.Line && b.column >= br.from.Column
		before := b.line < br.to.Line || b.line == br.to.Line && b.column < br.to.Column
		if after && before && b.counts > 0 {
			return true
		}
	}
	return false
}

// errorBranches finds the branches in a file.
func errorBranches(name string) ([]branch, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var all []branch
	add := func(at, from, to token.Pos) {
		all = append(all, branch{at: set.Position(at), from: set.Position(from), to: set.Position(to)})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if isError(n.Cond) {
				add(n.If, n.Body.Lbrace, n.Body.Rbrace)
			}
		case *ast.CaseClause:
			for _, cond := range n.List {
				if isError(cond) {
					add(n.Case, n.Colon, n.End()+1)
					break
				}
			}
		}
		return true
	})
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, Waiver) {
				waive(all, set.Position(c.Pos()).Line)
			}
		}
	}
	return all, nil
}

// waive excuses the innermost branch around that line, which is the last one to begin.
func waive(all []branch, line int) {
	for i := len(all) - 1; i >= 0; i-- {
		if br := &all[i]; br.at.Line <= line && line <= br.to.Line {
			br.waived = true
			return
		}
	}
}

// isError reports whether a condition can be true because of an error.
func isError(cond ast.Expr) (yes bool) {
	ast.Inspect(cond, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			name := ""
			switch x := n.X.(type) {
			case *ast.Ident:
				name = x.Name
			case *ast.SelectorExpr:
				name = x.Sel.Name
			}
			null, ok := n.Y.(*ast.Ident)
			yes = yes || n.Op == token.NEQ && ok && null.Name == "nil" && strings.HasSuffix(strings.ToLower(name), "err")
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok {
				x, of := s.X.(*ast.Ident)
				yes = yes || of && x.Name == "errors" && (s.Sel.Name == "Is" || s.Sel.Name == "As")
			}
		}
		return true
	})
	return yes
}
