package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"hwsagent/remotewrite/config"
)

// aws gets the initial keys and, with these, the keys of roles.
type aws struct {
	first   keyGiver
	roles   []role // each is assumed with the keys of the previous one
	region  string
	service string
	sts     string // the address of the security token service
}

// keyGiver gets the initial keys; end is zero if they do not expire.
type keyGiver interface {
	keys(ctx context.Context, net Network) (k Keys, end time.Time, err error)
	secrets() []string
}

// role is a role to assume.
type role struct {
	arn, session, externalID string
	tags                     map[string]string
}

// SigV4 selects the source of the keys, in the order of Amazon's SDKs: the entry; the environment's keys; its
// web identity; the profile; the container; the machine.
func SigV4(c *config.SigV4, env Environment, files Files) (Source, error) {
	p, err := readProfiles(env, files)
	if err != nil {
		return nil, err
	}
	a := &aws{service: "aps", region: c.Region}
	if c.ServiceName != "" {
		a.service = c.ServiceName
	}
	name := c.Profile
	if name == "" {
		name = env.Get("AWS_PROFILE")
	}
	profile, known := p[cmp.Or(name, "default")]
	if name != "" && !known {
		return nil, fmt.Errorf("sigv4: there is no profile %q in %s", name, strings.Join(profileFiles(env), " or "))
	}
	for _, region := range []string{env.Get("AWS_REGION"), env.Get("AWS_DEFAULT_REGION"), profile["region"]} {
		a.region = cmp.Or(a.region, region)
	}
	if a.region == "" {
		return nil, errors.New("sigv4: no region: write region, or give AWS_REGION to the agent")
	}
	a.sts = stsAddress(a.region, c.UseFIPSSTSEndpoint, env)
	switch {
	case c.AccessKey != "":
		a.first = fixedKeys{ID: c.AccessKey, Secret: string(c.SecretKey)}
	case c.Profile == "" && env.Get("AWS_ACCESS_KEY_ID") != "" && env.Get("AWS_SECRET_ACCESS_KEY") != "":
		a.first = environmentKeys(env)
	case c.Profile == "" && env.Get("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		a.first, err = a.webIdentity(env.Get("AWS_WEB_IDENTITY_TOKEN_FILE"), env.Get("AWS_ROLE_ARN"), env.Get("AWS_ROLE_SESSION_NAME"), files)
	default:
		err = a.ofProfile(p, cmp.Or(name, "default"), env, files, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("sigv4: %w", err)
	}
	if c.RoleARN != "" {
		a.roles = append(a.roles, role{c.RoleARN, c.SessionName, c.ExternalID, c.Tags})
	}
	return a, nil
}

// maxProfiles is the longest chain of profiles that name each other as the source of keys.
const maxProfiles = 5

// ofProfile selects the keys of a profile, or else those of the container or the machine.
func (a *aws) ofProfile(all profiles, name string, env Environment, files Files, depth int) (err error) {
	p := all[name]
	defer func() {
		if err != nil && depth == 0 && p != nil {
			err = fmt.Errorf("profile %q: %w", name, err)
		}
	}()
	arn := p["role_arn"]
	switch {
	case depth > maxProfiles:
		return errors.New("its source_profile leads in a circle")
	case arn != "" && p["web_identity_token_file"] != "":
		a.first, err = a.webIdentity(p["web_identity_token_file"], arn, p["role_session_name"], files)
		return err
	case arn != "" && p["source_profile"] == name && p["aws_access_key_id"] != "": // a profile may be its own source
		a.first = p.keys()
	case arn != "" && p["source_profile"] != "":
		if all[p["source_profile"]] == nil {
			return fmt.Errorf("there is no profile %q, which is its source_profile", p["source_profile"])
		}
		err = a.ofProfile(all, p["source_profile"], env, files, depth+1)
	case arn != "":
		err = a.fromSource(p["credential_source"], env, files)
	case p["aws_access_key_id"] != "" && p["aws_secret_access_key"] != "":
		a.first = p.keys()
	case p["credential_process"] != "", p["sso_session"] != "", p["sso_start_url"] != "", p["login_session"] != "":
		return errors.New("credential_process, sso and login are not supported by this build: use keys, a role, web_identity_token_file, or the machine's role")
	default:
		a.first, err = placed(env, files)
	}
	if err == nil && arn != "" {
		a.roles = append(a.roles, role{arn: arn, session: p["role_session_name"], externalID: p["external_id"]})
	}
	return err
}

// fromSource selects the keys named by a profile's credential_source.
func (a *aws) fromSource(source string, env Environment, files Files) (err error) {
	switch source {
	case "Environment":
		if env.Get("AWS_ACCESS_KEY_ID") == "" {
			return errors.New("its credential_source is Environment, and the agent has no AWS_ACCESS_KEY_ID")
		}
		a.first = environmentKeys(env)
	case "Ec2InstanceMetadata":
		a.first, err = newMachine(env)
	case "EcsContainer":
		if a.first, err = newContainer(env, files); a.first == nil && err == nil {
			return errors.New("its credential_source is EcsContainer, and the agent does not run in one")
		}
	default:
		return errors.New("role_arn has neither source_profile nor a credential_source that is known")
	}
	return err
}

// placed returns the source of keys of the agent's container or machine.
func placed(env Environment, files Files) (keyGiver, error) {
	if c, err := newContainer(env, files); c != nil || err != nil {
		return c, err
	}
	return newMachine(env)
}

// profiles are the profiles in the files of the AWS command line, by name.
type profiles map[string]section

type section map[string]string

func (s section) keys() fixedKeys {
	return fixedKeys{ID: s["aws_access_key_id"], Secret: s["aws_secret_access_key"], Session: s["aws_session_token"]}
}

// profileFiles returns the files with profiles: the settings and the keys. The second overrides the first.
func profileFiles(env Environment) (names []string) {
	for _, f := range [2]struct{ variable, name string }{{"AWS_CONFIG_FILE", "config"}, {"AWS_SHARED_CREDENTIALS_FILE", "credentials"}} {
		name := env.Get(f.variable)
		if name == "" && env.Home != "" {
			name = filepath.Join(env.Home, ".aws", f.name)
		}
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// readProfiles reads both files; a missing one is no error.
func readProfiles(env Environment, files Files) (profiles, error) {
	all := profiles{}
	for _, name := range profileFiles(env) {
		text, err := files.Read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all.parse(text)
	}
	return all, nil
}

// parse adds the profiles of a file. In the settings file the word profile precedes each name except default.
func (all profiles) parse(text string) {
	var in section
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(trimmed, "["); ok {
			name, _, _ = strings.Cut(name, "]")
			name = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(name), "profile "))
			if in = all[name]; in == nil {
				in = section{}
				all[name] = in
			}
			continue
		}
		key, value, ok := strings.Cut(trimmed, "=")
		if !ok || in == nil || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";") || line[0] == ' ' || line[0] == '\t' { // indented lines belong to a nested value
			continue
		}
		in[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
}

// stsAddress returns the address for assuming roles: in the region, as in Amazon's SDKs since 2022.
func stsAddress(region string, fips bool, env Environment) string {
	if own := cmp.Or(env.Get("AWS_ENDPOINT_URL_STS"), env.Get("AWS_ENDPOINT_URL")); own != "" {
		return own
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain = "amazonaws.com.cn"
	}
	name := "sts"
	if fips && !strings.HasPrefix(region, "us-gov-") { // all endpoints there are FIPS endpoints
		name = "sts-fips"
	}
	return "https://" + name + "." + region + "." + domain + "/"
}

func (a *aws) What() string { return "AWS keys" }

func (a *aws) Secrets() []string { return a.first.secrets() }

// Get gets the first keys and assumes the roles.
func (a *aws) Get(ctx context.Context, net Network) (Access, error) {
	k, end, err := a.first.keys(ctx, net)
	if err != nil {
		return Access{}, err
	}
	for _, r := range a.roles {
		if k, end, err = a.assume(ctx, net, r, k); err != nil {
			return Access{}, err
		}
	}
	k.Region, k.Service = a.region, a.service
	return Access{Keys: &k, End: end, Secrets: []string{k.Secret, k.Session}}, nil
}

// fixedKeys are keys from a configuration, the environment or a file.
type fixedKeys Keys

func environmentKeys(env Environment) fixedKeys {
	return fixedKeys{ID: env.Get("AWS_ACCESS_KEY_ID"), Secret: env.Get("AWS_SECRET_ACCESS_KEY"), Session: env.Get("AWS_SESSION_TOKEN")}
}

func (f fixedKeys) keys(context.Context, Network) (Keys, time.Time, error) {
	return Keys(f), time.Time{}, nil
}

func (f fixedKeys) secrets() []string { return []string{f.Secret, f.Session} }

// endpoint parses an address that gets secrets. ok is false unless it is https, or http to a nearby host.
func endpoint(address string) (u *url.URL, ok bool) {
	u, err := url.Parse(address)
	return u, err == nil && (u.Scheme == "https" || u.Scheme == "http" && nearby(u))
}

// nearby reports whether a host is this machine or its cloud's container endpoint, for which plain HTTP is allowed
// (Amazon's SDKs: container credentials).
func nearby(u *url.URL) bool {
	if u.Hostname() == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return false
	}
	ip = ip.Unmap()
	return ip.IsLoopback() || ip == netip.AddrFrom4([4]byte{169, 254, 170, 2}) || // ECS
		ip == netip.AddrFrom4([4]byte{169, 254, 170, 23}) || ip == netip.MustParseAddr("fd00:ec2::23") // EKS
}
