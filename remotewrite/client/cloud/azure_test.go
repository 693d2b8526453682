package cloud

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// arc is the agent of Azure Arc: it wants the contents of a file that it names.
type arc struct {
	realm string
	asked []string // Authorization of each request
}

func (a *arc) Do(req *http.Request, near bool) (Response, error) {
	a.asked = append(a.asked, req.Header.Get("Authorization"))
	if req.Header.Get("Authorization") == "Basic the key" && near && req.Header.Get("Metadata") == "true" && req.URL.RawQuery == "api-version=2019-11-01&resource=https%3A%2F%2Fmonitor.azure.com%2F" {
		return Response{Status: 200, Body: []byte(`{"access_token": "t", "expires_in": 3600}`)}, nil
	}
	return Response{Status: 401, Header: http.Header{"Www-Authenticate": {"Basic realm=" + a.realm}}}, nil
}

// A server that Azure Arc manages shows that it may read the file that a challenge names; no other file is read.
func TestAzureArc(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good, long := write("good.key", "the key\n"), write("long.key", strings.Repeat("x", maxArcKey+1))
	link := filepath.Join(dir, "link.key")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ realm, says string }{
		{good, ""},
		{filepath.Join(dir, "none.key"), "no such file"},
		{write("other.txt", "x"), "names no file in"},
		{filepath.Join(dir, "..", "x.key"), "names no file in"},
		{"/etc/shadow", "names no file in"},
		{"", "names no file in"},
		{long, "is not a key of Azure Arc"},
		{link, "is not a key of Azure Arc"},
	} {
		env := map[string]string{"IDENTITY_ENDPOINT": "http://localhost:40342/metadata/identity/oauth2/token", "IMDS_ENDPOINT": "http://localhost:40342"}
		m := newManaged("an-id", "https://monitor.azure.com//.default", Environment{Get: func(name string) string { return env[name] }})
		if m.arc != arcKeys {
			t.Fatalf("%+v", m)
		}
		m.arc = dir
		network := &arc{realm: tc.realm}
		a, err := m.Get(t.Context(), network)
		switch {
		case tc.says == "" && (err != nil || a.Authorization != "Bearer t" || len(network.asked) != 2):
			t.Errorf("%v, %+v", err, a)
		case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says) || len(network.asked) != 1):
			t.Errorf("%s: %v, want %q; asked %q", tc.realm, err, tc.says, network.asked)
		}
	}
}
