package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/golang-jwt/jwt/v5"
	promconfig "github.com/prometheus/common/config"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"hwsagent/remotewrite/client/cloud"
	"hwsagent/remotewrite/config"
)

// oauth2Grant asks the token endpoint of an entry's oauth2 for access tokens. It implements [cloud.Source].
type oauth2Grant struct {
	grant interface { // *clientcredentials.Config or *promconfig.JwtGrantTypeConfig
		TokenSource(ctx context.Context) oauth2.TokenSource
	}
}

// newOAuth2Grant makes the source of tokens. The contents of files must be in place of their names.
func newOAuth2Grant(o *promconfig.OAuth2) (*oauth2Grant, error) {
	if _, err := config.ParseURL(o.TokenURL); err != nil {
		return nil, err
	}
	g := &oauth2Grant{}
	params := url.Values{}
	for name, value := range o.EndpointParams {
		params.Set(name, value)
	}
	if o.GrantType == config.GrantJWT {
		g.grant = &promconfig.JwtGrantTypeConfig{
			PrivateKey: []byte(o.ClientCertificateKey), PrivateKeyID: o.ClientCertificateKeyID, SigningAlgorithm: signing(o.SignatureAlgorithm),
			Iss: cmp.Or(o.Iss, o.ClientID), Subject: o.ClientID, Audience: o.Audience, PrivateClaims: o.Claims,
			Scopes: o.Scopes, TokenURL: o.TokenURL, EndpointParams: params,
		}
	} else {
		g.grant = &clientcredentials.Config{
			ClientID: o.ClientID, ClientSecret: string(o.ClientSecret),
			Scopes: o.Scopes, TokenURL: o.TokenURL, EndpointParams: params,
		}
	}
	return g, nil
}

func signing(algorithm string) *jwt.SigningMethodRSA {
	switch algorithm {
	case jwt.SigningMethodRS384.Name:
		return jwt.SigningMethodRS384
	case jwt.SigningMethodRS512.Name:
		return jwt.SigningMethodRS512
	}
	return jwt.SigningMethodRS256
}

// What implements [cloud.Source].
func (g *oauth2Grant) What() string { return "OAuth2 token" }

// Files implements [cloud.Source].
func (g *oauth2Grant) Files() []string { return nil } // loadOAuth2 reads them

// Get implements [cloud.Source]. It makes one attempt, or two if it is not known yet how the endpoint expects the secret.
func (g *oauth2Grant) Get(ctx context.Context, client *http.Client) (cloud.Access, error) {
	begin := time.Now()
	got, err := g.grant.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client)).Token()
	if err != nil {
		return cloud.Access{}, err
	}
	a := cloud.Access{Authorization: got.Type() + " " + got.AccessToken, Secrets: []string{got.AccessToken}, End: got.Expiry}
	// Only the length of the validity counts, since the issuer's clock may differ from ours.
	if v := jwtValidity(got.AccessToken); a.End.IsZero() && !v.From.IsZero() && v.Until.After(v.From) {
		a.End = begin.Add(v.Until.Sub(v.From))
	}
	return a, nil
}

// checkSigningKey checks that a text is a private key that can sign assertions.
func checkSigningKey(text string) error {
	switch _, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(text)); {
	case errors.Is(err, jwt.ErrKeyMustBePEMEncoded):
		return errors.New("it is not PEM")
	case err != nil:
		return errors.New("it has no RSA key (PKCS #1 or PKCS #8, without a passphrase)")
	}
	return nil
}
