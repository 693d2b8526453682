package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hwsagent/remotewrite/config"
)

// googleScope is the permission to write samples. googleTokens is the token endpoint for files that name none.
const (
	googleScope  = "https://www.googleapis.com/auth/monitoring.write"
	googleTokens = "https://oauth2.googleapis.com/token" // #nosec G101 -- an address
)

// googleFile is the content of a credential file, for a service account or a person.
type googleFile struct {
	Type         string `json:"type"`
	Email        string `json:"client_email"`
	KeyID        string `json:"private_key_id"`
	Key          string `json:"private_key"`
	TokenURI     string `json:"token_uri"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
}

// Google selects the source of Google tokens: the entry's file, that of the environment, that of the gcloud
// command, or else the machine.
func Google(c *config.GoogleIAM, env Environment, files Files) (Source, error) {
	file, must := c.CredentialsFile, true
	if file == "" {
		file = env.Get("GOOGLE_APPLICATION_CREDENTIALS")
	}
	if file == "" && env.Home != "" {
		file, must = filepath.Join(env.Home, ".config", "gcloud", "application_default_credentials.json"), false
	}
	if file != "" {
		text, err := files.Read(file)
		if err == nil {
			s, err := googleFromFile(text)
			if err != nil {
				return nil, fmt.Errorf("google_iam: %s: %w", file, err)
			}
			return s, nil
		}
		if must || !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	host := cmp.Or(env.Get("GCE_METADATA_HOST"), "169.254.169.254")
	return googleMachine("http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token?scopes=" + url.QueryEscape(googleScope)), nil
}

// googleFromFile reads a credential file. Its errors contain no part of the text.
func googleFromFile(text string) (Source, error) {
	var f googleFile
	if json.Unmarshal([]byte(text), &f) != nil {
		return nil, errors.New("it is not JSON as Google's console writes it")
	}
	g := &tokenForm{what: "Google token", to: cmp.Or(f.TokenURI, googleTokens)}
	if _, ok := endpoint(g.to); !ok {
		return nil, errors.New("its token_uri is not an https address")
	}
	switch f.Type {
	case "service_account":
		key, err := rsaKey(f.Key)
		if err != nil {
			return nil, fmt.Errorf("its private_key cannot be used: %w", err)
		}
		if f.Email == "" {
			return nil, errors.New("it has no client_email")
		}
		g.hidden = []string{f.Key}
		g.values, g.assertion = url.Values{"grant_type": {config.GrantJWT}}, "assertion"
		g.sign = func() (string, error) {
			now := time.Now()
			t := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
				"iss": f.Email, "scope": googleScope, "aud": g.to, "iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
			})
			t.Header["kid"] = f.KeyID
			return t.SignedString(key)
		}
	case "authorized_user":
		g.values = url.Values{"grant_type": {"refresh_token"}, "client_id": {f.ClientID}, "client_secret": {f.ClientSecret}, "refresh_token": {f.RefreshToken}}
		g.hidden = []string{f.ClientSecret, f.RefreshToken}
	default:
		return nil, errors.New("its type is neither service_account nor authorized_user, which are those that this build supports")
	}
	return g, nil
}

// googleMachine is the address of the machine's metadata server that issues tokens for its service account.
type googleMachine string

func (m googleMachine) What() string      { return "Google token" }
func (m googleMachine) Secrets() []string { return nil }

func (m googleMachine) Get(ctx context.Context, net Network) (Access, error) {
	req, err := get(ctx, string(m), "Metadata-Flavor", "Google")
	if err != nil {
		return Access{}, err
	}
	return askBearer(net, req, true)
}
