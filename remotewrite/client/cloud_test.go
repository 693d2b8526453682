package client

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/client/cloud"
	"hwsagent/remotewrite/config"
)

// sky is three clouds in memory: endpoints that give tokens and keys, and a receiver. What it gives is
// numbered.
type sky struct {
	mu    sync.Mutex
	asked []asked
	keys  map[string]cloud.Keys // given so far, and those of the test, by ID
	life  time.Duration         // of what it gives
	fail  http.HandlerFunc      // of the endpoints, if set
	skew  time.Duration         // of the receiver's clock
	valid map[string]bool       // tokens and IDs of keys that the receiver takes; nil: all
	seen  []string              // tokens and IDs of keys at the receiver
}

type asked struct {
	host, path string
	header     http.Header
	query      url.Values
	form       url.Values
	by         string // the ID of the keys that signed
}

func (s *sky) given() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// set changes what the sky does.
func (s *sky) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// visits are those at the receiver, and calls those at the endpoints.
func (s *sky) visits() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *sky) calls() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// signer returns the ID of the keys that have signed a request as they must.
func (s *sky) signer(r *http.Request, body []byte, service string) string {
	was := r.Header.Get("Authorization")
	id := ""
	if _, after, ok := strings.Cut(was, "Credential="); ok {
		id, _, _ = strings.Cut(after, "/")
	}
	k, known := s.keys[id]
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if !known || err != nil {
		return ""
	}
	again := r.Clone(r.Context())
	again.URL.Host = r.Host
	k.Region, k.Service = "eu-central-1", service
	if signedAs(again, was); service == "aps" {
		err = k.Sign(again, sha256.Sum256(body), at)
	} else {
		err = v4.NewSigner().SignHTTP(r.Context(), aws.Credentials{AccessKeyID: k.ID, SecretAccessKey: k.Secret, SessionToken: k.Session},
			again, fmt.Sprintf("%x", sha256.Sum256(body)), service, k.Region, at)
	}
	if err != nil || again.Header.Get("Authorization") != was {
		return ""
	}
	return id
}

// signedAs leaves a request only the headers that a signature covers.
func signedAs(r *http.Request, signature string) {
	_, names, _ := strings.Cut(signature, "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	for name := range r.Header {
		if !slices.Contains(strings.Split(names, ";"), strings.ToLower(name)) {
			r.Header.Del(name)
		}
	}
}

func (s *sky) receiver(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().Add(s.skew)
	w.Header()["Date"] = []string{now.UTC().Format(http.TimeFormat)}
	who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	refusal := http.StatusUnauthorized
	if strings.HasPrefix(who, "AWS4") {
		who, refusal = s.signer(r, body, "aps"), http.StatusForbidden
		if at, _ := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date")); now.Sub(at).Abs() > 5*time.Minute {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"message":"Signature expired: `+r.Header.Get("Authorization")+" "+r.Header.Get("X-Amz-Security-Token")+`"}`)
			return
		}
	}
	s.seen = append(s.seen, who)
	if who == "" || s.valid != nil && !s.valid[who] {
		w.WriteHeader(refusal)
		_, _ = io.WriteString(w, "not you: "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Amz-Security-Token"))
	}
}

func (s *sky) endpoint(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	s.mu.Lock()
	s.asked = append(s.asked, asked{r.Host, r.URL.Path, r.Header, r.URL.Query(), form, s.signer(r, body, "sts")})
	n, fail, life := len(s.asked), s.fail, s.life
	s.mu.Unlock()
	if fail != nil && !strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration") {
		r.Form = form
		fail(w, r)
		return
	}
	k := cloud.Keys{ID: fmt.Sprint("ASIA", n), Secret: fmt.Sprint("CANARY-secret-", n), Session: fmt.Sprint("CANARY-session-", n)}
	end := time.Now().Add(life).UTC().Format(time.RFC3339)
	if !strings.HasPrefix(r.URL.Path, "/latest/") {
		w.Header().Set("Content-Type", "application/json")
	}
	switch {
	case strings.HasPrefix(form.Get("Action"), "AssumeRole"):
		s.add(k)
		_, _ = fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials><AccessKeyId>%[2]s</AccessKeyId><SecretAccessKey>%[3]s</SecretAccessKey><SessionToken>%[4]s</SessionToken><Expiration>%[5]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`,
			form.Get("Action"), k.ID, k.Secret, k.Session, end)
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"))
		_, _ = io.WriteString(w, "CANARY-imds")
	case r.URL.Path == "/latest/meta-data/iam/security-credentials/" && r.Header.Get("X-Aws-Ec2-Metadata-Token") == "CANARY-imds":
		_, _ = io.WriteString(w, "my role")
	case r.URL.Path == "/latest/meta-data/iam/security-credentials/my role" && r.Header.Get("X-Aws-Ec2-Metadata-Token") == "CANARY-imds", r.URL.Path == "/v1/credentials" && r.Header.Get("Authorization") == "CANARY-pod":
		s.add(k)
		_, _ = fmt.Fprintf(w, `{"Code": "Success", "AccessKeyId": %q, "SecretAccessKey": %q, "Token": %q, "Expiration": %q}`, k.ID, k.Secret, k.Session, end)
	case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
		at := "https://localhost/" + strings.Split(r.URL.Path, "/")[1]
		_, _ = fmt.Fprintf(w, `{"issuer": %q, "authorization_endpoint": %q, "token_endpoint": %q}`, at+"/v2.0", at+"/oauth2/v2.0/authorize", at+"/oauth2/v2.0/token")
	case r.URL.Path == "/msi":
		_, _ = fmt.Fprintf(w, `{"access_token": "CANARY-token-%d", "expires_on": "%d"}`, n, time.Now().Add(life).Unix())
	case r.Header.Get("Metadata") == "true", r.Header.Get("Metadata-Flavor") == "Google", strings.HasSuffix(r.URL.Path, "/token"):
		_, _ = fmt.Fprintf(w, `{"access_token": "CANARY-token-%d", "token_type": "Bearer", "expires_in": %d}`, n, int(life.Seconds()))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *sky) add(k cloud.Keys) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[k.ID] = k
}

func pairOf(certificate, key string) (certificatePEM, keyPEM []byte) {
	return []byte(certificate), []byte(key)
}

// newSky makes a client of an entry below a sky, in a bubble.
func newSky(t *testing.T, keys, dir string, env map[string]string) (*sky, *Client, func()) {
	t.Helper()
	s := &sky{life: time.Hour, keys: map[string]cloud.Keys{"AKIA": {ID: "AKIA", Secret: "CANARY-key"}}}
	receiver, stopReceiver := testnet.Serve(t, nil, s.receiver)
	endpoint, stopEndpoint := testnet.Serve(t, nil, s.endpoint)
	certificate, err := tls.X509KeyPair(pairOf(loginAuthority.Issue("localhost")))
	if err != nil {
		t.Fatal(err)
	}
	login, stopLogin := testnet.Serve(t, &tls.Config{Certificates: []tls.Certificate{certificate}}, s.endpoint)
	plain := dialEach(map[string]*testnet.Net{"h.example": receiver, "localhost": endpoint, "169.254.169.254": endpoint, "169.254.170.23": endpoint})
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "localhost:443" {
			return login.Dial(ctx, network, address)
		}
		return plain(ctx, network, address)
	}
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "AWS_CA_BUNDLE": "", "AWS_ENDPOINT_URL_STS": "http://localhost/", "AZURE_AUTHORITY_HOST": "https://localhost"} {
		t.Setenv(name, value)
	}
	for name, value := range env {
		t.Setenv(name, strings.ReplaceAll(value, "DIR", dir))
	}
	c := newClient(t, "{url: http://h.example/ws/api/v1/remote_write, "+keys+"}", dir, Options{Dial: dial})
	return s, c, func() {
		synctest.Wait() // connections for which no request waits
		c.Close()
		stopReceiver()
		stopEndpoint()
		stopLogin()
	}
}

const azureTestID = "00000000-a12b-3cd4-e56f-000000000000"

// cloudFiles are the files that the ways to be let in read, with the key that signs assertions.
func cloudFiles(t *testing.T) (dir string, key *rsa.PrivateKey, certificate []byte) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "app"}, NotAfter: time.Now().Add(time.Hour)}
	if certificate, err = x509.CreateCertificate(rand.Reader, template, template, key.Public(), key); err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	public := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	account, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "agent@p.example", "private_key_id": "k1", "private_key": private, "token_uri": "http://localhost/google/token"})
	if err != nil {
		t.Fatal(err)
	}
	return testnet.WriteFiles(t, map[string]string{
		"web": "CANARY-web", "pod": "CANARY-pod", "app.pem": private + public, "app.crt": public, "app.key": private, "google.json": string(account),
		"person.json": `{"type": "authorized_user", "client_id": "me", "client_secret": "CANARY-person", "refresh_token": "CANARY-refresh", "token_uri": "http://localhost/google/token"}`,
		"credentials": "[default]\naws_access_key_id = AKIA\naws_secret_access_key = CANARY-key\n\n# [x]\n[keys]\naws_access_key_id=AKIA\naws_secret_access_key=CANARY-key\ns3 =\n  aws_access_key_id = nested\n",
		"config":      "[profile keys]\nregion = eu-central-1\n[profile role]\nrole_arn = arn:one\nsource_profile = keys\nexternal_id = x1\n[profile two]\nrole_arn = arn:two\nsource_profile = role\n[profile placed]\nrole_arn = arn:placed\ncredential_source = Ec2InstanceMetadata\n[profile circle]\nrole_arn = a\nsource_profile = circle2\n[profile circle2]\nrole_arn = a\nsource_profile = circle\n[profile sso]\nsso_session = x\n",
	}), key, certificate
}

// Each way in which a cloud lets the agent in: what its endpoints were asked, in order, and who came to the
// receiver. What was given is used for several requests.
func TestCloudAccess(t *testing.T) {
	dir, _, _ := cloudFiles(t)
	const region = "AWS_REGION"
	files := map[string]string{region: "eu-central-1", "AWS_CONFIG_FILE": "DIR/config", "AWS_SHARED_CREDENTIALS_FILE": "DIR/credentials"}
	with := func(more ...string) map[string]string {
		m := map[string]string{region: "eu-central-1"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	pod := with("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "DIR/pod")
	const machine = "169.254.169.254/latest/api/token 169.254.169.254/latest/meta-data/iam/security-credentials/ 169.254.169.254/latest/meta-data/iam/security-credentials/my role"
	ids := "client_id: " + azureTestID + ", tenant_id: " + azureTestID
	for name, tc := range map[string]struct {
		keys, asked, who string
		env              map[string]string
	}{
		"keys":              {"sigv4: {region: eu-central-1, access_key: AKIA, secret_key: CANARY-key}", "", "AKIA", nil},
		"environment":       {"sigv4: {}", "", "AKIA", with("AWS_ACCESS_KEY_ID", "AKIA", "AWS_SECRET_ACCESS_KEY", "CANARY-key")},
		"default profile":   {"sigv4: {}", "", "AKIA", files},
		"profile":           {"sigv4: {profile: keys}", "", "AKIA", map[string]string{"AWS_CONFIG_FILE": "DIR/config", "AWS_SHARED_CREDENTIALS_FILE": "DIR/credentials", "AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "x"}},
		"profile with role": {"sigv4: {profile: role}", "localhost/", "ASIA1", files},
		"two roles":         {"sigv4: {profile: two}", "localhost/ localhost/", "ASIA2", files},
		"role":              {"sigv4: {access_key: AKIA, secret_key: CANARY-key, role_arn: arn:r, external_id: e, session_name: me, tags: {b: '2', a: '1'}}", "localhost/", "ASIA1", with()},
		"web identity":      {"sigv4: {}", "localhost/", "ASIA1", with("AWS_WEB_IDENTITY_TOKEN_FILE", "DIR/web", "AWS_ROLE_ARN", "arn:web")},
		"pod":               {"sigv4: {}", "169.254.170.23/v1/credentials", "ASIA1", pod},
		"machine":           {"sigv4: {}", machine, "ASIA3", with()},
		"machine and role":  {"sigv4: {profile: placed}", machine + " localhost/", "ASIA4", files},

		"virtual machine":  {"azuread: {managed_identity: {}, scope: https://one.example/.default}", "169.254.169.254/metadata/identity/oauth2/token", "CANARY-token-1", nil},
		"app service":      {"azuread: {managed_identity: {client_id: " + azureTestID + "}}", "localhost/msi", "CANARY-token-1", map[string]string{"IDENTITY_ENDPOINT": "http://localhost/msi", "IDENTITY_HEADER": "CANARY-app"}},
		"workload":         {"azuread: {workload_identity: {" + ids + ", token_file_path: web}}", "localhost/" + azureTestID + "/v2.0/.well-known/openid-configuration localhost/" + azureTestID + "/oauth2/v2.0/token", "CANARY-token-2", nil},
		"workload by env":  {"azuread: {workload_identity: {" + ids + "}}", "localhost/" + azureTestID + "/v2.0/.well-known/openid-configuration localhost/" + azureTestID + "/oauth2/v2.0/token", "CANARY-token-2", map[string]string{"AZURE_FEDERATED_TOKEN_FILE": "DIR/web"}},
		"secret":           {"azuread: {oauth: {" + ids + ", client_secret: CANARY-app}, cloud: AzureChina}", "localhost/" + azureTestID + "/v2.0/.well-known/openid-configuration localhost/" + azureTestID + "/oauth2/v2.0/token", "CANARY-token-2", nil},
		"certificate":      {"azuread: {certificate: {" + ids + ", certificate_path: app.crt, certificate_key_path: app.key}}", "localhost/" + azureTestID + "/v2.0/.well-known/openid-configuration localhost/" + azureTestID + "/oauth2/v2.0/token", "CANARY-token-2", nil},
		"sdk, secret":      {"azuread: {sdk: {}}", "localhost/t/v2.0/.well-known/openid-configuration localhost/t/oauth2/v2.0/token", "CANARY-token-2", map[string]string{"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "i", "AZURE_CLIENT_SECRET": "CANARY-app"}},
		"sdk, certificate": {"azuread: {sdk: {tenant_id: u}}", "localhost/t/v2.0/.well-known/openid-configuration localhost/t/oauth2/v2.0/token", "CANARY-token-2", map[string]string{"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "i", "AZURE_CLIENT_CERTIFICATE_PATH": "DIR/app.pem"}},
		"sdk, workload":    {"azuread: {sdk: {}}", "localhost/t/v2.0/.well-known/openid-configuration localhost/t/oauth2/v2.0/token", "CANARY-token-2", map[string]string{"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "i", "AZURE_FEDERATED_TOKEN_FILE": "DIR/web"}},
		"sdk, machine":     {"azuread: {sdk: {}, scope: https://two.example/.default}", "169.254.169.254/metadata/identity/oauth2/token 169.254.169.254/metadata/identity/oauth2/token", "CANARY-token-2", nil},
		"service account":  {"google_iam: {credentials_file: google.json}", "localhost/google/token", "CANARY-token-1", nil},
		"default account":  {"google_iam: {}", "localhost/google/token", "CANARY-token-1", map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "DIR/google.json"}},
		"person":           {"google_iam: {credentials_file: person.json}", "localhost/google/token", "CANARY-token-1", nil},
		"google's machine": {"google_iam: {}", "169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token", "CANARY-token-1", map[string]string{"HOME": "/nonexistent"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c, stop := newSky(t, tc.keys, dir, tc.env)
				defer stop()
				for range 3 {
					if a := c.EmptyWrite(t.Context()); a.Status != 200 {
						t.Fatalf("%+v", a)
					}
				}
				var all []string
				for _, a := range s.calls() {
					all = append(all, a.host+a.path)
				}
				if got := strings.Join(all, " "); got != tc.asked {
					t.Errorf("asked %q, want %q", got, tc.asked)
				}
				if got := strings.Join(s.visits(), " "); got != tc.who+" "+tc.who+" "+tc.who {
					t.Errorf("the receiver saw %q", got)
				}
				if ends := c.Expiries(); (len(ends) == 1 && ends[0].Renewed) != (tc.asked != "") {
					t.Errorf("expiries %+v", ends)
				}
				s.check(t, name)
			})
		})
	}
}

// check looks at what the endpoints were sent.
func (s *sky) check(t *testing.T, name string) {
	t.Helper()
	last := asked{}
	if len(s.calls()) > 0 {
		last = s.calls()[len(s.calls())-1]
	}
	f := last.form
	ok := true
	switch name {
	case "role":
		ok = last.by == "AKIA" && f.Encode() == "Action=AssumeRole&DurationSeconds=900&ExternalId=e&RoleArn=arn%3Ar&RoleSessionName=me&Tags.member.1.Key=a&Tags.member.1.Value=1&Tags.member.2.Key=b&Tags.member.2.Value=2&Version=2011-06-15"
	case "profile with role":
		ok = last.by == "AKIA" && f.Get("RoleArn") == "arn:one" && f.Get("ExternalId") == "x1"
	case "two roles":
		ok = s.calls()[0].by == "AKIA" && last.by == "ASIA1" && f.Get("RoleArn") == "arn:two"
	case "machine and role":
		ok = last.by == "ASIA3" && f.Get("RoleArn") == "arn:placed"
	case "web identity":
		ok = last.by == "" && f.Get("WebIdentityToken") == "CANARY-web" && f.Get("RoleArn") == "arn:web" && last.header.Get("Authorization") == ""
	case "virtual machine":
		ok = last.query.Encode() == "api-version=2018-02-01&resource=https%3A%2F%2Fone.example"
	case "sdk, machine":
		ok = last.query.Encode() == "api-version=2018-02-01&resource=https%3A%2F%2Ftwo.example"
	case "app service":
		ok = last.query.Encode() == "api-version=2019-08-01&client_id="+azureTestID+"&resource=https%3A%2F%2Fmonitor.azure.com%2F" && last.header.Get("X-Identity-Header") == "CANARY-app"
	case "workload", "workload by env":
		ok = f.Get("client_assertion") == "CANARY-web" && f.Get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" && strings.HasPrefix(f.Get("scope"), "https://monitor.azure.com//.default")
	case "secret":
		ok = f.Get("client_id") == azureTestID && f.Get("client_secret") == "CANARY-app" && f.Get("grant_type") == "client_credentials" && strings.HasPrefix(f.Get("scope"), "https://monitor.azure.cn//.default")
	case "person":
		ok = f.Encode() == "client_id=me&client_secret=CANARY-person&grant_type=refresh_token&refresh_token=CANARY-refresh"
	case "google's machine":
		ok = last.query.Get("scopes") == "https://www.googleapis.com/auth/monitoring.write"
	}
	if !ok {
		t.Errorf("sent %+v", last)
	}
}

// Assertions are signed by the key of the file, and say who, for whom and for how long.
func TestCloudAssertions(t *testing.T) {
	dir, key, certificate := cloudFiles(t)
	for entry, pss := range map[string]bool{
		"azuread: {certificate: {client_id: " + azureTestID + ", tenant_id: t.example, certificate_path: app.pem, send_certificate_chain: true}}": true,
		"google_iam: {credentials_file: google.json}": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			s, c, stop := newSky(t, entry, dir, nil)
			defer stop()
			if a := c.EmptyWrite(t.Context()); a.Status != 200 {
				t.Fatalf("%+v", a)
			}
			f := s.calls()[len(s.calls())-1].form
			parts := strings.Split(f.Get("assertion")+f.Get("client_assertion"), ".")
			if len(parts) != 3 {
				t.Fatalf("%v", f)
			}
			var header, claims map[string]any
			for i, to := range []any{&header, &claims} {
				text, err := base64.RawURLEncoding.DecodeString(parts[i])
				if err != nil || json.Unmarshal(text, to) != nil {
					t.Fatalf("%v: %s", err, text)
				}
			}
			signature, err := base64.RawURLEncoding.DecodeString(parts[2])
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
			if pss {
				err = rsa.VerifyPSS(&key.PublicKey, crypto.SHA256, sum[:], signature, nil)
			} else {
				err = rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature)
			}
			print := sha256.Sum256(certificate)
			now := float64(time.Now().Unix())
			switch {
			case err != nil:
				t.Error(err)
			case pss && (header["alg"] != "PS256" || header["x5t#S256"] != base64.StdEncoding.EncodeToString(print[:]) || len(header["x5c"].([]any)) != 1 ||
				claims["iss"] != azureTestID || claims["sub"] != azureTestID || claims["aud"] != "https://localhost/t.example/oauth2/v2.0/token" || claims["exp"].(float64) <= now):
				t.Errorf("%v, %v", header, claims)
			case !pss && (header["alg"] != "RS256" || header["kid"] != "k1" || claims["iss"] != "agent@p.example" || claims["aud"] != "http://localhost/google/token" ||
				claims["scope"] != "https://www.googleapis.com/auth/monitoring.write" || claims["exp"].(float64) <= now || f.Get("grant_type") != config.GrantJWT):
				t.Errorf("%v, %v", header, claims)
			}
		})
	}
}
