package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// This file adds details of a failure that people cannot see elsewhere: the refused certificate, and the target of a redirect.

// maxShownChain is how many certificates of a chain are shown: a server may send any number.
const maxShownChain = 4

// withChain adds to the error of a refused certificate what certificateText says.
func withChain(err error) error {
	if text := certificateText(err); text != "" {
		return fmt.Errorf("%w (%s)", err, text)
	}
	return err
}

// certificateText describes the certificate that err refuses: its subject, its issuer, and the chain sent with it; "" if
// err refuses none.
func certificateText(err error) string {
	v, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(v.UnverifiedCertificates) == 0 {
		return ""
	}
	leaf := v.UnverifiedCertificates[0]
	text := fmt.Sprintf("certificate of %s, issued by %s", nameOf(leaf), issuerOf(leaf))
	if rest := v.UnverifiedCertificates[1:]; len(rest) > 0 {
		var names []string
		for _, c := range rest[:min(len(rest), maxShownChain)] {
			names = append(names, nameOf(c)+", issued by "+issuerOf(c))
		}
		if len(rest) > maxShownChain {
			names = append(names, fmt.Sprintf("and %d more", len(rest)-maxShownChain))
		}
		text += "; sent with it: " + strings.Join(names, "; ")
	} else {
		text += "; no certificate of an authority was sent with it"
	}
	return text
}

// maxShownName bounds the name in a certificate, in bytes.
const maxShownName = 120

func nameOf(c *x509.Certificate) string { return shortName(c.Subject.String(), c.DNSNames) }

func issuerOf(c *x509.Certificate) string {
	if c.Subject.String() == c.Issuer.String() {
		return "itself"
	}
	return shortName(c.Issuer.String(), nil)
}

func shortName(name string, dns []string) string {
	if name == "" && len(dns) > 0 {
		name = dns[0]
	}
	name = plain([]byte(name))
	if len(name) > maxShownName {
		name = plain([]byte(name[:maxShownName])) + "…"
	}
	return fmt.Sprintf("%q", name)
}

// leadsTo returns the target of a redirect, without user, password and query; "" if the answer is not a redirect or has no target.
func leadsTo(resp *http.Response) string {
	said := resp.Header[location]
	if resp.StatusCode/100 != 3 || len(said) == 0 || resp.Request == nil {
		return ""
	}
	to, err := resp.Request.URL.Parse(said[0])
	if err != nil {
		return ""
	}
	shown := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
	return plain([]byte(shown.String()))
}
