package redfish

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/probes"
)

// TestRounds: one login for all rounds; what seldom changes is asked for once, and again with its ETag after the interval or
// once the health of the whole changes; the session ends with the probe.
func TestRounds(t *testing.T) {
	m := newMock(t, "localstorage.json")
	at := &clock{now: time.Now()}
	p := newProbe(t, m.config())
	round := func(want ...string) int {
		t.Helper()
		if p.service != nil {
			p.service.now = at.Now
			p.service.login.now = at.Now
		}
		lines, err := collect(t, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if with(lines, strings.Split(w, "|")...) != 1 {
				t.Errorf("%q is %d times there:\n%s", w, with(lines, strings.Split(w, "|")...), strings.Join(lines, "\n"))
			}
		}
		n := 0
		for _, g := range m.gets {
			n += g
		}
		clear(m.gets)
		return n
	}
	disk := `hw_status hw_id="wwn:32adf365c6c1b7bd"|hw_state="ok"| 1`
	first := round(disk, "hwsagent_device_up 1")
	second := round(disk)
	if second*2 > first || m.made != 1 || m.notAgain > 0 {
		t.Errorf("%d requests, then %d, with %d sessions and %d answers 304", first, second, m.made, m.notAgain)
	}
	at.move(6 * time.Minute)
	if third := round(disk); third < first-3 || m.notAgain < (first-second)/2 {
		t.Errorf("%d requests after the interval, %d answers 304; %d at first", third, m.notAgain, first)
	}
	const drive = "/redfish/v1/Chassis/1U/Drives/32ADF365C6C1B7BD"
	m.edit(drive, map[string]any{"FailurePredicted": true})
	round(disk)
	m.edit("/redfish/v1/Systems/437XR1138R2", map[string]any{"Status": map[string]any{"State": "Enabled", "Health": "OK", "HealthRollup": "Warning"}})
	round(`hw_status hw_id="wwn:32adf365c6c1b7bd"|hw_state="predicted_failure"| 1`)
	if err := p.Close(); err != nil || len(m.sessions) != 0 || m.made != 1 {
		t.Errorf("%d sessions are left of %d: %v", len(m.sessions), m.made, err)
	}
}

// TestCoolingUnit reads a cooling distribution unit over TLS: the speed of its pumps, hours of service, levels, leaks.
func TestCoolingUnit(t *testing.T) {
	m := newMock(t, "coolingunit.json")
	lines, err := collect(t, newProbe(t, m.config()))
	if err != nil {
		t.Fatal(err)
	}
	const unit = `hw_id="ThermalEquipment/CDUs/A`
	for _, want := range []string{
		`hw_cooling_device_speed_rpm|` + unit + `/Pumps/1"| 1800`, `hw_cooling_device_speed_rpm|` + unit + `/Pumps/2"| 2450`,
		`hw_cooling_device_speed_rpm|hw_id="Chassis/CDU/Sensors/Booster"| 900`,
		`hw_cooling_device_level_ratio|` + unit + `/Pumps/1"| 0.385`, `hw_service_time_seconds|` + unit + `/Pumps/1"| 1.28556e+07`,
		`hw_service_time_limit_seconds|` + unit + `/Filters/1"|hw_limit_type="max"| 3.6e+07`,
		`hw_status|` + unit + `/Reservoirs/1"|hw_state="degraded"| 1`, `hw_status|hw_id="ThermalEquipment/CoolingLoops/Building"|hw_state="failed"| 1`,
		`hw_status|hw_type="leak_detector"|hw_name="Rope"|hw_state="failed"| 1`, `hw_status|` + unit + `/FilterRedundancy/0"|hw_state="degraded"| 1`,
	} {
		if n := with(lines, strings.Split(want, "|")...); n != 1 {
			t.Errorf("%q is %d times there:\n%s", want, n, strings.Join(lines, "\n"))
		}
	}
	if n := with(lines, "hw_service_time_limit_seconds"); n != 1 {
		t.Errorf("there are %d limits of service; that of 0 hours is none", n)
	}
}

// TestExpand: the result is the same with and without expansion, and where a service only says that it can.
func TestExpand(t *testing.T) {
	var want []string
	for _, c := range []struct {
		name          string
		offers, works bool
		most          int
	}{{"none", false, false, 1000}, {"all", true, true, 50}, {"lies", true, false, 1000}} {
		t.Run(c.name, func(t *testing.T) {
			m := newMock(t, "rackmount1.json")
			m.expands = c.works
			if !c.offers {
				m.edit(rootPath, map[string]any{"ProtocolFeaturesSupported": nil})
			}
			lines, err := collect(t, newProbe(t, m.config()))
			if err != nil {
				t.Fatal(err)
			}
			requests := 0
			for _, n := range m.gets {
				requests += n
			}
			if requests > c.most {
				t.Errorf("%d requests", requests)
			}
			kept := map[string]bool{}
			for _, l := range lines {
				if strings.HasPrefix(l, "hw_") {
					kept[l] = true
				}
			}
			if want == nil {
				for l := range kept {
					want = append(want, l)
				}
			}
			if len(kept) != len(want) || len(want) < 300 {
				t.Errorf("%d samples, %d without expansion", len(kept), len(want))
			}
			for _, l := range want {
				if !kept[l] {
					t.Errorf("%s is missing", l)
				}
			}
		})
	}
}

// chassis is a service of one chassis with a few sensors, to be broken by a test.
const chassisPath = "/redfish/v1/Chassis/1U"

// answer writes a body with a status.
func answerWith(path string, status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if strings.TrimRight(r.URL.Path, "/") != path {
			return false
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return true
	}
}

// TestTrouble tries what services do wrong. Each costs what it is about, and no more.
func TestTrouble(t *testing.T) {
	const sensors, one = chassisPath + "/Sensors", chassisPath + "/Sensors/AmbientTemp"
	const other = `hw_temperature_celsius hw_id="Chassis/1U/Sensors/IntakeTemp"`
	endless := func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != sensors {
			return false
		}
		fmt.Fprintf(w, `{"Members":[{"@odata.id":"%s/IntakeTemp"}],"Members@odata.nextLink":"%s?$skip=%s1"}`, sensors, sensors, strings.TrimPrefix(r.URL.RawQuery, "$skip="))
		return true
	}
	for _, c := range []struct {
		name   string
		before func(http.ResponseWriter, *http.Request) bool
		edit   func(*mock)
		err    string // "" for none
		there  string // a series that is there
		gone   string // one that is not
		most   int    // requests
	}{
		{name: "404", before: answerWith(one, 404, ""), there: other, gone: "Sensors/AmbientTemp"},
		{name: "500", before: answerWith(one, 500, ""), err: "AmbientTemp: status 500", there: other, gone: "Sensors/AmbientTemp"},
		{name: "403", before: answerWith(one, 403, `{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.8.InsufficientPrivilege","Message":"No."}]}}`), err: "may not read it", there: other},
		{name: "401 for one", before: answerWith(one, 401, ""), err: "AmbientTemp: status 401", there: other, gone: "Sensors/AmbientTemp"},
		{name: "truncated", before: answerWith(one, 200, `{"Reading": 2`), err: "read the JSON", there: other, gone: "Sensors/AmbientTemp"},
		{name: "a list", before: answerWith(one, 200, `[]`), err: "not an object", there: other},
		{name: "huge", before: answerWith(one, 200, `{"Id":"`+strings.Repeat("x", maxBody)+`"}`), err: "larger than", there: other, gone: "Sensors/AmbientTemp"},
		{name: "deep", before: answerWith(one, 200, strings.Repeat(`{"a":`, 20000)+"1"+strings.Repeat("}", 20000)), err: "read the JSON", there: other},
		{name: "redirect", before: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == one {
				http.Redirect(w, r, "https://192.0.2.1/redfish/v1/x", http.StatusFound)
			}
			return r.URL.Path == one
		}, err: "not followed", there: other},
		{name: "endless pages", before: endless, err: "more than 64 pages", there: other, most: 250},
		{name: "cycle", edit: func(m *mock) {
			m.edit(chassisPath, map[string]any{"NetworkAdapters": map[string]any{"@odata.id": "/redfish/v1/Chassis"}, "Drives": map[string]any{"@odata.id": chassisPath + "/"}})
		}, there: other, most: 250},
		{name: "foreign links", edit: func(m *mock) {
			m.edit(chassisPath, map[string]any{"NetworkAdapters": map[string]any{"@odata.id": "https://192.0.2.1/redfish/v1/x"}, "Drives": map[string]any{"@odata.id": "//192.0.2.1/redfish/v1"},
				"LeakDetectors": map[string]any{"@odata.id": "/redfish/v1/../../etc/passwd"}})
		}, there: other},
		{name: "null everywhere", edit: func(m *mock) {
			m.edit(chassisPath, map[string]any{"ThermalSubsystem": nil, "PowerSubsystem": nil, "Links": nil, "Status": nil, "EnvironmentMetrics": "x", "Name": 7.0})
		}, there: other},
		{name: "numbers as strings", edit: func(m *mock) { m.edit(one, map[string]any{"Reading": " 22.5"}) }, there: `Sensors/AmbientTemp" hw_name="Ambient Temperature" hw_parent="Chassis/1U" 22.5`},
		{name: "no reading", edit: func(m *mock) { m.edit(one, map[string]any{"Reading": nil}) }, there: `hw_status hw_id="Chassis/1U/Sensors/AmbientTemp"`, gone: `hw_temperature_celsius hw_id="Chassis/1U/Sensors/AmbientTemp"`},
		{name: "absent", edit: func(m *mock) { m.edit(one, map[string]any{"Status": map[string]any{"State": "Absent"}}) }, there: other, gone: "Sensors/AmbientTemp"},
		{name: "nothing of it", edit: func(m *mock) { m.set(rootPath, map[string]any{"Name": "x"}) }, err: "leads to no chassis"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMock(t, "rackmount1.json")
			m.before = c.before
			if c.edit != nil {
				c.edit(m)
			}
			p := newProbe(t, m.config())
			lines, err := collect(t, p)
			switch {
			case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%v, want %q", err, c.err)
			case c.there != "" && with(lines, c.there) == 0, c.gone != "" && with(lines, c.gone) > 0:
				t.Errorf("%q should be there, %q not:\n%s", c.there, c.gone, strings.Join(lines, "\n"))
			case err != nil && c.there != "" && !errors.Is(err, probes.ErrPartial):
				t.Errorf("%v is no partial failure", err)
			}
			n := 0
			for _, g := range m.gets {
				n += g
			}
			if c.most > 0 && n > c.most {
				t.Errorf("%d requests", n)
			}
			if _, err := collect(t, p); err != nil && c.err == "" || m.made > 3 || len(m.sessions) > 1 {
				t.Errorf("the second round: %v, with %d sessions of %d", err, len(m.sessions), m.made)
			}
		})
	}
}

// TestSessions: a session that ends is replaced amid the round; without a place for one, or without
// sessions, basic authentication takes over.
func TestSessions(t *testing.T) {
	t.Run("ends amid a round", func(t *testing.T) {
		m := newMock(t, "rackmount1.json")
		n := 0
		m.before = func(_ http.ResponseWriter, r *http.Request) bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			if n++; n == 30 {
				clear(m.sessions)
			}
			return false
		}
		lines, err := collect(t, newProbe(t, m.config()))
		if err != nil || m.made != 2 || with(lines, "hw_temperature_celsius") < 5 || n < 30 {
			t.Errorf("%d sessions: %v", m.made, err)
		}
	})
	t.Run("dies at once, always", func(t *testing.T) {
		m := newMock(t, "rackmount1.json")
		m.before = func(_ http.ResponseWriter, r *http.Request) bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			clear(m.sessions)
			return false
		}
		_, err := collect(t, newProbe(t, m.config()))
		if err == nil || m.made > 2 || m.refused > 0 {
			t.Errorf("%d sessions: %v", m.made, err)
		}
	})
	for name, places := range map[string]int{"none left": 1, "not offered": 0} {
		t.Run(name, func(t *testing.T) {
			m := newMock(t, "rackmount1.json")
			m.places, m.sessions["/redfish/v1/SessionService/Sessions/x"] = places, "somebody's"
			c := m.config()
			if _, err := collect(t, newProbe(t, c)); err != nil || m.basic == 0 || m.refused > 0 {
				t.Errorf("%d requests with basic authentication: %v", m.basic, err)
			}
			c.Auth = AuthSession
			if _, err := collect(t, newProbe(t, c)); err == nil || !strings.Contains(err.Error(), "auth: basic") {
				t.Errorf("with auth: session: %v", err)
			}
		})
	}
	t.Run("basic", func(t *testing.T) {
		m := newMock(t, "rackmount1.json")
		c := m.config()
		c.Auth = AuthBasic
		if _, err := collect(t, newProbe(t, c)); err != nil || m.made != 0 {
			t.Errorf("%d sessions: %v", m.made, err)
		}
	})
}

// TestNoLockout: wrong credentials are sent once, and again after ten minutes, or once the password changes; in no error is a
// password.
func TestNoLockout(t *testing.T) {
	for _, auth := range []string{AuthAuto, AuthBasic} {
		t.Run(auth, func(t *testing.T) {
			m := newMock(t, "rackmount1.json")
			c, at := m.config(), &clock{now: time.Now()}
			file := filepath.Join(t.TempDir(), "password")
			write := func(text string) {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("geheim-4711")
			c.Password, c.PasswordFile, c.Auth = "", file, auth
			p := newProbe(t, c)
			round := func(tries int) {
				t.Helper()
				if p.service != nil {
					p.service.now, p.service.login.now = at.Now, at.Now
				}
				p.contact.Ask()
				lines, err := collect(t, p)
				if err == nil || strings.Contains(err.Error(), "geheim-4711") || !strings.Contains(err.Error(), "password is wrong") || m.refused != tries || with(lines, "hwsagent_device_down", `reason="login"`) != 1 {
					t.Fatalf("%d tries, want %d: %v\n%s", m.refused, tries, err, strings.Join(lines, "\n"))
				}
			}
			round(1)
			for range 5 {
				at.move(time.Minute)
				round(1)
			}
			at.move(6 * time.Minute)
			round(2)
			at.move(11 * time.Minute)
			round(2)
			at.move(10 * time.Minute)
			round(3)
			write(password)
			p.contact.Ask()
			if _, err := collect(t, p); err != nil || m.refused != 3 {
				t.Errorf("with the right password: %v, %d refused", err, m.refused)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"locked", 401, `{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.0.AccountLocked","Message":"The account is locked."}]}}`, "wait until the service unlocks it"},
		{"must change", 403, `{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.11.PasswordChangeRequired","Message":"Change it."}]}}`, "log in by hand once"},
		{"forbidden", 403, "", "the privilege Login"},
		{"ilo 4", 400, `{"Messages":[{"MessageID":"Base.0.10.UnauthorizedLoginAttempt"}]}`, "password is wrong"},
		{"plain", 401, "", "password is wrong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMock(t, "rackmount1.json")
			m.before = answerWith(sessionsPath, c.status, c.body)
			if _, err := collect(t, newProbe(t, m.config())); err == nil || !strings.Contains(err.Error(), c.want) || m.basic > 0 {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	m := newMock(t, "rackmount1.json")
	m.set(rootPath, nil)
	if _, err := collect(t, newProbe(t, m.config())); err == nil || !strings.Contains(err.Error(), "not a Redfish service") {
		t.Error(err)
	}
}
