package cloud

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Keys sign requests for Amazon Web Services (Signature Version 4). Immutable.
type Keys struct {
	ID      string // the name of the keys, not a secret
	Secret  string
	Session string // the token of temporary keys; "" for others
	Region  string // part of the signature's scope
	Service string
}

// The names and the time format that the algorithm defines: AWS General Reference, "Signature
// Version 4 signing process".
const (
	algorithm  = "AWS4-HMAC-SHA256"
	terminator = "aws4_request"
	amzTime    = "20060102T150405Z"
	amzDay     = "20060102"
)

// Sign sets the headers that authenticate a request: X-Amz-Date, X-Amz-Security-Token for temporary keys, and
// Authorization. sum is the SHA-256 of the body. The signature covers the host, Content-Type, Content-Encoding and
// the headers X-Amz-*, so a proxy may change the others.
func (k *Keys) Sign(req *http.Request, sum [sha256.Size]byte, now time.Time) {
	req.Header.Set("X-Amz-Date", now.UTC().Format(amzTime))
	if k.Session != "" {
		req.Header.Set("X-Amz-Security-Token", k.Session)
	}
	signed := http.Header{}
	for name, values := range req.Header {
		if name == "Content-Type" || name == "Content-Encoding" || strings.HasPrefix(name, "X-Amz-") {
			signed[name] = values
		}
	}
	signed["Host"] = []string{cmp.Or(req.Host, req.URL.Host)}
	req.Header.Set("Authorization", k.authorization(req.Method, req.URL.EscapedPath(), req.URL.RawQuery, signed, sum, now))
}

// authorization returns the value of the Authorization header for a request with exactly these headers, Host included, and
// with path and query as sent.
func (k *Keys) authorization(method, path, query string, header http.Header, sum [sha256.Size]byte, now time.Time) string {
	canonical, names := canonicalRequest(method, path, query, header, sum)
	now = now.UTC()
	scope := strings.Join([]string{now.Format(amzDay), k.Region, k.Service, terminator}, "/")
	hashed := sha256.Sum256([]byte(canonical))
	toSign := strings.Join([]string{algorithm, now.Format(amzTime), scope, hex.EncodeToString(hashed[:])}, "\n")
	key := []byte("AWS4" + k.Secret)
	for _, part := range []string{now.Format(amzDay), k.Region, k.Service, terminator, toSign} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return algorithm + " Credential=" + k.ID + "/" + scope + ", SignedHeaders=" + names + ", Signature=" + hex.EncodeToString(key)
}

// canonicalRequest returns the form of a request to sign, and the names of the headers in it.
func canonicalRequest(method, path, query string, header http.Header, sum [sha256.Size]byte) (text, signed string) {
	lines := make(map[string]string, len(header))
	var names []string
	for name, values := range header {
		lower := strings.ToLower(name)
		names = append(names, lower)
		trimmed := make([]string, len(values))
		for i, v := range values {
			trimmed[i] = strings.Join(strings.Fields(v), " ")
		}
		lines[lower] = strings.Join(trimmed, ",")
	}
	slices.Sort(names)
	signed = strings.Join(names, ";")
	var b strings.Builder
	b.WriteString(method + "\n" + canonicalPath(path) + "\n" + canonicalQuery(query) + "\n")
	for _, name := range names {
		b.WriteString(name + ":" + lines[name] + "\n")
	}
	b.WriteString("\n" + signed + "\n" + hex.EncodeToString(sum[:]))
	return b.String(), signed
}

// CleanPath removes dots and empty parts from a URL's path. The signed path has none, and not every service removes
// them before it verifies the signature.
func CleanPath(u *url.URL) {
	if u.RawPath != "" {
		return // a part contains an escaped slash
	}
	u.Path = cleaned(u.Path)
}

// cleaned returns a path without dots and empty parts. A slash at its end stays.
func cleaned(p string) string {
	clean := path.Clean("/" + p)
	if clean != "/" && strings.HasSuffix(p, "/") {
		clean += "/"
	}
	return clean
}

// canonicalPath returns a path as sent, without dots and empty parts, and escaped once more, as all services but S3
// require.
func canonicalPath(sent string) string {
	return strings.NewReplacer("%2F", "/", "+", "%20").Replace(url.QueryEscape(cleaned(sent)))
}

// canonicalQuery returns a query with its parameters sorted by escaped name and value.
func canonicalQuery(raw string) string {
	if raw == "" {
		return ""
	}
	var all [][2]string
	for part := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(part, "=")
		all = append(all, [2]string{escapeAgain(name), escapeAgain(value)})
	}
	slices.SortFunc(all, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	var parts []string
	for _, p := range all {
		parts = append(parts, p[0]+"="+p[1])
	}
	return strings.Join(parts, "&")
}

// escapeAgain returns a part of a query with all characters escaped except the unreserved ones of RFC 3986, 2.3.
func escapeAgain(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		s = plain
	}
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}
