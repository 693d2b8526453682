package kubernetes

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	commonconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v4"
)

// maxKubeConfig bounds a kubeconfig file in bytes.
const maxKubeConfig = 4 << 20

// kubeConfig is the part of a kubeconfig file that concerns the connection
// (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/).
type kubeConfig struct {
	Current  string `yaml:"current-context"`
	Contexts []struct {
		Name    string `yaml:"name"`
		Context struct {
			Cluster string `yaml:"cluster"`
			User    string `yaml:"user"`
		} `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []struct {
		Name    string      `yaml:"name"`
		Cluster kubeCluster `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string   `yaml:"name"`
		User kubeUser `yaml:"user"`
	} `yaml:"users"`
}

type kubeCluster struct {
	Server     string `yaml:"server"`
	CAFile     string `yaml:"certificate-authority"`
	CA         string `yaml:"certificate-authority-data"` // in base64, like all keys ending in -data
	Insecure   bool   `yaml:"insecure-skip-tls-verify"`
	ServerName string `yaml:"tls-server-name"`
	Proxy      string `yaml:"proxy-url"`
}

type kubeUser struct {
	CertFile  string              `yaml:"client-certificate"`
	Cert      string              `yaml:"client-certificate-data"`
	KeyFile   string              `yaml:"client-key"`
	Key       string              `yaml:"client-key-data"`
	Token     string              `yaml:"token"`
	TokenFile string              `yaml:"tokenFile"`
	Name      string              `yaml:"username"`
	Password  string              `yaml:"password"`
	As        string              `yaml:"as"`
	AsUID     string              `yaml:"as-uid"`
	AsGroups  []string            `yaml:"as-groups"`
	AsExtra   map[string][]string `yaml:"as-user-extra"`
	Exec      any                 `yaml:"exec"`
	Provider  any                 `yaml:"auth-provider"`
}

// parseKubeConfig returns the access of the current context. Relative paths are relative to dir. Its errors name keys
// and entries, and repeat no value that may be secret.
func parseKubeConfig(text []byte, dir string) (Access, error) {
	var all kubeConfig
	in, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return Access{}, fmt.Errorf("read the kubeconfig file: %w", err)
	}
	if err := in.Load(&all); err != nil && !errors.Is(err, io.EOF) {
		return Access{}, errors.New("it is not a kubeconfig file: " + lineOf(err))
	}
	if all.Current == "" {
		return Access{}, errors.New("it has no current-context; write the name of one of its contexts there")
	}
	cluster, user, err := all.context()
	if err != nil {
		return Access{}, err
	}
	a := Access{HTTP: commonconfig.DefaultHTTPClientConfig}
	if a.Server, err = cluster.address(); err != nil {
		return Access{}, err
	}
	if err := cluster.apply(&a.HTTP, dir); err != nil {
		return Access{}, err
	}
	if err := user.apply(&a.HTTP, dir); err != nil {
		return Access{}, fmt.Errorf("the user of context %q: %w", all.Current, err)
	}
	if err := errors.Join(a.HTTP.Validate(), a.HTTP.TLSConfig.Validate()); err != nil {
		return Access{}, fmt.Errorf("the user of context %q: %w", all.Current, err)
	}
	return a, nil
}

// lineOf returns the place of a mistake without its text.
func lineOf(err error) string {
	var many *yaml.LoadErrors
	var one *yaml.LoadError
	if errors.As(err, &many) && len(many.Errors) > 0 {
		one = many.Errors[0]
	}
	if (one != nil || errors.As(err, &one)) && one.Mark.Line > 0 {
		return fmt.Sprintf("line %d is wrong", one.Mark.Line)
	}
	return "it is not YAML"
}

// context returns cluster and user of the current context.
func (k *kubeConfig) context() (*kubeCluster, *kubeUser, error) {
	for _, c := range k.Contexts {
		if c.Name != k.Current {
			continue
		}
		cluster, user := (*kubeCluster)(nil), &kubeUser{}
		for i := range k.Clusters {
			if k.Clusters[i].Name == c.Context.Cluster {
				cluster = &k.Clusters[i].Cluster
			}
		}
		if cluster == nil {
			return nil, nil, fmt.Errorf("context %q names cluster %q, which is not among clusters", c.Name, c.Context.Cluster)
		}
		found := c.Context.User == ""
		for i := range k.Users {
			if k.Users[i].Name == c.Context.User {
				user, found = &k.Users[i].User, true
			}
		}
		if !found {
			return nil, nil, fmt.Errorf("context %q names user %q, which is not among users", c.Name, c.Context.User)
		}
		return cluster, user, nil
	}
	return nil, nil, fmt.Errorf("current-context is %q, which is not among contexts", k.Current)
}

// address returns the server's address. Without a scheme it is HTTPS if the cluster configures TLS.
func (c *kubeCluster) address() (*url.URL, error) {
	server := c.Server
	if server == "" {
		return nil, errors.New("the cluster has no server")
	}
	if !strings.Contains(server, "://") {
		scheme := "http://"
		if c.CA != "" || c.CAFile != "" || c.Insecure {
			scheme = "https://"
		}
		server = scheme + server
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the cluster's server is not an address such as https://host:6443")
	}
	return u, nil
}

func (c *kubeCluster) apply(h *commonconfig.HTTPClientConfig, dir string) error {
	h.TLSConfig.InsecureSkipVerify, h.TLSConfig.ServerName = c.Insecure, c.ServerName
	h.ProxyFromEnvironment = c.Proxy == ""
	if c.Proxy != "" {
		u, err := url.Parse(c.Proxy)
		if err != nil {
			return errors.New("the cluster's proxy-url is not an address")
		}
		h.ProxyURL = commonconfig.URL{URL: u}
	}
	var err error
	h.TLSConfig.CA, h.TLSConfig.CAFile, err = either("certificate-authority", c.CA, c.CAFile, dir)
	return err
}

func (u *kubeUser) apply(h *commonconfig.HTTPClientConfig, dir string) error {
	if u.Exec != nil {
		return errors.New("it logs in by a program (exec), which the agent does not run: write a token, tokenFile or client certificate there, such as that of a service account")
	}
	if u.Provider != nil {
		return errors.New("it logs in by an auth-provider, which the agent does not have: write a token, tokenFile or client certificate there, such as that of a service account")
	}
	t := &h.TLSConfig
	var err error
	if t.Cert, t.CertFile, err = either("client-certificate", u.Cert, u.CertFile, dir); err != nil {
		return err
	}
	key, keyFile, err := either("client-key", u.Key, u.KeyFile, dir)
	if err != nil {
		return err
	}
	t.Key, t.KeyFile = commonconfig.Secret(key), keyFile
	switch {
	case u.TokenFile != "": // the file is read again when it changes
		h.Authorization = &commonconfig.Authorization{Type: "Bearer", CredentialsFile: commonconfig.JoinDir(dir, u.TokenFile)}
	case u.Token != "":
		h.Authorization = &commonconfig.Authorization{Type: "Bearer", Credentials: commonconfig.Secret(u.Token)}
	case u.Name != "":
		h.BasicAuth = &commonconfig.BasicAuth{Username: u.Name, Password: commonconfig.Secret(u.Password)}
	}
	u.impersonate(h)
	return nil
}

// impersonate sets the user on whose behalf requests are made
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation).
func (u *kubeUser) impersonate(h *commonconfig.HTTPClientConfig) {
	headers := map[string]commonconfig.Header{}
	set := func(name string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			headers[name] = commonconfig.Header{Values: values}
		}
	}
	set("Impersonate-User", u.As)
	set("Impersonate-Uid", u.AsUID)
	set("Impersonate-Group", u.AsGroups...)
	for key, values := range u.AsExtra {
		set("Impersonate-Extra-"+url.PathEscape(key), values...)
	}
	if len(headers) > 0 {
		h.HTTPHeaders = &commonconfig.Headers{Headers: headers}
	}
}

// either returns the text of a value in base64, or else the path of a file.
func either(name, data, file, dir string) (text, path string, err error) {
	if data != "" {
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(data))
		if err != nil {
			return "", "", fmt.Errorf("%s-data is not in base64", name)
		}
		return string(decoded), "", nil
	}
	if file == "" {
		return "", "", nil
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	return "", file, nil
}
