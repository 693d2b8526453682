package cloud

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const suiteToken = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

// The values of Amazon's test suite for Signature Version 4, as github.com/awslabs/aws-c-auth has it in
// tests/aws-signing-test-suite/v4: keys, time, region and service of all its cases, and the signature of each
// that has a normalized path. Its requests hold paths and queries unescaped, as they are given here.
func TestSignatureOfAmazonsSuite(t *testing.T) {
	const unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const vanilla, post = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
	type header = map[string][]string
	for name, tc := range map[string]struct {
		method, path, query string
		header              header
		body, want          string
	}{
		"get-vanilla":                           {"GET", "/", "", nil, "", vanilla},
		"get-space-normalized":                  {"GET", "/example space/", "", nil, "", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
		"get-unreserved":                        {"GET", "/" + unreserved, "", nil, "", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
		"get-utf8":                              {"GET", "/ሴ", "", nil, "", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
		"get-vanilla-empty-query-key":           {"GET", "/", "Param1=value1", nil, "", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
		"get-vanilla-query-order-key-case":      {"GET", "/", "Param2=value2&Param1=value1", nil, "", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		"get-vanilla-query-unreserved":          {"GET", "/", unreserved + "=" + unreserved, nil, "", "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
		"get-vanilla-utf8-query":                {"GET", "/", "ሴ=bar", nil, "", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
		"get-header-key-duplicate":              {"GET", "/", "", header{"My-Header1": {"value2", "value2", "value1"}}, "", "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
		"get-header-value-order":                {"GET", "/", "", header{"My-Header1": {"value4", "value1", "value3", "value2"}}, "", "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},
		"get-header-value-trim":                 {"GET", "/", "", header{"My-Header1": {" value1"}, "My-Header2": {` "a   b   c"`}}, "", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
		"get-vanilla-with-session-token":        {"GET", "/", "", header{"X-Amz-Security-Token": {"6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"}}, "", "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"},
		"post-vanilla":                          {"POST", "/", "", nil, "", post},
		"post-vanilla-query":                    {"POST", "/", "Param1=value1", nil, "", "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
		"post-header-key-sort":                  {"POST", "/", "", header{"My-Header1": {"value1"}}, "", "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
		"post-header-value-case":                {"POST", "/", "", header{"My-Header1": {"VALUE1"}}, "", "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
		"post-sts-header-before":                {"POST", "/", "", header{"X-Amz-Security-Token": {suiteToken}}, "", "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
		"post-x-www-form-urlencoded":            {"POST", "/", "", header{"Content-Type": {"application/x-www-form-urlencoded"}}, "Param1=value1", "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"},
		"post-x-www-form-urlencoded-parameters": {"POST", "/", "", header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}}, "Param1=value1", "328d1b9eaadca9f5818ef05e8392801e091653bafec24fcab71e7344e7f51422"},
	} {
		h := http.Header{}
		for name, values := range tc.header {
			h[name] = values
		}
		if tc.body != "" {
			h["X-Amz-Content-Sha256"] = []string{"9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"}
		}
		k := &Keys{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", Region: "us-east-1", Service: "service"}
		req := &http.Request{Method: tc.method, Host: "example.amazonaws.com", Header: h, URL: &url.URL{Scheme: "https", Host: "example.amazonaws.com", Opaque: "//example.amazonaws.com" + tc.path, RawQuery: tc.query}}
		req.ContentLength = int64(len(tc.body))
		if err := k.sign(req, sha256.Sum256([]byte(tc.body)), time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
		got := req.Header.Get("Authorization")
		if _, signature, _ := strings.Cut(got, "Signature="); signature != tc.want {
			t.Errorf("%s: %s", name, got)
		}
		if !strings.HasPrefix(got, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What a request gets: the date, the token of temporary keys, and a signature over these, the host and the kind of
// the body, but over nothing that a proxy may change. Signed again it has each of them once.
func TestSignedRequest(t *testing.T) {
	k := &Keys{ID: "AKIDEXAMPLE", Secret: "secret", Session: "token", Region: "eu-central-1", Service: "aps"}
	req, err := http.NewRequest(http.MethodPost, "https://aps.example/workspaces/ws-1/api/v1/remote_write", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"User-Agent": {"x"}, "Content-Type": {"application/x-protobuf"}, "Retry-Attempt": {"1"}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600))
	for range 2 {
		if err := k.Sign(req, sha256.Sum256(nil), at); err != nil {
			t.Fatal(err)
		}
	}
	a := req.Header["Authorization"]
	if len(a) != 1 || !strings.Contains(a[0], "/20260102/eu-central-1/aps/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, ") {
		t.Errorf("%q", a)
	}
	if d := req.Header["X-Amz-Date"]; len(d) != 1 || d[0] != "20260102T020405Z" {
		t.Errorf("%q", d)
	}
	once := a[0]
	req.URL.Path = "/workspaces/ws-2/api/v1/remote_write"
	if err := k.Sign(req, sha256.Sum256(nil), at); err != nil || req.Header.Get("Authorization") == once {
		t.Error("another path has the same signature")
	}
}
