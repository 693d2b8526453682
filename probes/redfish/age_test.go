package redfish

import (
	"net/http"
	"testing"
	"time"

	"hwsagent/probes"
)

// TestRememberedReadings: the temperature of a drive that was read in an earlier round has the time of that round, and becomes no older than
// maxAge; what the service lacks is not requested in each round.
func TestRememberedReadings(t *testing.T) {
	m := newMock(t, "cases/two-healths.json")
	missing := 0
	m.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == rootPath+"/Systems/1/Storage/A/Volumes" {
			missing++
		}
		return false
	}
	m.mu.Lock()
	storage, _ := m.resources[rootPath+"/Systems/1/Storage/A"].(map[string]any)
	storage["Volumes"] = map[string]any{"@odata.id": rootPath + "/Systems/1/Storage/A/Volumes"}
	drive, _ := m.resources[rootPath+"/Systems/1/Storage/A/Drives/0"].(map[string]any)
	drive["Oem"] = map[string]any{"Hpe": map[string]any{"CurrentTemperatureCelsius": 40.0}}
	smart, _ := m.resources[rootPath+"/Systems/1/SmartStorage"].(map[string]any)
	smart["Status"] = map[string]any{"Health": "OK"}
	m.mu.Unlock()
	p, err := New(m.config(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	read := func() (at int64) {
		t.Helper()
		r := probes.NewRound(0)
		if err := p.Collect(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		at = -1
		for _, s := range r.Samples() {
			if s.Family.Name == "hw_temperature_celsius" {
				at = s.T
			}
		}
		return at
	}
	begin := time.Now()
	if at := read(); at != 0 {
		t.Errorf("the first reading is of %d", at)
	}
	at := read()
	if read := time.UnixMilli(at); read.Before(begin.Add(-time.Second)) || read.After(time.Now()) {
		t.Errorf("the second round's is of %v", read)
	}
	if missing != 1 {
		t.Errorf("what is missing was requested %d times", missing)
	}
	p.service.now = func() time.Time { return time.Now().Add(maxAge) }
	if at := read(); at != 0 {
		t.Errorf("after %s the reading is of %d", maxAge, at)
	}
}
