package scrape

import (
	"log/slog"
	"net/http"
	"os"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"hwsagent/internal/panics"
	"hwsagent/receivers/scrape/kubernetes"
)

// surroundings returns the environment of discovery by Kubernetes.
func surroundings() kubernetes.Surroundings { return kubernetes.Surroundings{Getenv: os.Getenv} }

// newCluster makes the discovery of a kubernetes_sd_configs entry. It calls listed when everything has been listed
// for the first time.
func newCluster(c *kubernetes.Config, m *sdMetrics, guard *panics.Guard, logger *slog.Logger, found func([]*targetgroup.Group), problem func(string), listed func()) *kubernetes.Discovery {
	return kubernetes.New(kubernetes.Options{
		Config: c, Client: newClusterClient, Around: surroundings(), Logger: logger,
		Run:   func(f func()) { _ = guard.Run(f) }, // the guard counts and logs a panic
		Found: found, Problem: problem, Listed: listed,
		Event:  func(role, what string) { m.kubernetesEvents.WithLabelValues(role, what).Inc() },
		Failed: m.kubernetesFailed.Inc,
	})
}

// clusterClient adapts a client to [kubernetes.Client].
type clusterClient struct{ *client }

func newClusterClient(c commonconfig.HTTPClientConfig) (kubernetes.Client, error) {
	made, err := newClient(c, nil, "")
	if err != nil {
		return nil, err
	}
	return clusterClient{made}, nil
}

// Do implements [kubernetes.Client].
func (c clusterClient) Do(req *http.Request) (*http.Response, error) { return c.http.Do(req) } // #nosec G704 -- the address is the configuration's

// Hidden implements [kubernetes.Client].
func (c clusterClient) Hidden(err error, asked string) error { return c.hidden(err, asked) }

// Close implements [kubernetes.Client].
func (c clusterClient) Close() { c.close() }

// checkAccess returns why an API server cannot be queried with the files that an entry names. An agent outside
// a pod is not an error of files.
func checkAccess(c *kubernetes.Config) error {
	if c.KubeConfig == "" && c.APIServer.URL == nil {
		return nil
	}
	a, err := c.Access(surroundings())
	if err != nil {
		return err
	}
	made, err := newClient(a.HTTP, nil, "")
	if err != nil {
		return err
	}
	made.close()
	return nil
}
