package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// number is a JSON number, which some endpoints write as a string.
type number float64

// UnmarshalJSON reads a number, or a string that contains one.
func (n *number) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "" || text == "null" {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	*n = number(f)
	return err
}

// tokenForm asks for tokens with the values of a form, and with an assertion if there is one to sign (RFC 7521, 4.1
// and 4.2). It implements [Source].
type tokenForm struct {
	what      string // see Source.What
	to        string
	values    url.Values
	assertion string                 // the name of the assertion among the values
	sign      func() (string, error) // makes the assertion; nil: values need none
	hidden    []string               // see Source.Secrets
}

func (f *tokenForm) What() string      { return f.what }
func (f *tokenForm) Secrets() []string { return f.hidden }

func (f *tokenForm) Get(ctx context.Context, net Network) (Access, error) {
	values := f.values
	if f.sign != nil {
		assertion, err := f.sign()
		if err != nil {
			return Access{}, err
		}
		values = maps.Clone(values)
		values.Set(f.assertion, assertion)
	}
	req, err := form(ctx, f.to, values)
	if err != nil {
		return Access{}, err
	}
	return askBearer(net, req, false)
}

// askBearer sends a request whose answer is a token as in RFC 6749, 5.1, or an error as in 5.2.
func askBearer(net Network, req *http.Request, near bool) (Access, error) {
	begin := time.Now()
	resp, refused := call(net, req, near, OAuthWords)
	if refused != nil {
		return Access{}, refused
	}
	return bearer(req, resp, begin)
}

// OAuthWords returns error and error_description of a token endpoint's refusal (RFC 6749, 5.2); "" if it has none.
func OAuthWords(body []byte) string {
	var e struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &e) != nil || e.Error == "" {
		return ""
	}
	return strings.TrimSuffix(e.Error+": "+e.Description, ": ")
}

// bearer reads a token from the answer to a request sent at begin.
func bearer(req *http.Request, resp Response, begin time.Time) (Access, error) {
	var t struct {
		Token     string `json:"access_token"`
		ExpiresIn number `json:"expires_in"`
		ExpiresOn number `json:"expires_on"` // Azure's App Service sends only this: a Unix time
	}
	if err := json.Unmarshal(resp.Body, &t); err != nil || t.Token == "" {
		return Access{}, &Error{Place: place(req.URL), Status: resp.Status, Header: resp.Header, Text: cmp.Or(OAuthWords(resp.Body), "the answer has no access_token")}
	}
	a := Access{Authorization: "Bearer " + t.Token, Secrets: []string{t.Token}}
	switch {
	case t.ExpiresIn > 0 && t.ExpiresIn < 1e9:
		a.End = begin.Add(time.Duration(t.ExpiresIn) * time.Second)
	case t.ExpiresOn > 0 && t.ExpiresOn < 1e11:
		a.End = time.Unix(int64(t.ExpiresOn), 0)
	}
	return a, nil
}
