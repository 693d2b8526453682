package replay

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"go.yaml.in/yaml/v4"

	"hwsagent/remotewrite/config"
	"hwsagent/wal"
)

// A replay to a tenant has the tenant's samples; one to the default target has those that belong to no
// other tenant; without a default tenant there is no such replay.
func TestReplayToTenant(t *testing.T) {
	var c config.Config
	if err := yaml.Load([]byte("url: http://h.example/\nname: m\nhwsagent: {tenant: {label: team, default: d, drop_label: true}}"), &c, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		to   *config.Config
		want string
	}{
		{c.ForTenant("a"), "a"},
		{c.ForRest(), "d  x/y"},
	} {
		s := newSource(&Options{Config: *tc.to})
		var got []string
		for i, team := range []string{"a", "b", "d", "", "x/y"} {
			to := s.series.get(wal.NewSeries(i, labels.FromStrings("__name__", "m", "team", team), nil))
			if to.sent == nil {
				continue
			}
			got = append(got, team)
			if team == tc.to.Tenant() && to.sent.Labels().Has("team") {
				t.Errorf("a replay to %s sends the label that its header has: %s", tc.to.TargetName(), to.sent.Labels())
			}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("a replay to %s has those of %q, want %q", tc.to.TargetName(), s, tc.want)
		}
	}
	c.Target.Tenant.Default = ""
	if _, err := Run(t.Context(), Options{Config: *c.ForRest()}); err == nil || !strings.Contains(err.Error(), "m/TENANT") {
		t.Errorf("a replay without a tenant: %v", err)
	}
}
