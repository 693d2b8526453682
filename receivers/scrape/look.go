package scrape

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/internal/panics"
	"hwsagent/receivers/scrape/kubernetes"
)

// lookTime bounds one look at the targets of a job.
const lookTime = 15 * time.Second

// Looked is the result of one look at the API servers of a job.
type Looked struct {
	Found   int    // targets before relabelling
	Kept    int    // after relabelling
	Problem string // why not all could be looked up; "" if they could. Without secrets
}

// Lookable returns the names of the jobs that [Jobs.Look] supports: those that query API servers of Kubernetes.
func (j *Jobs) Lookable() (names []string) {
	for _, s := range j.settings() {
		if len(s.Kubernetes) > 0 {
			names = append(names, s.JobName)
		}
	}
	return names
}

// Look queries the API servers of the job of that name once, without scraping. It ends with ctx, at the latest
// after 15 s.
func (j *Jobs) Look(ctx context.Context, name string) Looked {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var all Looked
	for _, s := range j.settings() {
		if s.JobName != name {
			continue
		}
		for _, c := range s.Kubernetes {
			one := s.look(ctx, c)
			all.Found += one.Found
			all.Kept += one.Kept
			if all.Problem == "" {
				all.Problem = one.Problem
			}
		}
	}
	return all
}

// look queries one API server until everything has been listed, or a list fails.
func (s *settings) look(ctx context.Context, c *kubernetes.Config) (found Looked) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // guards the variables below
	groups := map[string]*targetgroup.Group{}
	problem, listed := "", false
	quiet := slog.New(slog.DiscardHandler)
	guard := panics.New("look", quiet)
	k := newCluster(c, newSDMetrics(), guard, quiet, func(all []*targetgroup.Group) {
		mu.Lock()
		defer mu.Unlock()
		for _, g := range all {
			groups[g.Source] = g
		}
	}, func(text string) {
		mu.Lock()
		defer mu.Unlock()
		problem = text
		cancel()
	}, func() {
		mu.Lock()
		defer mu.Unlock()
		listed = true
		cancel()
	})
	if err := guard.Do(func() error { k.Run(ctx); return nil }); err != nil {
		problem = err.Error()
	}
	switch {
	case problem != "":
		return Looked{Problem: problem}
	case !listed:
		return Looked{Problem: fmt.Sprintf("the API server has not listed everything within %v", lookTime)}
	}
	b := labels.NewBuilder(labels.EmptyLabels())
	for g := range maps.Values(groups) {
		for _, own := range g.Targets {
			found.Found++
			if t, err := newTarget(b, s, own, g.Labels); err == nil && t != nil {
				found.Kept++
			}
		}
	}
	return found
}
