package client

import (
	"errors"
	"net/http"
	"strings"

	"hwsagent/redact"
)

// redact cuts secrets out of a text.
func (c *Client) redact(l *generation, text string) string {
	return redact.Cut(text, c.secrets, c.hide, &l.creds.secrets, l.creds.tokens.secrets())
}

// redacted is err, or its text without the secrets that are in it.
func (c *Client) redacted(l *generation, err error) error {
	if text := c.redact(l, err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// quote returns the readable part of a response body without secrets, the signature of the request among them.
func (c *Client) quote(l *generation, resp *http.Response, body []byte) string {
	var sent redact.Secrets
	if resp.Request != nil {
		addAuthorization(&sent, resp.Request)
	}
	return quoted(resp.StatusCode, body, func(s string) string { return sent.Cut(c.redact(l, s)) })
}

// addAuthorization adds a request's header Authorization: whole, without its scheme, and the signature in it.
func addAuthorization(s *redact.Secrets, req *http.Request) {
	whole := req.Header.Get("Authorization")
	_, bare, _ := strings.Cut(whole, " ")
	_, signature, _ := strings.Cut(whole, "Signature=")
	s.Add(whole, bare, signature)
}

// quoted returns the readable part of a response body. Secrets are cut out before the text is
// shortened, which could leave half of one, and again after HTML escapes were decoded.
func quoted(status int, body []byte, cut func(string) string) string {
	text := []rune(cut(bodyText(status, []byte(cut(string(body))))))
	return strings.TrimSpace(string(text[:min(len(text), keptText)]))
}
