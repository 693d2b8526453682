package kubernetes

import (
	"reflect"
	"slices"
)

// ref names an object of the cluster.
type ref struct {
	kind            kind
	namespace, name string
}

func refOf(k kind, o object) ref { return ref{k, o.about().Namespace, o.about().Name} }

// store holds the objects of a discovery, and knows which groups of targets depend on them. It belongs to one
// goroutine.
type store struct {
	objects map[ref]object
	users   map[ref]map[ref]struct{} // for an object, possibly absent: the objects whose groups depend on it
	uses    map[ref][]ref            // the inverse of users
	stale   map[ref]struct{}         // objects whose groups must be rebuilt
	primary kind                     // the kind that groups are made from
}

func newStore(primary kind) *store {
	return &store{
		objects: map[ref]object{}, users: map[ref]map[ref]struct{}{}, uses: map[ref][]ref{},
		stale: map[ref]struct{}{}, primary: primary,
	}
}

// put stores an object.
func (s *store) put(k kind, o object) {
	r := refOf(k, o)
	if before, ok := s.objects[r]; ok && reflect.DeepEqual(before, o) {
		return
	}
	s.objects[r] = o
	s.touch(r)
}

// remove removes an object.
func (s *store) remove(r ref) {
	if _, ok := s.objects[r]; ok {
		delete(s.objects, r)
		s.touch(r)
	}
}

// replace replaces all objects of a kind in a namespace, or in all namespaces.
func (s *store) replace(k kind, namespace string, all []object) {
	there := make(map[ref]struct{}, len(all))
	for _, o := range all {
		there[refOf(k, o)] = struct{}{}
		s.put(k, o)
	}
	for r := range s.objects {
		if _, ok := there[r]; !ok && r.kind == k && (namespace == "" || r.namespace == namespace) {
			s.remove(r)
		}
	}
}

// touch marks the groups that depend on an object as stale.
func (s *store) touch(r ref) {
	if r.kind == s.primary {
		s.stale[r] = struct{}{}
	}
	for user := range s.users[r] {
		s.stale[user] = struct{}{}
	}
}

// view is the store as the group of one object sees it: it records each lookup.
type view struct {
	store *store
	seen  []ref // without repetition
	known map[ref]struct{}
}

func newView(s *store) *view { return &view{store: s, known: map[ref]struct{}{}} }

// get returns an object, nil if there is none.
func (v *view) get(k kind, namespace, name string) object {
	r := ref{k, namespace, name}
	if _, ok := v.known[r]; !ok {
		v.known[r] = struct{}{}
		v.seen = append(v.seen, r)
	}
	return v.store.objects[r]
}

// made records which objects the group of r depends on.
func (s *store) made(r ref, with []ref) {
	before := s.uses[r]
	if slices.Equal(before, with) {
		return
	}
	for _, used := range before {
		delete(s.users[used], r)
		if len(s.users[used]) == 0 {
			delete(s.users, used)
		}
	}
	if len(with) == 0 {
		delete(s.uses, r)
		return
	}
	s.uses[r] = with
	for _, used := range with {
		if s.users[used] == nil {
			s.users[used] = map[ref]struct{}{}
		}
		s.users[used][r] = struct{}{}
	}
}
