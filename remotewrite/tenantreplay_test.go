package remotewrite

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/config"
	"hwsagent/wal"
)

// A replay to a tenant has what is the tenant's; one to the rest what can be nobody's but
// the default's; without a default there is none.
func TestReplayToTenant(t *testing.T) {
	c := mustLoad(t, "url: http://h.example/\nname: m\nhwsagent: {tenant: {label: team, default: d}}")
	for _, tc := range []struct {
		to   *config.Config
		want string
	}{
		{c.ForTenant("a"), "a"},
		{c.ForRest(), "d  x/y"},
	} {
		r, err := NewReplay(ReplayOptions{Config: *tc.to})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, team := range []string{"a", "b", "d", "", "x/y"} {
			if !r.cache.get(&wal.Series{Slot: i, Labels: labels.FromStrings("__name__", "m", "team", team)}).dropped() {
				got = append(got, team)
			}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("a replay to %s has those of %q, want %q", tc.to.TargetName(), s, tc.want)
		}
	}
	c.Target.Tenant.Default = ""
	if _, err := NewReplay(ReplayOptions{Config: *c.ForRest()}); err == nil || !strings.Contains(err.Error(), "m/TENANT") {
		t.Errorf("a replay without a tenant: %v", err)
	}
}
