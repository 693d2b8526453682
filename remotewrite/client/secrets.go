package client

import (
	"errors"
	"net/http"
	"strings"

	"hwsagent/internal/redact"
)

// redact removes secrets from a text.
func (c *Client) redact(l *generation, text string) string {
	return redact.Cut(text, c.secrets, c.hide, &l.creds.secrets, l.creds.tokens.secrets())
}

// redacted returns err, or an error with its text without secrets if it contains any.
func (c *Client) redacted(l *generation, err error) error {
	if text := c.redact(l, err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// quote returns the readable part of a response body without secrets, including the signature of the request.
func (c *Client) quote(l *generation, resp *http.Response, body []byte) string {
	if len(body) == 0 {
		return ""
	}
	var sent redact.Secrets
	if resp.Request != nil {
		addAuthorization(&sent, resp.Request)
	}
	return quoted(resp.StatusCode, body, func(s string) string { return sent.Cut(c.redact(l, s)) })
}

// addAuthorization adds a request's Authorization header to s: whole, without its scheme, and the signature in it.
func addAuthorization(s *redact.Secrets, req *http.Request) {
	whole := req.Header.Get("Authorization")
	_, bare, _ := strings.Cut(whole, " ")
	_, signature, _ := strings.Cut(whole, "Signature=")
	s.Add(whole, bare, signature)
}

// quoted returns the readable part of a response body. It removes secrets before it
// shortens the text, which could leave a part of one, and again after decoding HTML escapes.
func quoted(status int, body []byte, cut func(string) string) string {
	text := []rune(cut(bodyText(status, []byte(cut(string(body))))))
	return strings.TrimSpace(string(text[:min(len(text), keptText)]))
}
