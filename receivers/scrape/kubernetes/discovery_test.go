package kubernetes

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"hwsagent/receivers/scrape/kubernetes/apitest"
)

// TestFollow: targets come with the list, which has pages, and change with the watch.
func TestFollow(t *testing.T) {
	s := newServer(t)
	s.Page(3)
	want := putPods(s, 10)
	r := discover(t, s, "role: pod")
	r.finds("a list of pages", want)
	if s.Asked("continue=") != 3 {
		t.Errorf("%d further pages were asked for, want 3", s.Asked("continue="))
	}
	s.Put("pods", aPod("b", "new", "10.1.0.1"))
	r.finds("an added pod", want+" 10.1.0.1:80")
	s.Put("pods", aPod("b", "new", "10.1.0.2"))
	r.finds("a changed pod", want+" 10.1.0.2:80")
	s.Put("pods", aPod("b", "new", ""))
	r.finds("a pod without an address", want)
	s.Put("pods", aPod("b", "new", "10.1.0.3"))
	r.finds("with one again", want+" 10.1.0.3:80")
	s.Delete("pods", "b", "new")
	r.finds("a pod that is gone", want)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events["pod add"] != 1 || r.events["pod update"] != 3 || r.events["pod delete"] != 1 || r.failed != 0 || len(r.problems) != 0 {
		t.Errorf("events %v, %d failures, problems %q", r.events, r.failed, r.problems)
	}
}

// TestFaults: whatever the server does, targets that were found stay, the problem says why, and all is right
// again when the server is.
func TestFaults(t *testing.T) {
	answer := func(kind, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body) // a client that has gone is the point of some cases
			return true
		}
	}
	refuse := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			apitest.Refuse(w, code, "", "sorry")
			return true
		}
	}
	const js = "application/json"
	list := `{"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": `
	for _, tc := range []struct {
		name  string
		fault func(http.ResponseWriter, *http.Request) bool
		want  string
	}{
		{"401", refuse(401), "the API server answered 401 Unauthorized: sorry; the API server does not accept the token"},
		{"403", apitest.Forbid("pods"), `ClusterRole with apiGroups: [""], resources: [pods], verbs: [list, watch]`},
		{"404", refuse(404), "not that of an API server"},
		{"500", refuse(500), "500 Internal Server Error: sorry"},
		{"no JSON", answer(js, "<html>"), "invalid character"},
		{"HTML", answer("text/html", "<html>"), "not JSON"},
		{"half a list", answer(js, list+"[{"), "list pods: unexpected EOF"},
		{"a list of something else", answer(js, `{"kind": "NodeList", "items": []}`), "not a PodList but"},
		{"a status that says it is well", answer(js, `{"kind": "Status"}`), "not a PodList but"},
		{"no version", answer(js, `{"kind": "PodList", "items": []}`), "no resourceVersion"},
		{"items of another type", answer(js, list+"{}}"), "items is not a list"},
		{"a null", answer(js, list+"[null]}"), "without a name"},
		{"a number for a name", answer(js, list+`[{"metadata": {"name": 7}}]}`), "cannot unmarshal number"},
		{"an endless object", answer(js, list+`[{"metadata": {"name": "`+strings.Repeat("a", maxObject+1)), "more than 8388608 bytes"},
		{"deep nesting", answer(js, list+`[{"x": `+strings.Repeat("[", 100_000)), "exceeded max depth"},
		{"a redirect to itself", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
			return true
		}, "redirects"},
		{"cut connections", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			want := putPods(s, 2)
			r := discover(t, s, "role: pod")
			r.finds("at first", want)
			var fired atomic.Int64
			s.Fail(func(w http.ResponseWriter, req *http.Request) bool {
				fired.Add(1)
				return tc.fault(w, req)
			})
			s.Forget()
			s.Cut()
			r.tells("the fault", tc.want)
			r.finds("with the fault", want)
			if fired.Load() == 0 {
				t.Error("the fault did not fire")
			}
			s.Fail(nil)
			s.Put("pods", aPod("z", "late", "10.9.9.9"))
			s.Delete("pods", "a", "p0")
			r.finds("without the fault", "10.0.0.1:80 10.9.9.9:80")
			r.tells("without the fault", "")
		})
	}
}

// TestWatchFaults: a watch that breaks in whichever way loses no change, and is taken up without a list where
// that is possible.
func TestWatchFaults(t *testing.T) {
	event := func(text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("watch") == "" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text) // the server cuts it
			return true
		}
	}
	for _, tc := range []struct {
		name  string
		fault func(http.ResponseWriter, *http.Request) bool
		lists bool // anew
	}{
		{"nothing", event(""), false},
		{"an event in half", event(`{"type": "ADD`), false},
		{"no JSON", event("<"), true},
		{"an object of another type", event(`{"type": "ADDED", "object": 7}`), true},
		{"an object without a name", event(`{"type": "ADDED", "object": {}}`), true},
		{"an error", event(`{"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "sorry"}}`), true},
		{"an error of another type", event(`{"type": "ERROR", "object": []}`), true},
		{"gone", event(`{"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}`), true},
		{"an endless event", event(`{"type": "` + strings.Repeat("a", maxObject+1)), true},
		{"an unknown event", event(`{"type": "LATER", "object": {}}`), false},
		{"forbidden", func(w http.ResponseWriter, r *http.Request) bool {
			return r.URL.Query().Get("watch") != "" && apitest.Forbid("pods")(w, r)
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			want := putPods(s, 2)
			r := discover(t, s, "role: pod")
			r.finds("at first", want)
			var fired atomic.Int64
			s.Fail(func(w http.ResponseWriter, req *http.Request) bool {
				if tc.fault(w, req) {
					fired.Add(1)
					return true
				}
				return false
			})
			lists := s.Asked("limit=")
			s.Cut()
			comes(t, "the fault", func() string { return fmt.Sprint(fired.Load() > 1) }, func(got string) bool { return got == "true" })
			s.Put("pods", aPod("a", "p2", "10.0.0.2"))
			s.Delete("pods", "a", "p0")
			s.Fail(nil)
			r.finds("afterwards", "10.0.0.1:80 10.0.0.2:80")
			if anew := s.Asked("limit=") > lists; anew != tc.lists && fired.Load() < maxBarren-1 { // the cut ended a watch, too
				t.Errorf("listed anew: %v, want %v", anew, tc.lists)
			}
			r.tells("afterwards", "")
		})
	}
}

// TestForgottenVersion: 410 leads to a list of the newest state.
func TestForgottenVersion(t *testing.T) {
	s := newServer(t)
	putPods(s, 2)
	r := discover(t, s, "role: pod")
	r.finds("at first", "10.0.0.0:80 10.0.0.1:80")
	s.Delete("pods", "a", "p0")
	r.finds("one is gone", "10.0.0.1:80")
	s.Fail(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	s.Cut()
	r.tells("away", "EOF")
	s.Put("pods", aPod("a", "p3", "10.0.0.3"))
	s.Delete("pods", "a", "p1")
	s.Forget()
	s.Fail(nil)
	r.finds("after the gap", "10.0.0.3:80")
	r.tells("after the gap", "")
}
