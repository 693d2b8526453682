// Package cloud gets the credentials for receivers in three clouds: keys of Amazon Web Services and the
// signatures made with them, tokens of Microsoft Entra ID, and tokens of Google.
//
// [SigV4], [Azure] and [Google] read the configuration, the environment and files, and return a [Source]. Its
// Get asks the endpoints of the cloud once. The caller keeps the result until it expires, and provides the
// connections ([Network]).
package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Source gets credentials for a receiver. Safe for concurrent use.
type Source interface {
	// Get asks for credentials. Errors caused by an endpoint are *[Error].
	Get(ctx context.Context, net Network) (Access, error)

	// What returns the kind of credentials, for people: "AWS keys".
	What() string

	// Secrets returns the secrets that Get sends to endpoints.
	Secrets() []string
}

// Access holds the credentials for requests. Exactly one of Authorization and Keys is set.
type Access struct {
	Authorization string // the value of that header
	Keys          *Keys  // for signing requests
	End           time.Time
	Secrets       []string // the secrets in Authorization or Keys
}

// Network carries requests to endpoints. It bounds the size of answers and follows no redirects.
type Network interface {
	// Do sends a request. If near is set, the request goes to this machine or its network, without a proxy.
	// A body that is too long is an error.
	Do(req *http.Request, near bool) (Response, error)
}

// Response is the answer of an endpoint.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Files reads credential files, without surrounding space. An empty file is an error.
type Files interface {
	Read(name string) (string, error)
}

// Environment is the environment of the agent's process.
type Environment struct {
	Get  func(name string) string
	Home string // the user's home directory; "" if there is none
}

// Error is the failure of a request to an endpoint.
type Error struct {
	Place  string // scheme, host and path
	Status int    // of the answer; 0 if there was none
	Header http.Header
	Text   string // the text of the answer, unchanged
	Err    error  // the cause if there was no answer
}

func (e *Error) Unwrap() error { return e.Err }

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Place + ": " + e.Err.Error()
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %d %s: %s", e.Place, e.Status, http.StatusText(e.Status), e.Text), ": ")
}

// call sends a request to an endpoint and returns its answer, or an error for any status other than 2xx. words
// extracts the endpoint's message from the body of a refusal; if it returns "", the whole body is the message.
func call(net Network, req *http.Request, near bool, words func(body []byte) string) (Response, *Error) {
	resp, err := net.Do(req, near)
	if err != nil {
		return resp, &Error{Place: place(req.URL), Err: err}
	}
	if resp.Status/100 == 2 {
		return resp, nil
	}
	text := ""
	if words != nil {
		text = words(resp.Body)
	}
	return resp, &Error{Place: place(req.URL), Status: resp.Status, Header: resp.Header, Text: cmp.Or(text, string(resp.Body))}
}

func place(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// form returns a POST of values, as in OAuth2 and Amazon's query protocol.
func form(ctx context.Context, to string, values url.Values) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(values.Encode()))
	if err != nil {
		return nil, errors.New("not a URL to ask for access")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req, nil
}

// get returns a GET with one header.
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
