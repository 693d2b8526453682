package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Keys sign requests for Amazon Web Services (Signature Version 4). Immutable.
type Keys struct {
	ID      string // the name of the keys, not a secret
	Secret  string
	Session string // the token of temporary keys; "" for others
	Region  string // part of the signature's scope
	Service string
}

// Sign sets the headers that authenticate a request: X-Amz-Date, X-Amz-Security-Token for temporary keys, and
// Authorization. sum is the SHA-256 of the body. The signature covers the host, Content-Type, Content-Encoding and
// the headers X-Amz-*, so a proxy may change the others.
func (k *Keys) Sign(req *http.Request, sum [sha256.Size]byte, now time.Time) error {
	covered := &http.Request{Method: req.Method, URL: req.URL, Host: req.Host, Header: http.Header{}}
	for name, values := range req.Header {
		if name == "Content-Type" || name == "Content-Encoding" || strings.HasPrefix(name, "X-Amz-") {
			covered.Header[name] = values
		}
	}
	if err := k.sign(covered, sum, now); err != nil {
		return fmt.Errorf("sign the request: %w", err)
	}
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
		if value := covered.Header.Get(name); value != "" {
			req.Header.Set(name, value)
		}
	}
	return nil
}

// sign signs a request with all its headers by Amazon's library.
func (k *Keys) sign(req *http.Request, sum [sha256.Size]byte, now time.Time) error {
	with := aws.Credentials{AccessKeyID: k.ID, SecretAccessKey: k.Secret, SessionToken: k.Session}
	return v4.NewSigner().SignHTTP(context.Background(), with, req, hex.EncodeToString(sum[:]), k.Service, k.Region, now)
}

// CleanPath removes dots and empty parts from a URL's path. The signed path has none, and not every service removes
// them before it verifies the signature.
func CleanPath(u *url.URL) {
	if u.RawPath != "" {
		return // a part contains an escaped slash
	}
	clean := path.Clean("/" + u.Path)
	if clean != "/" && strings.HasSuffix(u.Path, "/") {
		clean += "/" // a slash at the end stays
	}
	u.Path = clean
}
