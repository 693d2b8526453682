package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"

	remoteconfig "hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
)

// NamedFile is a file that the configuration names.
type NamedFile struct {
	Path   string
	Owner  string // the part of the configuration that names it, for people
	Secret bool   // other users must not be able to read it
}

// Read returns the first 256KiB of the file, and one byte more if it is larger. No token or certificate is.
func (f NamedFile) Read() ([]byte, error) { return readSmallFile(f.Path) }

// NamedFiles lists the files that the configuration names, each file once.
func (c *Config) NamedFiles() []NamedFile {
	var all []NamedFile
	add := func(path, owner string, secret bool) {
		if path != "" && !slices.ContainsFunc(all, func(f NamedFile) bool { return f.Path == path }) {
			all = append(all, NamedFile{path, owner, secret})
		}
	}
	for _, t := range c.RemoteWrite {
		public := []string{t.HTTP.TLSConfig.CAFile, t.HTTP.TLSConfig.CertFile}
		if o := t.HTTP.OAuth2; o != nil {
			public = append(public, o.TLSConfig.CAFile, o.TLSConfig.CertFile)
		}
		for _, f := range t.CredentialFiles() {
			add(f, "target "+t.TargetName(), !slices.Contains(public, f))
		}
	}
	for _, l := range c.Receivers.Listeners() {
		add(l.WebConfigFile, "receiver "+l.Name, true)
	}
	for _, t := range c.RemoteWrite {
		for _, id := range tokensOf(t) {
			add(t.ForTenant(id).CredentialFiles()[0], "target "+queue.Member(t.TargetName(), id), true)
		}
	}
	if c.scrape != nil {
		for _, f := range c.scrape.Files() {
			add(f.Path, f.Owner, f.Secret)
		}
	}
	for i := range c.Probes {
		p := &c.Probes[i]
		if p.Enabled && p.Type != "canary" { // the probe creates its journal by itself
			eachFile(reflect.ValueOf(p.Settings), func(key string, path *string) {
				add(*path, "probe "+p.Name, key != "ca_file" && key != "cert_file") // certificates are public
			})
		}
	}
	return all
}

// tokensOf returns the tenants with a token in the entry's directory, and the default tenant even without one.
func tokensOf(t *remoteconfig.Config) []string {
	c := t.Target.Tenant
	if c == nil || c.CredentialsDir == "" {
		return nil
	}
	var ids []string
	if c.Default != "" {
		ids = append(ids, c.Default)
	}
	entries, _ := os.ReadDir(c.CredentialsDir) // an error is reported for the directory
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(c.CredentialsDir, e.Name())); err == nil && info.Mode().IsRegular() && remoteconfig.CheckTenant(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	return ids
}
