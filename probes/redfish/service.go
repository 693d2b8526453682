package redfish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"hwsagent/probes/devices"
)

const (
	maxCached    = 4 << 20  // bytes of resources kept between rounds
	maxRoundSize = 64 << 20 // bytes of answers of a round
	maxSlow      = 3        // late answers after which a round ends
	// maxAge is how old a remembered reading may become: less than the five minutes for which Prometheus looks back.
	maxAge = 3 * time.Minute

	// expansion requests a collection with its members (DSP0266, "Query parameters for expand"): subordinate resources,
	// one level.
	expansion    = "?$expand=.($levels=1)"
	expansionAll = "?$expand=*($levels=1)"
)

// service is a source that reads resources by HTTP and remembers those that seldom change.
type service struct {
	config *Config
	client *client
	login  *login
	now    func() time.Time

	mu       sync.Mutex
	cache    map[string]*kept
	size     int // bytes of the cache's bodies
	round    int
	oldest   int    // resources from before this round are read again
	expand   string // the query that expands; "" if the service cannot
	plain    map[string]bool
	requests int  // requests of this round
	bytes    int  // bytes of this round
	slow     int  // missing answers in this round
	answered bool // in this round the service accepted the credentials
}

// kept is a resource that seldom changes, in the service's own form.
type kept struct {
	body  []byte
	gone  bool // the service has no such resource
	moves bool // it has readings that change
	etag  string
	at    time.Time
	read  int // round in which it was read
	round int // round in which it was last needed
}

func newService(c *Config, pace *devices.Pace, now func() time.Time) (*service, error) {
	cl, err := newClient(c, pace)
	if err != nil {
		return nil, err
	}
	return &service{config: c, client: cl, now: now, cache: make(map[string]*kept), plain: make(map[string]bool),
		login: &login{config: c, client: cl, now: now, denied: make(map[string]bool)}}, nil
}

// reconnect reads the files of tls_config again. No request may be in flight.
func (s *service) reconnect() error {
	c, err := newClient(s.config, s.client.pace)
	if err != nil {
		return err
	}
	s.client.close()
	s.client, s.login.client = c, c
	return nil
}

// begin begins a round.
func (s *service) begin() {
	s.login.begin()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
	s.requests, s.bytes, s.slow, s.answered = 0, 0, 0, false
	for path, k := range s.cache {
		if k.round < s.round-1 { // nothing links to it any more
			s.size -= len(k.body)
			delete(s.cache, path)
		}
	}
}

// stale implements source.
func (s *service) stale() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest = s.round
}

// read implements source.
func (s *service) read(ctx context.Context, w want) (object, error) {
	old := s.remembered(w.path)
	if old != nil && s.young(old) {
		if old.gone {
			return nil, nil
		}
		return parse(old.body)
	}
	if old != nil && old.gone {
		old = nil
	}
	if query := s.expansion(w); query != "" {
		o, err := s.get(ctx, w, w.path+query, old)
		var status *statusError
		switch {
		case errors.As(err, &status), errors.Is(err, errLarge), o == nil && err == nil:
			o, err = s.get(ctx, w, w.path, nil)
			if err == nil && o != nil { // the query was the cause
				s.mu.Lock()
				s.plain[w.path] = true
				if status != nil && (status.code == http.StatusBadRequest || status.code == http.StatusNotImplemented) {
					s.expand = ""
				}
				s.mu.Unlock()
			}
		}
		return o, err
	}
	o, err := s.get(ctx, w, w.path, old)
	if w.path == rootPath && err == nil {
		s.features(o)
	}
	return o, err
}

// features records which queries the service supports.
func (s *service) features(root object) {
	e := root.sub("ProtocolFeaturesSupported.ExpandQuery")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expand = ""
	if yes, _ := e["NoLinks"].(bool); yes {
		s.expand = expansion
	} else if all, _ := e["ExpandAll"].(bool); all {
		s.expand = expansionAll
	}
}

func (s *service) expansion(w want) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.many || w.page > 0 || s.plain[w.path] || strings.Contains(w.path, "?") {
		return ""
	}
	return s.expand
}

func (s *service) remembered(path string) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.cache[path]
	if k != nil {
		k.round = s.round
	}
	return k
}

func (s *service) young(k *kept) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.config.inventoryInterval()
	if k.moves {
		limit = min(limit, maxAge)
	}
	return s.now().Sub(k.at) < limit && k.read >= s.oldest
}

// at implements source.
func (s *service) at(path string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.cache[path]; k != nil && k.read < s.round {
		return k.at.UnixMilli()
	}
	return 0
}

// statusError is an answer other than the resource or "not found".
type statusError struct {
	code  int
	words string
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("status %d", e.code)
	if e.words != "" {
		text += " (" + e.words + ")"
	}
	if e.code == http.StatusForbidden {
		text += ": this account may not read it"
	}
	return text
}

// get requests a resource; nil if there is none.
func (s *service) get(ctx context.Context, w want, path string, old *kept) (object, error) {
	r, err := s.authorized(ctx, path, old)
	if err != nil {
		return nil, s.count(err)
	}
	s.mu.Lock()
	s.answered = true
	s.bytes += len(r.body)
	over := s.bytes > maxRoundSize
	s.mu.Unlock()
	switch {
	case over:
		return nil, &fatalError{fmt.Errorf("the answers of this round are larger than %d MiB", maxRoundSize>>20), devices.Protocol}
	case r.status == http.StatusNotModified && old != nil:
		s.keep(w.path, &kept{body: old.body, etag: old.etag, moves: old.moves})
		return parse(old.body)
	case r.status == http.StatusNotFound, r.status == http.StatusGone, r.status == http.StatusMethodNotAllowed:
		if path == w.path && path != rootPath { // and not a query that the service lacks
			s.keep(w.path, &kept{gone: true})
		}
		return nil, nil
	case r.status != http.StatusOK:
		return nil, &statusError{r.status, strings.TrimSpace(said(r.body) + redirected(r))}
	}
	o, err := parse(r.body)
	if err != nil {
		return nil, fmt.Errorf("read the JSON: %w", err)
	}
	if roles[w.role].seldom || bare(o) {
		var compact bytes.Buffer
		if err := json.Compact(&compact, r.body); err == nil {
			s.keep(w.path, &kept{body: bytes.Clone(compact.Bytes()), etag: r.header.Get("ETag"), moves: moves(w.role, o)})
		}
	}
	return o, nil
}

// bare reports whether an object is a collection with links only.
func bare(o object) bool {
	members, ok := o["Members"].([]any)
	for _, v := range members {
		if m, isObject := v.(map[string]any); !isObject || whole(m) {
			return false
		}
	}
	return ok
}

// authorized sends a GET with credentials, and once more after a session ended.
func (s *service) authorized(ctx context.Context, path string, old *kept) (*reply, error) {
	if path == rootPath {
		path += "/"
	}
	for {
		s.mu.Lock()
		s.requests++
		over := s.requests > s.config.maxRequests()
		s.mu.Unlock()
		if over {
			return nil, &fatalError{fmt.Errorf("more than %d requests in this round; max_requests allows more", s.config.maxRequests()), ""}
		}
		set, number, err := s.login.credentials(ctx)
		if err != nil {
			return nil, err
		}
		r, err := s.client.send(ctx, http.MethodGet, path, nil, func(h http.Header) {
			set(h)
			if old != nil && old.etag != "" {
				h.Set("If-None-Match", old.etag)
			}
		})
		switch {
		case err != nil:
			return nil, err
		case r.status != http.StatusUnauthorized:
			if path != rootPath+"/" { // the root needs none, so it says nothing about them
				s.login.works(number)
			}
			return r, nil
		}
		if err := s.login.rejected(ctx, number, path, r); err != nil {
			return nil, err
		}
	}
}

// count makes an error fatal once too many answers are missing.
func (s *service) count(err error) error {
	var slow *slowError
	if !errors.As(err, &slow) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slow++; s.slow >= maxSlow {
		return &fatalError{fmt.Errorf("%d requests of this round had %w", s.slow, slow), devices.NoAnswer}
	}
	return err
}

// keep stores a resource, while there is room.
func (s *service) keep(path string, k *kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.cache[path]; old != nil {
		s.size -= len(old.body)
		delete(s.cache, path)
	}
	if s.size+len(k.body) > maxCached {
		return
	}
	k.at, k.read, k.round = s.now(), s.round, s.round
	s.cache[path] = k
	s.size += len(k.body)
}

// cost returns the cost of the round so far, and whether the service has answered in it.
func (s *service) cost() (requests, bytes int, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.bytes, s.answered
}
