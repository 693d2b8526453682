package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	promconfig "github.com/prometheus/common/config"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"hwsagent/remotewrite/client/cloud"
	"hwsagent/remotewrite/config"
)

// oauth2Grant asks the token endpoint of an entry's oauth2 for access tokens. It implements [cloud.Source].
type oauth2Grant struct {
	place string      // the address to show to people
	grant interface { // *clientcredentials.Config or *promconfig.JwtGrantTypeConfig
		TokenSource(ctx context.Context) oauth2.TokenSource
	}
}

// newOAuth2Grant makes the source of tokens. The contents of files must be in place of their names.
func newOAuth2Grant(o *promconfig.OAuth2) (*oauth2Grant, error) {
	place, err := config.ParseURL(o.TokenURL)
	if err != nil {
		return nil, err
	}
	g := &oauth2Grant{place: place.String()}
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

// Secrets implements [cloud.Source].
func (g *oauth2Grant) Secrets() []string { return nil } // loadOAuth2 has them

// Get implements [cloud.Source]. It makes one attempt, or two if it is not known yet how the endpoint expects the secret.
func (g *oauth2Grant) Get(ctx context.Context, net cloud.Network) (cloud.Access, error) {
	begin, via := time.Now(), &overNetwork{ctx: ctx, net: net}
	client := &http.Client{Transport: via, CheckRedirect: followNone}
	got, err := g.grant.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client)).Token()
	failed := &cloud.Error{Place: g.place, Status: via.last.Status, Header: via.last.Header}
	said, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case ok:
		failed.Text = cmp.Or(cloud.OAuthWords(said.Body), string(said.Body))
	case err != nil && failed.Status != 0 && ctx.Err() == nil:
		failed.Text = strings.TrimPrefix(err.Error(), "oauth2: ")
	case err != nil:
		failed.Status, failed.Err = 0, err
	default:
		a := cloud.Access{Authorization: got.Type() + " " + got.AccessToken, Secrets: []string{got.AccessToken}, End: got.Expiry}
		if httpguts.ValidHeaderFieldValue(a.Authorization) {
			// Only the length of the validity counts, since the issuer's clock may differ from ours.
			if v := jwtValidity(got.AccessToken); a.End.IsZero() && !v.From.IsZero() && v.Until.After(v.From) {
				a.End = begin.Add(v.Until.Sub(v.From))
			}
			return a, nil
		}
		failed.Text = "the answer has no access_token that can be sent"
	}
	return cloud.Access{}, failed
}

// overNetwork carries the requests of one call of Get. It binds them to the call's context, since not all grants do.
type overNetwork struct {
	ctx  context.Context
	net  cloud.Network
	last cloud.Response
}

// RoundTrip implements [http.RoundTripper].
func (o *overNetwork) RoundTrip(req *http.Request) (*http.Response, error) {
	o.last = cloud.Response{}
	resp, err := o.net.Do(req.Clone(o.ctx), false)
	if err != nil {
		return nil, err
	}
	o.last = resp
	return &http.Response{StatusCode: resp.Status, Header: resp.Header, Body: io.NopCloser(bytes.NewReader(resp.Body)), Request: req}, nil
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
