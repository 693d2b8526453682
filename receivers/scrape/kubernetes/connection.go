package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	commonconfig "github.com/prometheus/common/config"

	"hwsagent/internal/files"
)

// Client sends requests to an API server. It is safe for concurrent use.
type Client interface {
	// Do sends a request. The answer ends with the request's context.
	Do(req *http.Request) (*http.Response, error)
	// Hidden returns err for people: without secrets, and of bounded length. asked is the address of the request.
	Hidden(err error, asked string) error
	// Close closes connections that are not in use.
	Close()
}

// serviceAccount is the directory with the credentials of a pod's service account
// (https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/).
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Surroundings describe the environment of the agent.
type Surroundings struct {
	Getenv         func(string) string
	ServiceAccount string // directory; "": Kubernetes' own
}

// Access describes how to reach an API server.
type Access struct {
	Server *url.URL
	HTTP   commonconfig.HTTPClientConfig
}

// Access determines how to reach the API server. It reads the kubeconfig file, but not the files that it names; its
// errors have no secrets.
func (c *Config) Access(s Surroundings) (Access, error) {
	switch {
	case c.KubeConfig != "":
		text, err := files.Read(c.KubeConfig, maxKubeConfig)
		if err != nil {
			return Access{}, err
		}
		a, err := parseKubeConfig(text, filepath.Dir(c.KubeConfig))
		if err != nil {
			return Access{}, fmt.Errorf("read %s: %w", c.KubeConfig, err)
		}
		return a, nil
	case c.APIServer.URL != nil:
		return Access{c.APIServer.URL, c.HTTPClientConfig}, nil
	}
	return s.pod()
}

// pod returns the access from inside a pod.
func (s Surroundings) pod() (Access, error) {
	host, port := s.Getenv("KUBERNETES_SERVICE_HOST"), s.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return Access{}, errors.New("the agent does not run in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; write api_server or kubeconfig_file")
	}
	dir := s.directory()
	a := Access{Server: &url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)}, HTTP: commonconfig.DefaultHTTPClientConfig}
	a.HTTP.ProxyFromEnvironment = true
	a.HTTP.TLSConfig.CAFile = filepath.Join(dir, "ca.crt")
	a.HTTP.Authorization = &commonconfig.Authorization{Type: "Bearer", CredentialsFile: filepath.Join(dir, "token")}
	return a, nil
}

func (s Surroundings) directory() string {
	if s.ServiceAccount != "" {
		return s.ServiceAccount
	}
	return serviceAccount
}

// namespace returns the namespace of the pod that the agent runs in.
func (s Surroundings) namespace() (string, error) {
	text, err := os.ReadFile(filepath.Join(s.directory(), "namespace"))
	if err != nil {
		return "", fmt.Errorf("find the agent's own namespace: %w", err)
	}
	name := strings.TrimSpace(string(text))
	if name == "" {
		return "", fmt.Errorf("find the agent's own namespace: %s is empty", filepath.Join(s.directory(), "namespace"))
	}
	return name, nil
}

// connection is the client of one Discovery. It checks the kubeconfig file before each list, so that a replaced login
// is used. It is safe for concurrent use.
type connection struct {
	config *Config
	around Surroundings
	make   func(commonconfig.HTTPClientConfig) (Client, error)

	mu   sync.Mutex
	text []byte // content of the kubeconfig file
	link *link  // nil until it has been made
}

// link is a client and its server. It is immutable.
type link struct {
	Client
	server *url.URL
}

// get returns the link, a new one if the kubeconfig file has changed.
func (c *connection) get() (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var text []byte
	if c.config.KubeConfig != "" {
		var err error
		if text, err = files.Read(c.config.KubeConfig, maxKubeConfig); err != nil {
			return nil, err
		}
	}
	if c.link != nil && bytes.Equal(text, c.text) {
		return c.link, nil
	}
	a, err := c.config.Access(c.around)
	if err != nil {
		return nil, err
	}
	client, err := c.make(a.HTTP)
	if err != nil {
		return nil, err
	}
	if c.link != nil {
		c.link.Close() // open watches continue
	}
	c.link, c.text = &link{client, a.Server}, text
	return c.link, nil
}

func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != nil {
		c.link.Close()
	}
}
