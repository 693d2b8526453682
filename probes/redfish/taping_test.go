package redfish

import (
	"slices"
	"strings"
	"testing"

	"hwsagent/probes/tape"
	"hwsagent/probes/tape/tapetest"
)

// A recording read elsewhere gives the same series; redacted, the same but for the names of things, and never with the login.
func TestReplay(t *testing.T) {
	for file, private := range map[string][]string{
		"rackmount1.json": {"437XR1138R2", "SNDHM0123456789", "3488247"}, "localstorage.json": nil, "idrac.json": nil, "ilo.json": nil,
	} {
		m := newMock(t, file, nil)
		want := tapetest.Collect(t, inProcessProbe(t, m, Config{}))
		for _, keep := range [][]string{tape.Kinds(), nil} {
			taped, p := tape.New("redfish"), inProcessProbe(t, m, Config{})
			if err := p.recordThrough(t.Context(), taped, inProcess{m}); err != nil {
				t.Logf("%s: %v", file, err)
			}
			read, text := tapetest.File(t, taped, p, keep...)
			again, err := Replay(read)
			if err != nil {
				t.Fatal(err)
			}
			bare := keep == nil
			got, want := tapetest.Lines(tapetest.Collect(t, again), bare, "hwsagent_"), tapetest.Lines(want, bare, "hwsagent_")
			if !slices.Equal(got, want) {
				t.Errorf("%s, kept %q: %d series, want %d", file, keep, len(got), len(want))
				for _, l := range got {
					if !slices.Contains(want, l) {
						t.Log("more: " + l)
					}
				}
				for _, l := range want {
					if !slices.Contains(got, l) {
						t.Log("less: " + l)
					}
				}
			}
			for _, id := range private {
				if strings.Contains(text, id) != (keep != nil) {
					t.Errorf("%s, kept %q: whether %q is in the recording is %v", file, keep, id, keep == nil)
				}
			}
			for _, secret := range []string{password, user, "X-Auth-Token"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s: %q is in the recording", file, secret)
				}
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestRedactPlaces: where a machine stands and whom to call are not in a recording.
func TestRedactPlaces(t *testing.T) {
	taped := tape.New("redfish")
	taped.Add("/redfish/v1/Chassis/1", tape.OK, []byte(`{"Location":{"PostalAddress":{"Street":"Main Street"},"Placement":{"Row":"North","Rack":"ACME-R42"},`+
		`"Contacts":[{"ContactName":"Jane Doe","PhoneNumber":"+1 555 0100 200"}],"Latitude":52.5200066,"Longitude":13.4049540},"WWPN":"100000620B1A2B3C"}`))
	r, err := tape.NewRedactor(nil)
	if err != nil {
		t.Fatal(err)
	}
	(&Probe{}).Redact(taped, r)
	r.Tape(taped)
	for _, secret := range []string{"Main Street", "North", "ACME-R42", "Jane Doe", "+1 555 0100 200", "52.5200066", "13.4049540", "100000620B1A2B3C"} {
		if strings.Contains(string(taped.Exchanges[0].Answer), secret) {
			t.Errorf("%q is in the recording: %s", secret, taped.Exchanges[0].Answer)
		}
	}
}
