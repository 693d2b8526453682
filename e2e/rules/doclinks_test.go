package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocLinksResolve: a name in brackets in a comment, such as a method of a type, is declared in the package of
// the comment, or in the package of this repository that it names. Packages of equal names count as one.
func TestDocLinksResolve(t *testing.T) {
	declared := make(map[string]bool) // package.Name and package.Type.Member
	packages := make(map[string]bool)
	foreign := make(map[string]bool) // package.name of each import from another module
	set := token.NewFileSet()
	var files []*ast.File
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && len(d.Name()) > 2 && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
		packages[f.Name.Name] = true
		for _, spec := range f.Imports {
			if path := strings.Trim(spec.Path.Value, `"`); !strings.HasPrefix(path, module+"/") {
				foreign[f.Name.Name+"."+filepath.Base(path)] = true
			}
		}
		for _, d := range f.Decls {
			for _, name := range declaredNames(d) {
				declared[f.Name.Name+"."+name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\[\*?([A-Za-z]\w*)((?:\.[A-Za-z]\w*){0,2})\]`)
	links := 0
	for _, f := range files {
		for _, comment := range f.Comments {
			for _, m := range link.FindAllStringSubmatch(comment.Text(), -1) {
				first, rest := m[1], m[2]
				switch {
				case ast.IsExported(first) && strings.ToUpper(first) != first: // not [TCP] or [A]
					rest = f.Name.Name + "." + first + rest
				case rest != "" && packages[first] && ast.IsExported(rest[1:]):
					rest = first + rest
				default:
					continue // no link, or into another module
				}
				if links++; !declared[rest] && !foreign[f.Name.Name+"."+first] {
					t.Errorf("%s: %s is not declared", set.Position(comment.Pos()), m[0])
				}
			}
		}
	}
	if links < 300 {
		t.Errorf("found only %d links: the search is broken", links)
	}
}

// declaredNames returns the names that a declaration of a package adds: Name, and Type.Member for methods and fields.
func declaredNames(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		return []string{typeName(d.Recv.List[0].Type) + "." + d.Name.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
				for _, member := range members(s.Type) {
					names = append(names, s.Name.Name+"."+member)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

// members returns the names of the fields of a struct, or of the methods of an interface; an embedded one is its type's.
func members(x ast.Expr) (names []string) {
	var list *ast.FieldList
	switch x := x.(type) {
	case *ast.StructType:
		list = x.Fields
	case *ast.InterfaceType:
		list = x.Methods
	default:
		return nil
	}
	for _, field := range list.List {
		if len(field.Names) == 0 {
			names = append(names, typeName(field.Type))
		}
		for _, n := range field.Names {
			names = append(names, n.Name)
		}
	}
	return names
}

// typeName returns the name of a type without its pointer, package and parameters.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}
