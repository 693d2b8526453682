package client

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"hwsagent/internal/testnet"
)

// TestMain lets this process trust an authority of the tests as one of the system's, which it reads once: requests for
// tokens have no tls_config.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hwsagent-client-")
	if err == nil {
		file := filepath.Join(dir, "authority.pem")
		err = os.WriteFile(file, []byte(loginAuthority.Pem), 0o600)
		for name, value := range map[string]string{"SSL_CERT_FILE": file, "SSL_CERT_DIR": dir} {
			if err == nil {
				err = os.Setenv(name, value)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// loginAuthority is trusted by this process.
var loginAuthority = testnet.NewAuthority(&testing.T{})
