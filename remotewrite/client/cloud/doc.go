// Package cloud gets the credentials for receivers in three clouds by the clouds' own libraries: keys of Amazon Web
// Services and the signatures made with them, tokens of Microsoft Entra ID, and tokens of Google.
//
// [SigV4], [Azure] and [Google] return a [Source]. Its Get reads the environment and the files, and asks the endpoints
// of the cloud, in the order of the cloud's library. The caller keeps the result until it expires, and provides the
// HTTP client: the libraries' requests thus have its bounds, its proxy and its deadline.
package cloud

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Source gets credentials for a receiver. Safe for concurrent use.
type Source interface {
	// Get asks for credentials, with requests through client. It must not follow redirects.
	Get(ctx context.Context, client *http.Client) (Access, error)

	// What returns the kind of credentials, for people: "AWS keys".
	What() string

	// Files returns the files that Get may read, as far as their names are known. They need not exist.
	Files() []string
}

// Access holds the credentials for requests. Exactly one of Authorization and Keys is set.
type Access struct {
	Authorization string // the value of that header
	Keys          *Keys  // for signing requests
	End           time.Time
	Secrets       []string // the secrets in Authorization or Keys
}

// bearer returns the access that a token gives until end.
func bearer(token string, end time.Time) Access {
	return Access{Authorization: "Bearer " + token, Secrets: []string{token}, End: end}
}

// Error is a request for access that an endpoint refused or did not answer.
type Error struct {
	Place  string // scheme, host and path
	Status int    // of the answer; 0 if there was none
	Header http.Header
	Text   string // the text of the answer, unchanged
	Err    error  // the cause if there was no answer
}

// Unwrap returns the cause if there was no answer.
func (e *Error) Unwrap() error { return e.Err }

// Error gives the place and the cause, or the status and the text of the answer. The text may have secrets.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Place + ": " + e.Err.Error()
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %d %s: %s", e.Place, e.Status, http.StatusText(e.Status), e.Text), ": ")
}

// Place returns a URL without its query and user, to show to people.
func Place(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Words returns the message in an endpoint's refusal: error and error_description of OAuth2 (RFC 6749, 5.2), or Code and
// Message of Amazon's services; "" if it has none of them.
func Words(body []byte) string {
	var oauth struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &oauth) == nil && oauth.Error != "" {
		return strings.TrimSuffix(oauth.Error+": "+oauth.Description, ": ")
	}
	var amazon struct {
		Code    string `xml:"Error>Code"`
		Message string `xml:"Error>Message"`
	}
	if xml.Unmarshal(body, &amazon) == nil && amazon.Code != "" {
		return strings.TrimSuffix(amazon.Code+": "+amazon.Message, ": ")
	}
	return ""
}
