package client

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"hwsagent/internal/testnet"
)

// Ways to log in that the clouds' own programs know: a program that prints keys, an external account, and a certificate in
// PFX with a password.
func TestCloudWaysOfTheirOwnPrograms(t *testing.T) {
	dir, _, _ := cloudFiles(t)
	pfx, err := os.ReadFile("testdata/app.pfx") // made by openssl pkcs12 -export -legacy; its password is CANARY-pfx
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"keys.json": `{"Version": 1, "AccessKeyId": "AKIA", "SecretAccessKey": "CANARY-key"}`,
		"process":   "[profile process]\ncredential_process = /bin/cat " + filepath.Join(dir, "keys.json") + "\n",
		"external.json": `{"type": "external_account", "audience": "//iam.googleapis.com/x", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
			"token_url": "http://localhost/sts/token", "credential_source": {"file": "` + filepath.Join(dir, "web") + `"}}`,
		"app.pfx": string(pfx),
	} {
		testnet.WriteFile(t, filepath.Join(dir, name), text)
	}
	for name, tc := range map[string]struct {
		keys, who string
		env       map[string]string
	}{
		"credential_process": {"sigv4: {profile: process}", "AKIA", map[string]string{"AWS_REGION": "eu-central-1", "AWS_CONFIG_FILE": "DIR/process"}},
		"external account":   {"google_iam: {credentials_file: external.json}", "CANARY-token-1", nil},
		"PFX": {"azuread: {certificate: {client_id: " + azureTestID + ", tenant_id: t, certificate_path: app.pfx, certificate_password: CANARY-pfx}}",
			"CANARY-token-2", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c, stop := newSky(t, tc.keys, dir, tc.env)
				defer stop()
				if a := c.EmptyWrite(t.Context()); a.Status != 200 {
					t.Fatalf("%+v", a)
				}
				if got := s.visits(); len(got) != 1 || got[0] != tc.who {
					t.Errorf("the receiver saw %q, want %q", got, tc.who)
				}
			})
		})
	}
}
