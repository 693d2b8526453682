package client

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// certificateText names the certificate that err refuses and its issuer; "" if err refuses none.
func certificateText(err error) string {
	v, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(v.UnverifiedCertificates) == 0 {
		return ""
	}
	c := v.UnverifiedCertificates[0]
	return fmt.Sprintf("certificate of %q, issued by %q", shortName(c.Subject), shortName(c.Issuer))
}

// maxShownName bounds a name in a certificate, in bytes.
const maxShownName = 120

func shortName(n pkix.Name) string {
	name := plain([]byte(n.String()))
	return plain([]byte(name[:min(len(name), maxShownName)]))
}

// leadsTo returns the target of a redirect, without user, password and query; "" if the answer is not a redirect or has no target.
func leadsTo(from string, resp *http.Response) string {
	base, err := url.Parse(from)
	said := resp.Header.Get("Location")
	if resp.StatusCode/100 != 3 || said == "" || err != nil {
		return ""
	}
	to, err := base.Parse(said)
	if err != nil {
		return ""
	}
	shown := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
	return plain([]byte(shown.String()))
}
