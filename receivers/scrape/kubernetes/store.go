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

// store has the objects of a discovery, and knows which of them groups of targets were made with. It
// belongs to one goroutine.
type store struct {
	objects map[ref]object
	users   map[ref]map[ref]struct{} // those whose groups were made with an object, which may be absent
	uses    map[ref][]ref            // the other way around
	stale   map[ref]struct{}         // whose groups are to be made again
	primary kind                     // what groups are made of
}

func newStore(primary kind) *store {
	return &store{
		objects: map[ref]object{}, users: map[ref]map[ref]struct{}{}, uses: map[ref][]ref{},
		stale: map[ref]struct{}{}, primary: primary,
	}
}

// put keeps an object.
func (s *store) put(k kind, o object) {
	r := refOf(k, o)
	if before, ok := s.objects[r]; ok && reflect.DeepEqual(before, o) {
		return
	}
	s.objects[r] = o
	s.touch(r)
}

// remove forgets an object.
func (s *store) remove(r ref) {
	if _, ok := s.objects[r]; ok {
		delete(s.objects, r)
		s.touch(r)
	}
}

// replace makes objects all that there are of a kind in a namespace, or in all.
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

// touch notes whose groups an object changes.
func (s *store) touch(r ref) {
	if r.kind == s.primary {
		s.stale[r] = struct{}{}
	}
	for user := range s.users[r] {
		s.stale[user] = struct{}{}
	}
}

// view is the store as the group of one object sees it: it notes what it was asked for.
type view struct {
	store *store
	seen  []ref // without repetition
	known map[ref]struct{}
}

func newView(s *store) *view { return &view{store: s, known: map[ref]struct{}{}} }

// get is an object, nil if there is none.
func (v *view) get(k kind, namespace, name string) object {
	r := ref{k, namespace, name}
	if _, ok := v.known[r]; !ok {
		v.known[r] = struct{}{}
		v.seen = append(v.seen, r)
	}
	return v.store.objects[r]
}

// made notes what the group of r was made with.
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
