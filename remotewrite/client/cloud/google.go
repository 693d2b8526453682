package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"hwsagent/internal/redact"
	"hwsagent/remotewrite/config"
)

// googleScope is the permission to write samples.
const googleScope = "https://www.googleapis.com/auth/monitoring.write"

// googleIAM gets tokens by Google's library: with the entry's file, that of the environment, that of the gcloud command,
// or else from the machine.
type googleIAM struct{ *config.GoogleIAM }

// Google returns the source of an entry's tokens.
func Google(c *config.GoogleIAM) Source { return googleIAM{c} }

func (g googleIAM) What() string { return "Google token" }

// Files returns the one file that is read.
func (g googleIAM) Files() []string {
	file, _ := g.file()
	return []string{file}
}

// file returns the file with credentials, and whether it must exist.
func (g googleIAM) file() (name string, must bool) {
	if g.CredentialsFile != "" {
		return g.CredentialsFile, true
	}
	if name := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"); name != "" {
		return name, true
	}
	base := filepath.Join(os.Getenv("HOME"), ".config")
	if runtime.GOOS == "windows" {
		base = os.Getenv("APPDATA")
	}
	return filepath.Join(base, "gcloud", "application_default_credentials.json"), false
}

func (g googleIAM) Get(ctx context.Context, client *http.Client) (Access, error) {
	file, must := g.file()
	text, err := redact.ReadFile(file)
	if !must && errors.Is(err, fs.ErrNotExist) {
		return ofMachine(ctx, client)
	}
	if err != nil {
		return Access{}, fmt.Errorf("google_iam: %w", err)
	}
	// The operator trusts the file, external accounts included: the agent reads it as Google's own programs do.
	var of struct {
		Type google.CredentialsType `json:"type"`
	}
	if json.Unmarshal([]byte(text), &of) != nil {
		return Access{}, fmt.Errorf("google_iam: %s is not JSON as Google's console writes it", file)
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	c, err := google.CredentialsFromJSONWithType(ctx, []byte(text), of.Type, googleScope)
	if err != nil {
		return Access{}, fmt.Errorf("google_iam: %s: %w", file, err)
	}
	got, err := c.TokenSource.Token()
	if err != nil {
		return Access{}, fmt.Errorf("google_iam: %w", err)
	}
	return bearer(got.AccessToken, got.Expiry), nil
}

// ofMachine asks the metadata server of the virtual machine. Google's default chain remembers for the life of a process
// that there was none; this asks again each time.
func ofMachine(ctx context.Context, client *http.Client) (Access, error) {
	begin := time.Now()
	text, err := metadata.NewClient(client).GetWithContext(ctx, "instance/service-accounts/default/token?scopes="+url.QueryEscape(googleScope))
	if err != nil {
		return Access{}, fmt.Errorf("google_iam: %w", err)
	}
	var t struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	if err := json.Unmarshal([]byte(text), &t); err != nil || t.Token == "" {
		return Access{}, errors.New("google_iam: the metadata server's answer has no access_token")
	}
	return bearer(t.Token, begin.Add(time.Duration(t.Seconds)*time.Second)), nil
}
