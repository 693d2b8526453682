package cloud

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// assertionLife is the lifetime of an assertion: Azure accepts ten minutes and more, Google at most an hour.
const assertionLife = 10 * time.Minute

// certificate signs assertions with its key, which authenticate its owner.
type certificate struct {
	key   *rsa.PrivateKey
	chain [][]byte // DER; the owner's certificate is first
}

// readCertificate reads a certificate with its chain and its key, in PEM. The key may be in the same file.
func readCertificate(file, keyFile string, files Files) (*certificate, error) {
	text, err := files.Read(file)
	if err != nil {
		return nil, err
	}
	keyText := text
	if keyFile != "" {
		if keyText, err = files.Read(keyFile); err != nil {
			return nil, err
		}
	} else {
		keyFile = file
	}
	c := &certificate{}
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			c.chain = append(c.chain, block.Bytes)
		}
	}
	if len(c.chain) == 0 {
		return nil, fmt.Errorf("there is no certificate in PEM in %s", file)
	}
	first, err := x509.ParseCertificate(c.chain[0])
	if err != nil {
		return nil, fmt.Errorf("read certificate of %s: %w", file, err)
	}
	if c.key, err = rsaKey(keyText); err != nil {
		return nil, fmt.Errorf("use the key of %s to sign: %w", keyFile, err)
	}
	if !c.key.PublicKey.Equal(first.PublicKey) {
		return nil, fmt.Errorf("the key of %s is not that of the certificate of %s", keyFile, file)
	}
	return c, nil
}

// rsaKey returns the first private RSA key in a text.
func rsaKey(text string) (*rsa.PrivateKey, error) {
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return k, nil
		}
		if k, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if r, ok := k.(*rsa.PrivateKey); ok {
				return r, nil
			}
		}
	}
	return nil, errors.New("there is no RSA key in it (PEM, PKCS #1 or PKCS #8, without a passphrase)")
}

// azureAssertion returns the assertion that an application with a certificate sends in place of a secret (Microsoft
// identity platform, "Application authentication certificate credentials").
func (c *certificate) azureAssertion(id, to string, chain bool) (string, error) {
	now := time.Now()
	var name [16]byte
	_, _ = rand.Read(name[:]) // never fails
	t := jwt.NewWithClaims(jwt.SigningMethodPS256, jwt.MapClaims{
		"aud": to, "iss": id, "sub": id, "jti": hex.EncodeToString(name[:]),
		"nbf": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	print := sha256.Sum256(c.chain[0])
	t.Header["x5t#S256"] = base64.RawURLEncoding.EncodeToString(print[:])
	if chain {
		var all []string
		for _, der := range c.chain {
			all = append(all, base64.StdEncoding.EncodeToString(der))
		}
		t.Header["x5c"] = all
	}
	return t.SignedString(c.key)
}
