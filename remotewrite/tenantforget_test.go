package remotewrite

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestStalledDiscoveryForgetsNoTenant: while no target can be made for a new tenant, the discovery sees no sample of the others. That is no
// reason to forget them: their own targets go on.
func TestStalledDiscoveryForgetsNoTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, ", default: anonymous, forget_after: 1h")
		defer f.stop()
		f.commit("a_m")
		time.Sleep(time.Minute)
		f.mu.Lock()
		f.failing = errors.New("disk full")
		f.mu.Unlock()
		for range 70 {
			f.commit("a_m", "b_m")
			time.Sleep(time.Minute)
		}
		if n, _ := f.arrived("a", "a_m"); n != 71 {
			t.Fatalf("a has %d samples of 71 meanwhile", n)
		}
		first := f.logs["a"]
		f.mu.Lock()
		f.failing = nil
		f.mu.Unlock()
		time.Sleep(time.Minute)
		if len(f.let) > 0 {
			n, _ := f.arrived("a", "a_m")
			t.Errorf("forgotten: %v, with a sample each minute; a new target began again and sent %d samples for the second time (new log: %v)", f.let, n, f.logs["a"] != first)
		}
	})
}

// TestForgottenStrangerStaysForgotten: a tenant beyond max_tenants of which nothing comes is forgotten, also where the default target reads its
// old samples again after that: status and memory do not keep it for ever.
func TestForgottenStrangerStaysForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, ", default: anonymous, max_tenants: 1, forget_after: 1h")
		defer f.stop()
		f.refuse["anonymous"] = 503
		f.commit("a_m")
		time.Sleep(time.Second)
		f.commit("c_m") // no room
		time.Sleep(time.Second)
		for range 120 {
			f.commit("a_m")
			time.Sleep(time.Minute)
		}
		f.mu.Lock()
		f.refuse["anonymous"] = 0
		f.mu.Unlock()
		for range 24 * 60 {
			f.commit("a_m")
			time.Sleep(time.Minute)
		}
		if n, _ := f.arrived("anonymous", "c_m"); n != 1 {
			t.Errorf("%d samples of c at the default", n)
		}
		if got := f.tenants.Unrouted(); len(got) > 0 {
			t.Errorf("a day after the default target is back, 26 hours after its only sample, with forget_after 1h, c is still known: %v", got)
		}
	})
}
