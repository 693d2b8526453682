package client

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/config"
)

// The grant of RFC 7523, 2.1: an assertion, signed with a key that is read from a file, and
// what stands in it.
func TestOAuth2Assertion(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := testnet.WriteFiles(t, map[string]string{
		"pkcs1.pem": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		"pkcs8.pem": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})),
	})
	for _, tc := range []struct{ file, algorithm, more, iss string }{
		{"pkcs1.pem", "", "", "agent"},
		{"pkcs8.pem", "RS512", ", signature_algorithm: RS512, iss: other", "other"},
	} {
		idp, g := &issuer{life: 3600}, &testnet.Guard{}
		endpoint, receiver := serve(t, idp.ServeHTTP), serve(t, g.Handler(testnet.Bearer))
		c := newClient(t, fmt.Sprintf("{url: %q, oauth2: {client_id: agent, grant_type: '%s', client_certificate_key_file: %s, client_certificate_key_id: k1, token_url: %q, scopes: [a, b], claims: {tenant: plant, nested: {x: [1]}}, endpoint_params: {resource: r}%s}}",
			receiver.URL, config.GrantJWT, tc.file, endpoint.URL, tc.more), dir, Options{})
		if a := c.EmptyWrite(t.Context()); a.Status != 200 || g.Count("token-1") != 1 {
			t.Fatalf("%+v", a)
		}
		form := idp.forms[0]
		if form.Get("grant_type") != config.GrantJWT || form.Get("scope") != "a b" || form.Get("resource") != "r" || idp.basics[0] != "" {
			t.Errorf("asked by %v, %q", form, idp.basics[0])
		}
		parts := strings.Split(form.Get("assertion"), ".")
		if len(parts) != 3 {
			t.Fatalf("assertion %q", form.Get("assertion"))
		}
		var claims map[string]any
		var header map[string]string
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
		signed := []byte(parts[0] + "." + parts[1])
		if tc.algorithm == "RS512" {
			sum := sha512.Sum512(signed)
			err = rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA512, sum[:], signature)
		} else {
			sum := sha256.Sum256(signed)
			err = rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature)
		}
		if err != nil || header["kid"] != "k1" || claims["iss"] != tc.iss || claims["sub"] != "agent" || claims["aud"] != endpoint.URL || claims["tenant"] != "plant" || claims["scope"] != "a b" {
			t.Errorf("%v: header %v, claims %v", err, header, claims)
		}
	}
}

// A key that cannot sign is a fault of the credential file, reported before any request is sent.
func TestOAuth2KeyFaults(t *testing.T) {
	ca := testnet.NewAuthority(t)
	_, elliptic := ca.Issue("x")
	dir := testnet.WriteFiles(t, map[string]string{"text": "CANARY", "elliptic.pem": elliptic, "cert.pem": ca.Pem})
	for file, says := range map[string]string{"text": "it is not PEM", "elliptic.pem": "no RSA key", "cert.pem": "no RSA key", "missing": "no such file"} {
		c := newClient(t, fmt.Sprintf("{url: http://h.example/, oauth2: {client_id: agent, grant_type: '%s', client_certificate_key_file: %s, token_url: http://idp.example/}}", config.GrantJWT, file), dir, Options{})
		a := c.EmptyWrite(t.Context())
		if a.Err == nil || !strings.Contains(a.Err.Error(), says) || !strings.Contains(a.Err.Error(), file) || strings.Contains(a.Err.Error(), "CANARY") {
			t.Errorf("%s: %v, want %q", file, a.Err, says)
		}
	}
}

// webToken is an unsigned JSON web token.
func webToken(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// A JSON web token without expires_in lasts as long as it claims, by the
// issuer's clock: only the length counts. Implausible claims are ignored.
func TestOAuth2Length(t *testing.T) {
	for _, tc := range []struct {
		answer string
		want   time.Duration // 0: unknown
	}{
		{`"expires_in": 300`, 5 * time.Minute},
		{`"expires_in": "300"`, 5 * time.Minute},
		{`"expires_in": 0`, 0},
		{`"expires_in": -5`, 0},
		{`"x": 1`, 0},
		{`"access_token": "` + webToken(`{"iat": 1000, "exp": 1600}`) + `"`, 10 * time.Minute},
		{`"access_token": "` + webToken(`{"exp": 1600}`) + `"`, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, stop := newOAuthRig(t, "", "client_secret: x", nil)
			defer stop()
			r.issuer.set(0, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"access_token": "t", %s}`, tc.answer)
			})
			if a := r.EmptyWrite(t.Context()); a.Status != 200 {
				t.Fatalf("%s: %+v", tc.answer, a)
			}
			got := time.Duration(0)
			if e := r.Expiries(); len(e) > 0 {
				got = time.Until(e[0].Until)
			}
			if got != tc.want {
				t.Errorf("%s: %s, want %s", tc.answer, got, tc.want)
			}
		})
	}
}
