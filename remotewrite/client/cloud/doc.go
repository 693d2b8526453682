// Package cloud gets the credentials for receivers of three clouds: keys of Amazon Web Services and the
// signatures made with them, tokens of Microsoft Entra ID, and tokens of Google.
//
// [SigV4], [Azure] and [Google] read the configuration, the environment and files, and return a [Source]. Its
// Get asks the endpoints of the cloud once. The caller keeps the result until it ends, and provides the
// connections ([Network]).
package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Source gets access to a receiver. Safe for concurrent use.
type Source interface {
	// Get asks for access. Errors that an endpoint caused are *[Error].
	Get(ctx context.Context, net Network) (Access, error)

	// What names the kind of access, for people: "AWS keys".
	What() string

	// Secrets are the secrets that Get sends to endpoints.
	Secrets() []string
}

// Access holds the credentials for requests. Exactly one of Authorization and Keys is set.
type Access struct {
	Authorization string // the value of that header
	Keys          *Keys  // sign with them
	End           time.Time
	Secrets       []string // the secrets in Authorization or Keys
}

// Network carries requests to endpoints. Their answers end, and redirects are not followed.
type Network interface {
	// Do sends a request. If near is set, it goes to this machine or its network, without a proxy.
	// An answer with a body that is too long is an error.
	Do(req *http.Request, near bool) (Response, error)
}

// Response is the answer of an endpoint.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Files reads files of credentials: without surrounding space, and never empty.
type Files interface {
	Read(name string) (string, error)
}

// Environment is the environment of the agent's process.
type Environment struct {
	Get  func(name string) string
	Home string // the user's directory; "" if there is none
}

// Error is the failure of an endpoint.
type Error struct {
	Place  string // scheme, host and path
	Status int    // of its answer; 0 if there was none
	Header http.Header
	Text   string // its words, as it sent them
	Err    error  // if there was no answer
}

func (e *Error) Unwrap() error { return e.Err }

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Place + ": " + e.Err.Error()
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %d %s: %s", e.Place, e.Status, http.StatusText(e.Status), e.Text), ": ")
}

// call sends a request to an endpoint and returns its answer, or an error if that is no success. words
// finds the endpoint's words in a refusal's body; "" means that all of it is.
func call(net Network, req *http.Request, near bool, words func(body []byte) string) (Response, *Error) {
	resp, err := net.Do(req, near)
	if err != nil {
		return resp, &Error{Place: place(req.URL), Err: err}
	}
	if resp.Status/100 == 2 {
		return resp, nil
	}
	return resp, refusal(req, resp, words)
}

func refusal(req *http.Request, resp Response, words func(body []byte) string) *Error {
	text := ""
	if words != nil {
		text = words(resp.Body)
	}
	if text == "" {
		text = string(resp.Body)
	}
	return &Error{Place: place(req.URL), Status: resp.Status, Header: resp.Header, Text: text}
}

func place(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// form is a POST of values, as OAuth2 and Amazon's query protocol have it.
func form(ctx context.Context, to string, values url.Values) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(values.Encode()))
	if err != nil {
		return nil, errors.New("not a URL to ask for access")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req, nil
}

// get is a GET with one header.
func get(ctx context.Context, from string, header, value string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, errors.New("not a URL to ask for access")
	}
	if header != "" {
		req.Header.Set(header, value)
	}
	return req, nil
}
