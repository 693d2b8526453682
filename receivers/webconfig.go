package receivers

import (
	"errors"
	"fmt"
	"os"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v4"

	"hwsagent/internal/files"
	"hwsagent/internal/loopback"
)

// errOpen means that a file does not restrict access to an address.
var errOpen = errors.New("the address can be reached from other hosts, and the file does not have both TLS and authentication: " +
	"it needs tls_server_config, and basic_auth_users or client_auth_type: RequireAndVerifyClientCert")

// CheckWebConfig checks a file in exporter-toolkit's format for a receiver's address: one that other hosts can reach
// needs TLS, and users or client certificates.
func CheckWebConfig(file, listen string) error {
	if err := files.Check(file); err != nil {
		return fmt.Errorf("read web_config_file: %w", err)
	}
	if err := toolkit.Validate(file); err != nil {
		return fmt.Errorf("read web_config_file %s: %w", file, err)
	}
	if loopback.Address(listen) {
		return nil
	}
	p, err := ReadProtection(file)
	if err != nil {
		return err
	}
	if !p.TLS || !p.Users {
		return fmt.Errorf("read web_config_file %s: %w", file, errOpen)
	}
	return nil
}

// Protection says which protection a file in exporter-toolkit's format requires.
type Protection struct {
	TLS   bool
	Users bool // by password or client certificate
}

// ReadProtection reads the protection from a file.
func ReadProtection(file string) (p Protection, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return p, fmt.Errorf("read web_config_file: %w", err)
	}
	var c struct {
		Users map[string]any `yaml:"basic_auth_users"`
		TLS   *struct {
			ClientAuth string `yaml:"client_auth_type"`
		} `yaml:"tls_server_config"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return p, fmt.Errorf("read web_config_file %s: %w", file, err)
	}
	p.TLS = c.TLS != nil
	p.Users = len(c.Users) > 0 || p.TLS && c.TLS.ClientAuth == "RequireAndVerifyClientCert"
	return p, nil
}
