package snmptool

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"

	"hwsagent/probes/snmp"
)

// Login parses a login in the syntax of the configuration: {community_file: FILE}, {version: 3, …}. An empty text is the login of
// a probe without auth: version 2 with the community public.
func Login(text string) (snmp.Auth, error) {
	var a snmp.Auth
	if strings.TrimSpace(text) == "" {
		return a, nil
	}
	if err := yaml.Load([]byte(text), &a, yaml.WithKnownFields()); err != nil {
		return a, fmt.Errorf("read the login: it is written as under auth: of a probe, such as '{community_file: FILE}' or '{version: 3, username: NAME, password_file: FILE}'") // the cause would repeat secrets
	}
	return a, nil
}

// config returns the configuration to read one device; a packet is sent at most retries+1 times.
func config(target string, auth snmp.Auth, timeout time.Duration, retries int) snmp.Config {
	return snmp.Config{Target: target, Auth: auth, PacketTimeout: model.Duration(timeout), Retries: new(retries)}
}
