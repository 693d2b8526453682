package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// vmFlag is a flag of vmagent as it was given; at is its place, from 1.
type vmFlag struct {
	name, value string
	at          int
}

// Flags returns an agent.yaml made from the flags of a vmagent, such as -remoteWrite.url=…, and from the file of its
// -promscrape.config, which it gets through read. Notes on flags have the flag's position as line.
func Flags(args []string, read func(file string) ([]byte, error)) (Result, error) {
	c := &converter{file: "flags", format: "vmagent", out: mapping(), account: newAccount(why)}
	flags, err := vmFlags(args)
	if err != nil {
		return Result{}, err
	}
	root := mapping()
	scraped := ""
	for _, f := range flags {
		if f.name == "promscrape.config" {
			scraped = f.value
		}
	}
	c.vmTargets(flags)
	if scraped != "" {
		text, err := read(scraped)
		if err != nil {
			return Result{}, fmt.Errorf("read -promscrape.config: %w", err)
		}
		if root, err = parsed(scraped, text); err != nil {
			return Result{}, err
		}
		c.file = scraped
	}
	c.prometheus(root)
	c.noteRest(root)
	c.file = "flags"
	c.vmLabels(flags)
	return c.result()
}

// vmFlags reads -name=value, --name=value and -name value.
func vmFlags(args []string) (flags []vmFlag, err error) {
	for i := 0; i < len(args); i++ {
		name := strings.TrimLeft(args[i], "-")
		if name == args[i] || name == "" {
			return nil, fmt.Errorf("convert flags: %q is not a flag: write -name=value", args[i])
		}
		f := vmFlag{at: i + 1}
		var given bool
		if f.name, f.value, given = strings.Cut(name, "="); !given {
			f.value = "true"
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				f.value = args[i]
			}
		}
		flags = append(flags, f)
	}
	return flags, nil
}

// vmKeys maps flags of -remoteWrite to their keys in each entry.
func vmKeys() map[string][]string {
	return map[string][]string{
		"basicAuth.username": {"basic_auth", "username"}, "basicAuth.password": {"basic_auth", "password"}, "basicAuth.passwordFile": {"basic_auth", "password_file"},
		"bearerToken": {"bearer_token"}, "bearerTokenFile": {"bearer_token_file"},
		"tlsCAFile": {"tls_config", "ca_file"}, "tlsCertFile": {"tls_config", "cert_file"}, "tlsKeyFile": {"tls_config", "key_file"},
		"tlsServerName": {"tls_config", "server_name"}, "tlsInsecureSkipVerify": {"tls_config", "insecure_skip_verify"},
		"sendTimeout": {"remote_timeout"}, "proxyURL": {"proxy_url"}, "headers": {"headers"}, "maxDiskUsagePerURL": {"hwsagent", "max_backlog"},
		"oauth2.clientID": {"oauth2", "client_id"}, "oauth2.clientSecret": {"oauth2", "client_secret"}, "oauth2.clientSecretFile": {"oauth2", "client_secret_file"},
		"oauth2.tokenUrl": {"oauth2", "token_url"}, "oauth2.scopes": {"oauth2", "scopes"},
	}
}

// vmTargets makes an entry for each -remoteWrite.url. The first value of another flag belongs to the first URL, and so
// on; a single value belongs to all.
func (c *converter) vmTargets(flags []vmFlag) {
	values := map[string][]string{}
	for _, f := range flags {
		values[f.name] = append(values[f.name], vmValues(f.value)...)
	}
	var entries []*yaml.Node
	for _, address := range values["remoteWrite.url"] {
		own := mapping()
		set(own, "url", str(literal(address)))
		entries = append(entries, own)
	}
	for _, f := range flags {
		key, remote := strings.CutPrefix(f.name, "remoteWrite.")
		path := vmKeys()[key]
		switch {
		case f.name == "promscrape.config", key == "url" && remote, key == "label" && remote:
		case !remote || path == nil:
			c.note(&yaml.Node{Line: f.at}, f.name, "%s", whyVM(f.name))
		default:
			c.vmSet(entries, f, path, values[f.name])
		}
	}
	for i, own := range entries {
		c.target(own, nil, at("remoteWrite.url", i))
	}
}

// vmSet sets a key of the entries.
func (c *converter) vmSet(entries []*yaml.Node, f vmFlag, path, values []string) {
	for i, own := range entries {
		value := values[0]
		if len(values) > 1 && i < len(values) {
			value = values[i]
		} else if len(values) > 1 {
			continue
		}
		at := own
		for _, step := range path[:len(path)-1] {
			at = ensure(at, step, mapping)
		}
		switch key := path[len(path)-1]; {
		case value == "":
		case key == "headers":
			for _, h := range strings.Split(value, "^^") {
				name, text, ok := strings.Cut(h, ":")
				if !ok {
					c.note(&yaml.Node{Line: f.at}, f.name, "is not a header: write NAME:VALUE")
					continue
				}
				set(ensure(at, key, mapping), strings.TrimSpace(name), str(literal(strings.TrimSpace(text))))
			}
		case key == "insecure_skip_verify":
			set(at, key, raw(value))
		case key == "max_backlog":
			if value != "0" {
				set(at, key, str(binary(value)))
			}
		case key == "scopes":
			scopes := list()
			for _, scope := range strings.Split(value, ";") {
				scopes.Content = append(scopes.Content, str(scope))
			}
			set(at, key, flow(scopes))
		default:
			set(at, key, str(literal(value)))
		}
	}
}

// binary returns a size of vmagent, for which 1GB has 1000 MB, in units of 1024. A size that it does not know stays as it is.
func binary(size string) string {
	for unit, power := range map[string]float64{"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12} {
		if n, err := strconv.ParseFloat(strings.TrimSuffix(size, unit), 64); err == nil && strings.HasSuffix(size, unit) && n >= 0 && n < 1e6 {
			return strconv.FormatInt(int64(n*power), 10)
		}
	}
	return size
}

// vmLabels converts the labels of -remoteWrite.label=name=value.
func (c *converter) vmLabels(flags []vmFlag) {
	for _, f := range flags {
		if f.name != "remoteWrite.label" {
			continue
		}
		for _, one := range vmValues(f.value) {
			name, value, ok := strings.Cut(one, "=")
			if !ok {
				c.note(&yaml.Node{Line: f.at}, f.name, "is not a label: write NAME=VALUE")
				continue
			}
			set(ensure(ensure(c.out, "global", mapping), "external_labels", mapping), name, str(literal(value)))
		}
	}
}

// vmValues returns the values of a flag, separated by commas outside of quotes.
func vmValues(text string) (values []string) {
	var quote rune
	var b strings.Builder
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && slices.Contains([]rune{'"', '\'', '`'}, r) && b.Len() == 0:
			quote = r
		case quote == 0 && r == ',':
			values = append(values, b.String())
			b.Reset()
		default:
			b.WriteRune(r)
		}
	}
	return append(values, b.String())
}

// whyVM returns a note on a flag without a counterpart.
func whyVM(name string) string {
	switch {
	case name == "remoteWrite.tmpDataPath":
		return "use the flag --storage.path: data waits in that directory"
	case name == "remoteWrite.urlRelabelConfig", name == "remoteWrite.relabelConfig":
		return "write the rules of the file under write_relabel_configs of the entries"
	case name == "httpListenAddr", name == "httpListenAddr.useProxyProtocol":
		return "web.listen has the address of the page, receivers those for data from other programs"
	case strings.HasPrefix(name, "promscrape."):
		return "is set in scrape_configs, or has no counterpart here"
	case strings.HasPrefix(name, "remoteWrite."):
		return "has no counterpart in the entry; see queue_config"
	}
	return "has no counterpart here"
}

// vmJob converts a key of a scrape configuration that only vmagent has; it reports whether it did.
func (c *converter) vmJob(own *yaml.Node, key string, value *yaml.Node) bool {
	switch key {
	case "headers":
		headers := ensure(own, "http_headers", mapping)
		for _, h := range items(value) {
			name, content, _ := strings.Cut(h.Value, ":")
			values := mapping()
			set(values, "values", flow(list(str(c.variables(strings.TrimSpace(content))))))
			set(headers, strings.TrimSpace(name), values)
		}
	case "disable_compression":
		set(own, "enable_compression", raw(strconv.FormatBool(value.Value != "true")))
	default:
		return false
	}
	c.take(value)
	return true
}
