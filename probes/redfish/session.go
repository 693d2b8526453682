package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"hwsagent/internal/files"
	"hwsagent/internal/redact"
	"hwsagent/probes/devices"
)

const (
	sessionsPath  = rootPath + "/SessionService/Sessions"
	greetPath     = rootPath + "/Systems" // requires a login; it need not exist
	sessionsAgain = 30 * time.Minute      // after which a session is tried again instead of basic authentication
	goodbye       = 5 * time.Second       // to end the session when the probe ends
	maxPassword   = 4 << 10               // bytes of a password file
	maxDenied     = 3                     // refused requests of a new session, without an accepted one, before it counts as dead
)

// login holds the credentials of one service: a session, made once and kept over rounds, or name and password with each
// request. It is safe for concurrent use.
type login struct {
	config *Config
	client *client
	now    func() time.Time

	mu       sync.Mutex
	lockout  lockout
	token    string // token of the session; "" if there is none
	session  string // the path of the session
	password string // for basic authentication; "" while that is not used
	again    time.Time
	number   int             // number of the credentials; each login increments it
	worked   int             // number of the credentials accepted last
	greeted  bool            // name and password were accepted in this round
	tried    bool            // a session was replaced in this round
	denied   map[string]bool // resources that the session must not read
}

// begin begins a round, which allows one more login.
func (l *login) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried, l.greeted = false, false
	if l.password != "" && l.config.Auth != AuthBasic && l.now().After(l.again) {
		l.password = ""
	}
}

// credentials returns the credentials for a request, and their number. It logs in if necessary.
func (l *login) credentials(ctx context.Context) (set func(http.Header), number int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token == "" && l.password == "" {
		err = l.in(ctx)
	} else if l.token == "" && !l.greeted {
		err = l.greet(ctx)
	}
	if err != nil {
		var fatal *fatalError
		if !errors.As(err, &fatal) { // no answer in time; no further login in this round
			err = &fatalError{err, devices.NoAnswer}
		}
		return nil, 0, err
	}
	if token := l.token; token != "" {
		return func(h http.Header) { h.Set("X-Auth-Token", token) }, l.number, nil
	}
	return l.basic(), l.number, nil
}

// rejected records that the service answered 401 to a request with the credentials of that number. It returns nil if
// the request should be repeated: an ended session is replaced, once per round. A resource that a new session cannot
// read either is forbidden for this account.
func (l *login) rejected(ctx context.Context, number int, path string, r *reply) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case number != l.number: // another request has handled this already
		return nil
	case l.token == "" && l.password == "": // another request has handled this already
		return &fatalError{refusal(l.config.Username, r), devices.Login}
	case l.token == "":
		if err := l.greet(ctx); err != nil {
			return err
		}
		return &statusError{code: r.status, words: "although the password is right: this account may not read it"}
	case l.denied[path]:
		return &statusError{code: r.status, words: "although the session is valid for others: this account may not read it"}
	case l.tried && l.worked != number && len(l.denied) >= maxDenied:
		return &fatalError{errors.New("the service refuses the session that it has just given: its clock may have jumped, or its session table may be full"), devices.Login}
	case l.tried:
		if len(l.denied) < maxDenied || l.worked == number && len(l.denied) < maxNodes {
			l.denied[path] = true
		}
		return &statusError{code: r.status, words: said(r.body)}
	}
	token, session := l.token, l.session
	l.token, l.session, l.tried = "", "", true
	if l.worked == number { // it may be alive, and would count among the service's sessions
		if session != "" {
			_ = l.end(ctx, token, session) // whether it was alive does not matter
		}
	}
	return nil
}

// in logs in.
func (l *login) in(ctx context.Context) error {
	password, err := l.secret()
	if err != nil {
		return &fatalError{err, devices.Secret}
	}
	if err := l.lockout.wait(l.now(), password); err != nil {
		return &fatalError{&lockedOutError{err}, devices.Login}
	}
	l.number++
	if l.config.Auth == AuthBasic {
		l.password = password
		return l.greet(ctx)
	}
	root, err := l.root(ctx)
	if err != nil {
		return err
	}
	path, ok := root.sub("Links.Sessions").link()
	if !ok {
		path = sessionsPath
	}
	body, err := json.Marshal(map[string]string{"UserName": l.config.Username, "Password": password})
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	r, err := l.client.send(ctx, http.MethodPost, path, body, nil)
	if err != nil {
		return err
	}
	token := r.header.Get("X-Auth-Token")
	switch {
	case r.status/100 == 2 && token != "":
		l.token, l.session = token, sessionOf(r)
		l.lockout.accepted()
		return nil
	case refuses(r):
		err := refusal(l.config.Username, r)
		l.lockout.refused(l.now(), password, err)
		return &fatalError{err, devices.Login}
	case l.config.Auth == AuthSession:
		return &fatalError{fmt.Errorf("the service opens no session (status %d %s); auth: basic needs none", r.status, said(r.body)), devices.Login}
	}
	l.password, l.again = password, l.now().Add(sessionsAgain)
	return l.greet(ctx)
}

// greet tries name and password with one request, once a round: with several at a time a wrong password would lock the
// account.
func (l *login) greet(ctx context.Context) error {
	r, err := l.client.send(ctx, http.MethodGet, greetPath, nil, l.basic())
	if err != nil {
		return err
	}
	if r.status == http.StatusUnauthorized {
		err := refusal(l.config.Username, r)
		l.lockout.refused(l.now(), l.password, err)
		l.password = ""
		return &fatalError{err, devices.Login}
	}
	l.greeted = true
	l.lockout.accepted()
	return nil
}

// basic sets the header of basic authentication (RFC 7617).
func (l *login) basic() func(http.Header) {
	user, password := l.config.Username, l.password
	return func(h http.Header) {
		req := http.Request{Header: h}
		req.SetBasicAuth(user, password)
	}
}

// lockedOutError means that no login is tried at present.
type lockedOutError struct{ err error }

func (e *lockedOutError) Error() string { return e.err.Error() }
func (e *lockedOutError) Unwrap() error { return e.err }

// works records that the service accepted the credentials of that number.
func (l *login) works(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number == l.number && l.worked != number {
		l.worked = number
		l.lockout.accepted()
	}
}

// refuses reports whether a login was refused because of its name or password.
func refuses(r *reply) bool {
	low := strings.ToLower(string(r.body[:min(len(r.body), 4096)]))
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return true
	case http.StatusBadRequest: // as iLO 4 answers
		return strings.Contains(low, "unauthorized") || strings.Contains(low, "credential") || strings.Contains(low, "password")
	}
	return false
}

// sessionOf returns the path of a new session, which is needed to end it.
func sessionOf(r *reply) string {
	ref := r.header.Get("Location")
	if i := strings.Index(ref, "/redfish/"); i > 0 { // an absolute address
		ref = ref[i:]
	}
	if path, ok := resourcePath(ref); ok {
		return path
	}
	o, err := parse(r.body)
	if err != nil {
		return ""
	}
	path, _ := o.link()
	return path
}

// root reads the service's root, which needs no login (DSP0266, "Resource and operation authentication requirements").
func (l *login) root(ctx context.Context) (object, error) {
	r, err := l.client.send(ctx, http.MethodGet, rootPath+"/", nil, nil)
	if err != nil {
		return nil, err
	}
	switch {
	case r.status == http.StatusUnauthorized: // violates the specification, but occurs
		return nil, nil
	case r.status == http.StatusNotFound:
		return nil, &fatalError{fmt.Errorf("%s has no %s/ (status 404): it is not a Redfish service, or Redfish is switched off", l.client.base.Host, rootPath), devices.Protocol}
	case r.status != http.StatusOK:
		return nil, &fatalError{fmt.Errorf("%s%s/ answers with status %d%s", l.client.base.Host, rootPath, r.status, redirected(r)), devices.Protocol}
	}
	o, err := parse(r.body)
	if err != nil {
		return nil, &fatalError{fmt.Errorf("%s%s/ is not a Redfish service: %w", l.client.base.Host, rootPath, err), devices.Protocol}
	}
	return o, nil
}

func redirected(r *reply) string {
	if strings.Contains(string(r.body), "HTTP request to an HTTPS server") {
		return ": it speaks TLS at this port; write https://"
	}
	if to := r.header.Get("Location"); r.status/100 == 3 && to != "" {
		return ", a redirect to " + label(to) + ", which is not followed: correct target"
	}
	return ""
}

// secret returns the present password.
func (l *login) secret() (string, error) {
	if l.config.PasswordFile == "" {
		return string(l.config.Password), nil
	}
	text, err := files.Read(l.config.PasswordFile, maxPassword)
	if err != nil {
		return "", fmt.Errorf("read password_file: %w", err)
	}
	password := string(redact.Trim(text))
	if password == "" {
		return "", fmt.Errorf("read password_file: %s is empty", l.config.PasswordFile)
	}
	return password, nil
}

// out ends the session: services allow few, and an abandoned session counts until it times out.
func (l *login) out() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	token, path := l.token, l.session
	l.token, l.session, l.password = "", "", ""
	if token == "" || path == "" {
		return nil
	}
	return l.end(context.Background(), token, path)
}

// end ends a session.
func (l *login) end(ctx context.Context, token, path string) error {
	ctx, cancel := context.WithTimeout(ctx, goodbye)
	defer cancel()
	r, err := l.client.send(ctx, http.MethodDelete, path, nil, func(h http.Header) { h.Set("X-Auth-Token", token) })
	if err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	if r.status/100 != 2 && r.status != http.StatusNotFound && r.status != http.StatusUnauthorized {
		return fmt.Errorf("end the session: the service answers with status %d", r.status)
	}
	return nil
}
