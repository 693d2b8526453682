package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bounds of requests.
const (
	pageSize = 500 // objects per page; the API server may ignore it
	maxPages = 1000
	listTime = 2 * time.Minute // for a page
	// watchTime is the least duration requested for a watch; the actual one is up to twice that, at random.
	watchTime = 5 * time.Minute
	// watchGrace is how late the server may end a watch.
	watchGrace = 30 * time.Second
	// maxObject bounds an object in bytes of JSON. etcd's limit is 1.5 MiB.
	maxObject = 8 << 20
	maxStatus = 64 << 10 // of an error answer
	userAgent = "hwsagent"
)

// statusError is an error answer of the API
// (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/).
type statusError struct {
	code    int
	status  string // such as "403 Forbidden"
	message string // of the server; may be empty
	reason  string // such as "Expired"
	wait    time.Duration
}

func (e *statusError) Error() string {
	text := "the API server answered " + e.status
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

// shownError is an error for people, without secrets of its cause.
type shownError struct {
	text  string
	cause error
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.cause }

// expired reports whether err means that the server no longer has the requested resourceVersion, or does not have it
// yet.
func expired(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && (e.code == http.StatusGone || e.reason == "Expired" || e.reason == "Gone" || strings.Contains(e.message, "Too large resource version"))
}

// status is the API's answer to a failed request.
type status struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Code    int    `json:"code"`
	Details struct {
		Retry int `json:"retryAfterSeconds"`
	} `json:"details"`
}

func (s status) failure(text string) *statusError {
	if text == "" {
		text = fmt.Sprintf("%d %s", s.Code, http.StatusText(s.Code))
	}
	return &statusError{code: s.Code, status: text, message: s.Message, reason: s.Reason, wait: time.Duration(s.Details.Retry) * time.Second}
}

// api requests the objects of one resource. It belongs to one goroutine.
type api struct {
	conn      *connection
	kind      kind
	namespace string // "": all
	selector  Selector
	listed    *link // of the last list: its version is meaningless for another server
}

// errMoved means that the known versions belong to another server.
var errMoved = errors.New("the kubeconfig file has changed")

// where describes the requested resource, for people.
func (a *api) where() string {
	if a.namespace == "" {
		return a.kind.resource().name
	}
	return fmt.Sprintf("%s in namespace %s", a.kind.resource().name, a.namespace)
}

// address returns the address of the resource on a server.
func (a *api) address(server *url.URL, query url.Values) *url.URL {
	r := a.kind.resource()
	parts := []string{"api", "v1"}
	if r.group != "" {
		parts = []string{"apis", r.group, "v1"}
	}
	if r.namespaced && a.namespace != "" {
		parts = append(parts, "namespaces", url.PathEscape(a.namespace))
	}
	u := server.JoinPath(append(parts, r.name)...)
	if a.selector.Label != "" {
		query.Set("labelSelector", a.selector.Label)
	}
	if a.selector.Field != "" {
		query.Set("fieldSelector", a.selector.Field)
	}
	u.RawQuery, u.Fragment = query.Encode(), ""
	return u
}

// get sends a request, and calls read with the body of a successful answer. Its errors have no secrets.
func (a *api) get(ctx context.Context, query url.Values, read func(io.Reader) error) error {
	client, err := a.conn.get()
	if err != nil {
		return err
	}
	if a.listed != client {
		return errMoved
	}
	u := a.address(client.server, query)
	hide := func(err error) error { return &shownError{client.Hidden(err, u.String()).Error(), err} }
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return hide(err)
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the address is long, and the message has it already
	}
	if err != nil {
		return hide(fmt.Errorf("ask %s://%s: %w", u.Scheme, u.Host, err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return hide(refusal(resp))
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return hide(fmt.Errorf("the answer of %s://%s is of type %q, not JSON: is it the API server?", u.Scheme, u.Host, resp.Header.Get("Content-Type")))
	}
	if err := read(resp.Body); err != nil {
		return hide(err)
	}
	return nil
}

// refusal parses an error answer.
func refusal(resp *http.Response) *statusError {
	e := &statusError{code: resp.StatusCode, status: resp.Status}
	var s status
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxStatus)).Decode(&s); err == nil && s.Kind == "Status" {
		e.message, e.reason = s.Message, s.Reason
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		e.wait = time.Duration(min(n, int(longestPause/time.Second))) * time.Second
	}
	return e
}

// list gets all objects, page by page, and the version to watch from. version restricts the answer: "0" allows any
// version that the server has at hand, "" requires the newest, and a version that one or a newer one.
func (a *api) list(ctx context.Context, version string) (all []object, newest string, err error) {
	next := ""
	room := newRoom(a.where())
	before := a.listed
	if a.listed, err = a.conn.get(); err != nil {
		a.listed = before
		return nil, "", err
	}
	if before != nil && before != a.listed {
		version = "0"
	}
	for range maxPages {
		query := url.Values{"limit": {strconv.Itoa(pageSize)}}
		if next != "" {
			query.Set("continue", next) // which must not be combined with a version
		} else if version != "" {
			query.Set("resourceVersion", version)
		}
		var page listPage
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, listTime)
			defer cancel()
			return a.get(ctx, query, func(body io.Reader) error {
				page, err = readList(body, a.kind, func(o object) error {
					all = append(all, o)
					return room.take(o)
				})
				return err
			})
		}()
		if err != nil {
			return nil, "", err
		}
		newest = page.version
		if page.next == "" {
			return all, newest, nil
		}
		next = page.next
	}
	return nil, "", fmt.Errorf("the list has more than %d pages", maxPages)
}

// listPage is the metadata of a page of a list.
type listPage struct{ version, next string }

// readList reads a page one object at a time.
func readList(body io.Reader, k kind, each func(object) error) (page listPage, err error) {
	m := &metered{from: body, left: maxObject}
	d := json.NewDecoder(m)
	if err := expect(d, json.Delim('{')); err != nil {
		return page, err
	}
	for d.More() {
		m.left = maxObject
		key, err := d.Token()
		if err != nil {
			return page, err
		}
		switch key {
		case "kind":
			var name string
			if err := d.Decode(&name); err != nil {
				return page, err
			}
			if want := k.resource().list; name != want {
				return page, fmt.Errorf("the answer is not a %s but a %q", want, name)
			}
		case "metadata":
			var about struct {
				Version string `json:"resourceVersion"`
				Next    string `json:"continue"`
			}
			if err := d.Decode(&about); err != nil {
				return page, err
			}
			page.version, page.next = about.Version, about.Next
		case "items":
			if err := readItems(d, m, k, each); err != nil {
				return page, err
			}
		default:
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return page, err
			}
		}
	}
	if err := expect(d, json.Delim('}')); err != nil {
		return page, err
	}
	if page.version == "" {
		return page, errors.New("the list has no resourceVersion")
	}
	return page, nil
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case got != want:
		return fmt.Errorf("the answer has no %v where one belongs", want)
	}
	return nil
}

// readItems reads the objects of a page.
func readItems(d *json.Decoder, m *metered, k kind, each func(object) error) error {
	begin, err := d.Token()
	if err != nil || begin == nil { // null is an empty list
		return err
	}
	if begin != json.Delim('[') {
		return errors.New("items is not a list")
	}
	for d.More() {
		m.left = maxObject
		o := k.resource().empty()
		if err := d.Decode(o); err != nil {
			return err
		}
		if o.about().Name == "" {
			return errors.New("the list has an object without a name")
		}
		o.trim()
		if err := each(o); err != nil {
			return err
		}
	}
	return expect(d, json.Delim(']'))
}

// change is an event of a watch.
type change struct {
	gone    bool
	added   bool
	object  object // nil for a bookmark
	version string
}

// watch calls each with the changes since a version until the server ends it, which is not an error. It calls opened
// when the server begins to answer.
func (a *api) watch(ctx context.Context, version string, last time.Duration, opened func(), each func(change) error) error {
	ctx, cancel := context.WithTimeout(ctx, last+watchGrace)
	defer cancel()
	query := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version},
		"timeoutSeconds": {strconv.Itoa(int(last / time.Second))},
	}
	return a.get(ctx, query, func(body io.Reader) error {
		opened()
		return readWatch(body, a.kind, each)
	})
}

// readWatch reads one event after the other.
func readWatch(body io.Reader, k kind, each func(change) error) error {
	m := &metered{from: body}
	d := json.NewDecoder(m)
	for {
		m.left = maxObject
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := d.Decode(&event); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return eventError(err)
		}
		if event.Type == "ERROR" {
			var s status
			if err := json.Unmarshal(event.Object, &s); err != nil {
				return &eventMistake{err}
			}
			return s.failure("")
		}
		o := k.resource().empty()
		if err := json.Unmarshal(event.Object, o); err != nil {
			return &eventMistake{err}
		}
		c := change{object: o, version: o.about().ResourceVersion, gone: event.Type == "DELETED", added: event.Type == "ADDED"}
		switch event.Type {
		case "BOOKMARK":
			c.object = nil
		case "ADDED", "MODIFIED", "DELETED":
			if o.about().Name == "" {
				return &eventMistake{errors.New("an event has an object without a name")}
			}
			o.trim()
		default:
			continue // from a later version of the API
		}
		if err := each(c); err != nil {
			return err
		}
	}
}

// eventMistake is an event that cannot be read: its change is lost, and only a new list can recover it.
type eventMistake struct{ err error }

func (e *eventMistake) Error() string { return "an event cannot be read: " + e.err.Error() }
func (e *eventMistake) Unwrap() error { return e.err }

// eventError distinguishes an invalid event from a connection that has ended.
func eventError(err error) error {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	if syntax || kind || errors.Is(err, errObject) {
		return &eventMistake{err}
	}
	return &cutError{err}
}

// cutError means that a connection ended during a watch.
type cutError struct{ err error }

func (e *cutError) Error() string { return "the connection ended: " + e.err.Error() }
func (e *cutError) Unwrap() error { return e.err }

// errObject means an object larger than maxObject.
var errObject = fmt.Errorf("an object has more than %d bytes", maxObject)

// metered reads at most left bytes until left is set again.
type metered struct {
	from io.Reader
	left int
}

// Read implements [io.Reader].
func (m *metered) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errObject
	}
	n, err := m.from.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err
}
