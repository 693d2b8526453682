package redfish

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzReferences: a reference that is followed leads below /redfish or /rest of the same service, and its path is that of each
// spelling of it.
func FuzzReferences(f *testing.F) {
	for _, ref := range []string{"/redfish/v1/Chassis/1/", "/redfish/v1/Systems/1#/Status", "/rest/v1", "//elsewhere/redfish/v1", "https://u:p@elsewhere/redfish", "/redfish/v1/../../etc/passwd", "/redfish/v1/a%2Fb?$skip=2", "/redfishes"} {
		f.Add(ref)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		path, ok := resourcePath(ref)
		if !ok {
			return
		}
		bare, _, _ := strings.Cut(path, "?")
		if bare != "/redfish" && !strings.HasPrefix(bare, "/redfish/") && !strings.HasPrefix(bare, "/rest/") || strings.Contains(bare, "/../") || strings.HasSuffix(bare, "/") || len(ref) > 2*maxPath && len(bare) > 3*maxPath {
			t.Errorf("%q leads to %q", ref, path)
		}
		if again, ok := resourcePath(path); !ok || again != path {
			t.Errorf("%q leads to %q, and that to %q, %t", ref, path, again, ok)
		}
		if key, ok := sensorKey(ref); !ok || !strings.HasPrefix(key, path) {
			t.Errorf("%q is the sensor %q, %t, at %q", ref, key, ok, path)
		}
	})
}

// FuzzTarget: a target that is taken has a scheme and a host, and no user.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"192.0.2.9", "bmc:8443", "2001:db8::1", "[2001:db8::1]:443", "https://h/redfish/v1", "http://u:p@h", "h/x?y#z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := parseTarget(s)
		if err != nil {
			return
		}
		if u.Host == "" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.Scheme != "https" && u.Scheme != "http" {
			t.Errorf("%q is %+v", s, u)
		}
	})
}

// FuzzRefusal: the words of a refusal are a label that can be sent and shown, whatever the body is.
func FuzzRefusal(f *testing.F) {
	f.Add([]byte(`{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.0.AccessDenied","Message":"no"}]}}`))
	f.Add([]byte(`{"error":{"code":"x"}}`))
	f.Add([]byte(`{"error":{"@Message.ExtendedInfo":[{"MessageId":"a"},{"Message":"b"}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if s := said(body); !utf8.ValidString(s) || len(s) > 4096 {
			t.Errorf("%q", s)
		}
		if err := refusal("user", &reply{status: 401, body: body}); err == nil {
			t.Error("a refusal is no error")
		}
	})
}
