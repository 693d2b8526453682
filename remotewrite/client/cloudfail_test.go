package client

import (
	"html"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/config"
)

const roleEntry = "sigv4: {region: eu-central-1, access_key: AKIA, secret_key: CANARY-key, role_arn: arn:r}"

// Keys of a role end after a quarter of an hour: over ten hours no request is refused for it.
func TestCloudRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, stop := newSky(t, roleEntry, "", nil)
		defer stop()
		s.set(func() { s.life = 15 * time.Minute })
		defer run(t, c)()
		for end := time.Now().Add(10 * time.Hour); time.Now().Before(end); time.Sleep(20 * time.Second) {
			if a := c.EmptyWrite(t.Context()); a.Status != 200 {
				t.Fatalf("%+v", a)
			}
		}
		if n := s.given(); n < 45 || n > 55 { // each when a fifth of its life is left
			t.Errorf("%d keys in ten hours", n)
		}
	})
}

// A token or key that was accepted before and is refused now is replaced once, and the request succeeds: tokens at 401, keys at 403.
// Identical new keys are not tried again.
func TestCloudExchange(t *testing.T) {
	for entry, names := range map[string][2]string{
		roleEntry: {"ASIA1", "ASIA2"},
		"azuread: {oauth: {client_id: " + azureTestID + ", tenant_id: t, client_secret: CANARY-app}}": {"CANARY-token-2", "CANARY-token-4"},
		"sigv4: {region: eu-central-1, access_key: AKIA, secret_key: CANARY-key}":                     {"AKIA", "AKIA"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, c, stop := newSky(t, entry, "", nil)
			defer stop()
			if a := c.EmptyWrite(t.Context()); a.Status != 200 {
				t.Fatalf("%+v", a)
			}
			same := names[0] == names[1]
			s.set(func() { s.valid = map[string]bool{names[1]: !same} })
			a := c.EmptyWrite(t.Context())
			if want := names[0] + " " + names[0] + " " + names[1]; !same && (a.Status != 200 || strings.Join(s.visits(), " ") != want) {
				t.Errorf("%+v, the receiver saw %q", a, s.visits())
			}
			if same && (a.Status != 403 || len(s.visits()) != 2) {
				t.Errorf("%+v, the receiver saw %q", a, s.visits())
			}
			s.set(func() { s.valid = map[string]bool{} })
			before := len(s.visits())
			for range 100 {
				if a := c.EmptyWrite(t.Context()); Judge(a, config.Policy{}).Verdict != Hold || a.Failure.Kind != Forbidden && a.Failure.Kind != Credentials || strings.Contains(a.Text, "CANARY") {
					t.Fatalf("%+v", a)
				}
				time.Sleep(time.Second)
			}
			if n := len(s.visits()) - before; n < 100 || n > 101 || s.given() > 20 {
				t.Errorf("%d requests, %d times asked", n, s.given())
			}
		})
	}
}

// A failure of a cloud's endpoint is reported with address and reason, holds the target or has it retry, and
// shows nothing of what they were sent.
func TestCloudFailures(t *testing.T) {
	dir, _, _ := cloudFiles(t)
	say := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "SENT", html.EscapeString(r.Form.Encode()+r.Header.Get("Authorization")+r.Header.Get("X-Amz-Security-Token")+r.Form.Get("assertion"))))
		}
	}
	const web = "sigv4: {region: eu-central-1}"
	webEnv := map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "DIR/web", "AWS_ROLE_ARN": "arn:web"}
	const secret = "azuread: {oauth: {client_id: " + azureTestID + ", tenant_id: t, client_secret: CANARY-app}}"
	const google = "google_iam: {credentials_file: google.json}"
	for name, tc := range map[string]struct {
		entry  string
		env    map[string]string
		answer http.HandlerFunc
		says   string
		want   Verdict
		is     Kind
		within time.Duration
	}{
		"no right":       {roleEntry, nil, say(403, `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not SENT</Message></Error></ErrorResponse>`), "get AWS keys from http://localhost/: 403 Forbidden: AccessDenied: not", Hold, Token, 0},
		"clock":          {roleEntry, nil, say(403, `<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>Signature expired: 1 is now earlier than 2</Message></Error></ErrorResponse>`), "Signature expired", Hold, ClockSkew, 0},
		"web":            {web, webEnv, say(400, `<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>SENT</Message></Error></ErrorResponse>`), "400 Bad Request: InvalidIdentityToken", Hold, Token, 0},
		"no keys":        {web, webEnv, say(200, `<x/>`), "AssumeRoleWithWebIdentityResult node not found", Hold, Token, 0},
		"half of keys":   {web, webEnv, say(200, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>A</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`), "the answer has no keys", Hold, Token, 0},
		"no XML":         {web, webEnv, say(200, `SENT`), "the answer gives no access", Hold, Token, 0},
		"keys of lines":  {web, webEnv, say(200, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>CANARY-s</SecretAccessKey><SessionToken>CANARY&#10;b</SessionToken><Expiration>2000-01-01T01:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`), "cannot be sent", Hold, Token, 0},
		"busy":           {web, webEnv, say(503, `SENT`), "503 Service Unavailable", Retry, Token, 0},
		"redirect":       {web, webEnv, http.RedirectHandler("http://other.example/", http.StatusTemporaryRedirect).ServeHTTP, "307 Temporary Redirect", Hold, Token, 0},
		"endless":        {web, webEnv, func(w http.ResponseWriter, r *http.Request) { drip(w, r, strings.Repeat("a", 1<<16)) }, "more than 262144 bytes", Retry, Token, time.Second},
		"hangs":          {web, webEnv, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "get AWS keys from http://localhost/: no answer within 10s", Retry, Token, 10 * time.Second},
		"no role":        {web, nil, say(404, ""), "169.254.169.254/latest/meta-data/iam/security-credentials/: 404", Hold, Token, 0},
		"wrong secret":   {secret, nil, say(401, `{"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret SENT"}`), "get Azure token from https://localhost/t/oauth2/v2.0/token: 401 Unauthorized: invalid_client: AADSTS7000215", Hold, Token, 0},
		"no token":       {secret, nil, say(200, `{}`), "the answer gives no access", Hold, Token, 0},
		"two lines":      {secret, nil, say(200, `{"access_token": "a\nb", "token_type": "Bearer", "expires_in": 3600}`), "cannot be sent", Hold, Token, 0},
		"error as ok":    {secret, nil, say(200, `{"error": "x"}`), "the answer gives no access", Hold, Token, 0},
		"no identity":    {"azuread: {managed_identity: {}, scope: https://three.example/.default}", nil, say(400, `{"error": "invalid_request", "error_description": "Identity not found"}`), "invalid_request: Identity not found", Hold, Token, 0},
		"google refuses": {google, nil, say(400, `{"error": "invalid_grant", "error_description": "Invalid JWT Signature. SENT"}`), "get Google token from http://localhost/google/token: 400 Bad Request: invalid_grant: Invalid JWT Signature", Hold, Token, 0},
		"google's time":  {google, nil, say(400, `{"error": "invalid_grant", "error_description": "Invalid JWT: Token must be a short-lived token and in a reasonable timeframe."}`), "reasonable timeframe", Hold, ClockSkew, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c, stop := newSky(t, tc.entry, dir, tc.env)
				defer stop()
				s.set(func() { s.fail = tc.answer })
				begin := time.Now()
				a := c.EmptyWrite(t.Context())
				if took := time.Since(begin); took > tc.within {
					t.Errorf("took %s", took)
				}
				if a.Err == nil || !strings.Contains(a.Err.Error(), tc.says) || strings.Contains(a.Err.Error(), "CANARY") || a.Failure.Kind != tc.is || a.Failure.Remedy == "" {
					t.Errorf("%+v: %v, want %q", a.Failure, a.Err, tc.says)
				}
				if sent := s.calls()[0].form.Get("assertion"); sent != "" && strings.Contains(a.Err.Error(), sent[:40]) {
					t.Errorf("the assertion shows: %v", a.Err)
				}
				for _, p := range []config.Policy{{}, {OnRefusal: config.RefusalDrop}} {
					if v := Judge(a, p).Verdict; v != tc.want {
						t.Errorf("%s, want %s", v, tc.want)
					}
				}
				if len(s.visits()) > 0 {
					t.Error("the receiver was asked")
				}
			})
		})
	}
}

// Where requests are signed, a wrong clock is the reported reason, with its error; no sample is lost.
func TestCloudClockSkew(t *testing.T) {
	for skew, says := range map[time.Duration]string{
		12 * time.Minute: "(this host's clock is 12 min behind the receiver's)", -2 * time.Hour: "(this host's clock is 2 h ahead of the receiver's)", 4 * time.Minute: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			s, c, stop := newSky(t, roleEntry, "", nil)
			defer stop()
			s.set(func() { s.skew = skew })
			a := c.EmptyWrite(t.Context())
			if says == "" {
				if a.Status != 200 {
					t.Errorf("%+v", a)
				}
				return
			}
			if a.Status != 403 || a.Failure.Kind.String() != "clock_skew" || !strings.Contains(a.Text, says) || strings.Contains(a.String(), "CANARY") || strings.Contains(a.Failure.Remedy, "aps:") {
				t.Errorf("%s: %+v", skew, a)
			}
			if strings.Contains(a.String(), "Signature=") && !strings.Contains(a.String(), "Signature=<secret>") {
				t.Errorf("the signature shows: %s", a)
			}
			if Judge(a, config.Policy{}).Verdict != Hold {
				t.Error("the target is not held")
			}
		})
	}
}

// Credential files are read again when they change, and a waiting target is woken.
func TestCloudRotation(t *testing.T) {
	for _, tc := range []struct {
		entry, file, former, next string
		env                       map[string]string
	}{
		{"sigv4: {region: eu-central-1}", "web", "CANARY-old", "CANARY-new", map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "DIR/web", "AWS_ROLE_ARN": "arn:web"}},
		{"azuread: {workload_identity: {client_id: " + azureTestID + ", tenant_id: " + azureTestID + "}}", "token", "CANARY-old", "CANARY-new", map[string]string{"AZURE_FEDERATED_TOKEN_FILE": "DIR/token"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := testnet.WriteFiles(t, map[string]string{tc.file: tc.former})
			s, c, stop := newSky(t, tc.entry, dir, tc.env)
			defer stop()
			refuse := func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusUnauthorized)
			}
			s.set(func() { s.fail = refuse })
			if a := c.EmptyWrite(t.Context()); !a.Blocked || notified(c) {
				t.Fatalf("%+v", a)
			}
			testnet.WriteFile(t, filepath.Join(dir, tc.file), tc.next)
			if a := c.EmptyWrite(t.Context()); !a.Blocked || !notified(c) {
				t.Fatalf("%+v", a)
			}
			s.set(func() { s.fail = nil })
			if a := c.EmptyWrite(t.Context()); a.Status != 200 {
				t.Errorf("%+v", a)
			}
			f := s.calls()[len(s.calls())-1].form
			if got := f.Get("WebIdentityToken") + f.Get("client_assertion"); got != tc.next {
				t.Errorf("asked with %q", got)
			}
		})
	}
}

// A file or a variable that cannot be used is reported by name before anything is sent.
func TestCloudFaults(t *testing.T) {
	dir, _, _ := cloudFiles(t)
	testnet.WriteFile(t, filepath.Join(dir, "other.json"), `{"type": "external_account", "private_key": "CANARY"}`)
	testnet.WriteFile(t, filepath.Join(dir, "bad.json"), `{"type": "service_account", "private_key": "CANARY", "client_email": "x"}`)
	testnet.WriteFile(t, filepath.Join(dir, "evil.json"), `{"type": "authorized_user", "token_uri": "http://CANARY.example/"}`)
	testnet.WriteFile(t, filepath.Join(dir, "text"), "CANARY")
	files := map[string]string{"AWS_REGION": "eu-central-1", "AWS_CONFIG_FILE": "DIR/config", "AWS_SHARED_CREDENTIALS_FILE": "DIR/credentials"}
	with := func(name, value string) map[string]string {
		return map[string]string{"AWS_REGION": "eu-central-1", name: value}
	}
	app := "client_id: " + azureTestID + ", tenant_id: " + azureTestID
	for _, tc := range []struct {
		entry, says string
		env         map[string]string
	}{
		{"sigv4: {access_key: a, secret_key: CANARY}", "no region: write region, or give AWS_REGION", nil},
		{"sigv4: {profile: nobody}", "failed to get shared config profile, nobody", files},
		{"sigv4: {profile: circle}", "failed to load assume role a, of profile circle", files},
		{"sigv4: {profile: sso}", "failed to find SSO session section, x", files},
		{"sigv4: {}", "AWS_EC2_METADATA_DISABLED", with("AWS_EC2_METADATA_DISABLED", "true")},
		{"sigv4: {}", "role ARN is not set", with("AWS_WEB_IDENTITY_TOKEN_FILE", "DIR/web")},
		{"sigv4: {}", "invalid endpoint host", with("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/")},
		{"azuread: {oauth: {" + app + ", client_secret: CANARY}}", "missing protocol scheme", map[string]string{"AZURE_AUTHORITY_HOST": "://x"}},
		{"azuread: {workload_identity: {" + app + ", token_file_path: missing}}", "missing: no such file", nil},
		{"azuread: {certificate: {" + app + ", certificate_path: text}}", "use the certificate and the key of " + dir, nil},
		{"azuread: {certificate: {" + app + ", certificate_path: app.crt}}", "found no private key", nil},
		{"google_iam: {credentials_file: missing}", "missing: no such file", nil},
		{"google_iam: {credentials_file: text}", "text is not JSON", nil},
		{"google_iam: {credentials_file: other.json}", "google_iam: " + dir + "/other.json: ", nil},
		{"google_iam: {credentials_file: bad.json}", "private key should be a PEM", nil},
	} {
		t.Run(tc.entry, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c, stop := newSky(t, tc.entry, dir, tc.env)
				defer stop()
				a := c.EmptyWrite(t.Context())
				if a.Err == nil || !strings.Contains(a.Err.Error(), tc.says) || strings.Contains(a.Err.Error(), "CANARY") || s.given() > 0 {
					t.Errorf("%s: %v, want %q", tc.entry, a.Err, tc.says)
				}
				if Judge(a, config.Policy{OnRefusal: config.RefusalDrop}).Verdict != Retry {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}
