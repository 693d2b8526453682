package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"hwsagent/internal/redact"
	"hwsagent/remotewrite/client/cloud"
)

const (
	tokenTimeout = 10 * time.Second // for an answer of the token endpoint, including its body
	tokenRetry   = 10 * time.Second // between attempts to renew a token that is still valid
	tokenPatient = 30 * time.Second // until a token that the receiver never accepted is replaced
)

// token is one access token, or keys that sign requests instead. Immutable.
type token struct {
	header  string      // the value of Authorization; "" with keys
	keys    *cloud.Keys // nil with a header
	secrets []string
	born    time.Time
	end     time.Time // zero: unknown
}

// same reports whether two tokens have the same header, or the same keys.
func (k *token) same(other *token) bool {
	return k != nil && other != nil && k.header == other.header && (k.keys == nil) == (other.keys == nil) && (k.keys == nil || *k.keys == *other.keys)
}

// signs reports whether requests are signed; k may be nil.
func (k *token) signs() bool { return k != nil && k.keys != nil }

// authorize adds a token to a request with that body; k may be nil.
func (k *token) authorize(req *http.Request, body []byte) error {
	switch {
	case k.signs():
		return k.keys.Sign(req, sha256.Sum256(body), time.Now())
	case k != nil:
		req.Header.Set("Authorization", k.header)
	}
	return nil
}

// usable reports whether the token stays valid long enough to reach the receiver.
func (k *token) usable(now time.Time) bool {
	return k != nil && (k.end.IsZero() || now.Before(k.end.Add(-min(10*time.Second, k.end.Sub(k.born)/10))))
}

// due reports whether to renew the token: when a fifth of its life is left, but at most five minutes
// before its end.
func (k *token) due(now time.Time) bool {
	return k != nil && !k.end.IsZero() && !now.Before(k.end.Add(-min(5*time.Minute, k.end.Sub(k.born)/5)))
}

// tokens gets the access tokens of one set of credentials and keeps each until it ends.
// Safe for concurrent use.
type tokens struct {
	from *tokenGiver
	got  func(end time.Time) // called with the end of each new token

	turn chan struct{} // held by the caller that asks the endpoint

	mu       sync.Mutex
	token    *token // nil: none
	accepted bool   // the receiver accepted it at least once
	asked    int    // number of attempts at the endpoint
	askedAt  time.Time
	err      error       // of the last attempt
	shown    [2][]string // the last two tokens, since a receiver's text may repeat them
}

// newTokens makes the source for credentials with oauth2 or a cloud.
func newTokens(c *credentials, agent string, dial DialFunc, got func(end time.Time)) (*tokens, error) {
	from, err := newTokenGiver(c, agent, dial)
	return &tokens{from: from, got: got, turn: make(chan struct{}, 1)}, err
}

// get returns a token that can be used now. One caller at a time asks the endpoint; callers that
// waited meanwhile share its answer.
func (t *tokens) get(ctx context.Context) (*token, error) {
	t.mu.Lock()
	k, asked := t.token, t.asked
	t.mu.Unlock()
	if k.usable(time.Now()) {
		return k, nil
	}
	return t.ask(ctx, asked)
}

// renew replaces the present token while it is still valid, if a renewal is due.
func (t *tokens) renew(ctx context.Context) {
	t.mu.Lock()
	now, asked := time.Now(), t.asked
	due := t.token.due(now) && (t.err == nil || now.Sub(t.askedAt) >= tokenRetry)
	t.mu.Unlock()
	if due {
		_, _ = t.ask(ctx, asked) // the old token stays in use until its end; then get returns the error
	}
}

// ask gets a new token, unless the endpoint was asked since the caller read count.
func (t *tokens) ask(ctx context.Context, count int) (*token, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	t.mu.Lock()
	k, err, asked := t.token, t.err, t.asked
	t.mu.Unlock()
	switch {
	case asked == count:
	case err != nil:
		return nil, err
	case k.usable(time.Now()):
		return k, nil
	}
	k, err = t.fetch(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, err // the end of ctx proves nothing about the endpoint
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked++
	t.askedAt, t.err = time.Now(), err
	if err != nil {
		return nil, err
	}
	t.token, t.accepted = k, false
	t.shown = [2][]string{t.shown[1], k.secrets}
	t.got(k.end)
	return k, nil
}

// fetch asks the endpoint for a token.
func (t *tokens) fetch(ctx context.Context) (*token, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tokenTimeout, errNoToken)
	defer cancel()
	k, err := t.from.give(ctx)
	if err == nil && !k.end.After(k.born) {
		k.end = time.Time{} // implausible or unknown; a refusal will show the end
	}
	return k, err
}

// note records whether the receiver accepted the token. It returns whether to resend the request
// at once with another token: the receiver had accepted this one before.
func (t *tokens) note(k *token, a Answer) (again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case a.Status == 0:
		return false
	case !a.Denied():
		t.accepted = t.accepted || t.token == k && a.FromTarget() // a program in front of the receiver may have written another answer
		return false
	case t.token != k:
		return k.refusedBy(a) // it was replaced already
	}
	again = t.accepted && k.refusedBy(a)
	if again || time.Since(k.born) >= tokenPatient {
		t.token = nil // a token contains roles: the next one has those granted meanwhile
	}
	return again
}

// refusedBy reports whether the answer may be due to the token: 401, and 403 for signed requests, since
// Amazon's services answer 403 to expired keys.
func (k *token) refusedBy(a Answer) bool {
	return a.Status == http.StatusUnauthorized || k.signs() && a.Status == http.StatusForbidden
}

// secrets returns the tokens that may appear in a text.
func (t *tokens) secrets() *redact.Secrets {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return redact.New(slices.Concat(t.shown[0], t.shown[1])...)
}

// expiry returns the validity of the present token; false without a token or a known end.
func (t *tokens) expiry() (Expiry, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == nil || t.token.end.IsZero() {
		return Expiry{}, false
	}
	return Expiry{What: t.from.source.What(), From: t.token.born, Until: t.token.end, Renewed: true}, true
}

var errNoToken = errors.New("no answer within 10s")

// tokenError is the reason why there is no access token.
type tokenError struct {
	what   string // the missing item, for people
	place  string // the endpoint's address, for people
	status int    // of its answer; 0 if there was none
	after  time.Duration
	text   string // the text of the answer
	clock  bool   // the text is about this host's clock
	err    error  // the cause if there was no answer
}

func (e *tokenError) Unwrap() error { return e.err }

func (e *tokenError) Error() string {
	s := "get " + e.what
	if e.place != "" {
		s += " from " + e.place
	}
	switch {
	case e.err != nil:
		return s + ": " + e.err.Error()
	case e.status/100 != 2:
		return s + ": " + statusText(e.status, e.text)
	}
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

// noToken returns the answer for a request that was not sent because there is no token.
func (c *Client) noToken(l *generation, err error, took time.Duration) Answer {
	shown := c.redacted(l, err)
	a := Answer{Err: fmt.Errorf("post to %s: %w", c.place, shown), Failure: explain(c.entry, err, shown.Error()), Blocked: blocks(err), Took: took}
	a.Failure.Words = c.redact(l, a.Failure.Words)
	if t, ok := errors.AsType[*tokenError](err); ok {
		a.RetryAfter = t.after
	}
	if a.Blocked {
		c.blamed(l)
	}
	return a
}

// source returns the present source of tokens, nil if there is none.
func (c *Client) source() *tokens {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return nil
	}
	return c.current.creds.tokens
}
