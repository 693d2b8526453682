package kubernetes

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"hwsagent/receivers/scrape/kubernetes/apitest"
)

// BenchmarkKept shows what a pod with ten labels and annotations costs, its group of targets included.
func BenchmarkKept(b *testing.B) {
	const n = 10_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		b.StopTimer()
		all := make([]object, 0, n)
		before := heap()
		for i := range n {
			var p pod
			o := aPod("a", fmt.Sprintf("p%d", i), "10.0.0.1")
			for _, kind := range []string{"labels", "annotations"} {
				more := apitest.Object{}
				for k := range 5 {
					more[fmt.Sprintf("example.com/%s-%d", kind, k)] = fmt.Sprintf("value-%d-%d", i, k)
				}
				apitest.Meta(o)[kind] = more
			}
			decode(b, o, &p)
			all = append(all, &p)
		}
		b.StartTimer()
		s := newStore(pods)
		s.replace(pods, "", all)
		build := builder{}
		var groups []any
		for r := range s.stale {
			build.view = newView(s)
			groups = append(groups, build.group(r))
		}
		clear(s.stale)
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/n, "kept-B/pod")
		runtime.KeepAlive(groups)
		runtime.KeepAlive(s)
		b.StartTimer()
	}
}

func decode(b *testing.B, from apitest.Object, to object) {
	b.Helper()
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		b.Fatal(err)
	}
	to.trim()
}
