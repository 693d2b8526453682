package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"hwsagent/remotewrite/config"
)

// azureCloud is the login address of an Azure cloud, and the scope of its Azure Monitor, with the two
// slashes that its receivers require.
type azureCloud struct{ login, scope string }

func azureCloudOf(name string) azureCloud {
	switch name {
	case config.AzureGovernment:
		return azureCloud{"https://login.microsoftonline.us", "https://monitor.azure.us//.default"}
	case config.AzureChina:
		return azureCloud{"https://login.chinacloudapi.cn", "https://monitor.azure.cn//.default"}
	}
	return azureCloud{"https://login.microsoftonline.com", "https://monitor.azure.com//.default"}
}

// workloadToken is the file with a pod's token if the environment names none.
const workloadToken = "/var/run/secrets/azure/tokens/azure-identity-token" // #nosec G101 -- the name of a file

// Azure selects the source of tokens of Microsoft Entra ID.
func Azure(c *config.AzureAD, env Environment, files Files) (Source, error) {
	of := azureCloudOf(c.Cloud)
	if c.Scope != "" {
		of.scope = c.Scope
	}
	if own := env.Get("AZURE_AUTHORITY_HOST"); own != "" {
		if _, ok := endpoint(own); !ok {
			return nil, errors.New("azuread: AZURE_AUTHORITY_HOST is not an https address")
		}
		of.login = strings.TrimRight(own, "/")
	}
	s, err := azureSource(c, of, env, files)
	if err != nil {
		return nil, fmt.Errorf("azuread: %w", err)
	}
	return s, nil
}

func azureSource(c *config.AzureAD, of azureCloud, env Environment, files Files) (Source, error) {
	switch {
	case c.ManagedIdentity != nil:
		return newManaged(c.ManagedIdentity.ClientID, of.scope, env), nil
	case c.WorkloadIdentity != nil:
		w := c.WorkloadIdentity
		file := cmp.Or(w.TokenFilePath, env.Get("AZURE_FEDERATED_TOKEN_FILE"), workloadToken)
		return federated(of, w.TenantID, w.ClientID, file, files)
	case c.OAuth != nil:
		return withSecret(of, c.OAuth.TenantID, c.OAuth.ClientID, string(c.OAuth.ClientSecret)), nil
	case c.Certificate != nil:
		p := c.Certificate
		return withCertificate(of, p.TenantID, p.ClientID, p.CertificatePath, p.CertificateKeyPath, p.SendCertificateChain, files)
	case c.SDK != nil:
		return fromEnvironment(of, c.SDK.TenantID, env, files)
	}
	return nil, errors.New("there is no way to log in")
}

// fromEnvironment selects the credentials named by the environment, in the order of Azure's SDKs.
func fromEnvironment(of azureCloud, tenant string, env Environment, files Files) (Source, error) {
	tenant = cmp.Or(tenant, env.Get("AZURE_TENANT_ID"))
	id := env.Get("AZURE_CLIENT_ID")
	switch {
	case tenant != "" && id != "" && env.Get("AZURE_CLIENT_SECRET") != "":
		return withSecret(of, tenant, id, env.Get("AZURE_CLIENT_SECRET")), nil
	case tenant != "" && id != "" && env.Get("AZURE_CLIENT_CERTIFICATE_PATH") != "":
		return withCertificate(of, tenant, id, env.Get("AZURE_CLIENT_CERTIFICATE_PATH"), "", env.Get("AZURE_CLIENT_SEND_CERTIFICATE_CHAIN") == "true", files)
	case tenant != "" && id != "" && env.Get("AZURE_FEDERATED_TOKEN_FILE") != "":
		return federated(of, tenant, id, env.Get("AZURE_FEDERATED_TOKEN_FILE"), files)
	}
	return newManaged(id, of.scope, env), nil
}

func newAzureForm(of azureCloud, tenant, id string) *tokenForm {
	return &tokenForm{
		what:   "Azure token",
		to:     of.login + "/" + tenant + "/oauth2/v2.0/token",
		values: url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "scope": {of.scope}},
	}
}

func withSecret(of azureCloud, tenant, id, secret string) *tokenForm {
	f := newAzureForm(of, tenant, id)
	f.values.Set("client_secret", secret)
	f.hidden = []string{secret}
	return f
}

// assertionType is the client assertion type of RFC 7523, 2.2.
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

func federated(of azureCloud, tenant, id, file string, files Files) (Source, error) {
	token, err := files.Read(file)
	if err != nil {
		return nil, err
	}
	f := newAzureForm(of, tenant, id)
	f.values.Set("client_assertion_type", assertionType)
	f.values.Set("client_assertion", token)
	f.hidden = []string{token}
	return f, nil
}

func withCertificate(of azureCloud, tenant, id, file, keyFile string, chain bool, files Files) (Source, error) {
	f := newAzureForm(of, tenant, id)
	f.values.Set("client_assertion_type", assertionType)
	signer, err := readCertificate(file, keyFile, files)
	if err != nil {
		return nil, err
	}
	f.assertion = "client_assertion"
	f.sign = func() (string, error) { return signer.azureAssertion(id, f.to, chain) }
	return f, nil
}

// managed is the identity of the virtual machine (instance metadata service), of the app (App Service), or of
// a server outside Azure managed by Azure Arc.
type managed struct {
	address string
	header  string // the name of a header of each request
	value   string
	arc     string // the directory of the answers to Azure Arc's challenges; "" without Azure Arc
}

func newManaged(id, scope string, env Environment) *managed {
	query := url.Values{"resource": {strings.TrimSuffix(scope, "/.default")}} // these endpoints do not support scopes
	if id != "" {
		query.Set("client_id", id)
	}
	m := &managed{header: "Metadata", value: "true"}
	switch endpoint := env.Get("IDENTITY_ENDPOINT"); {
	case endpoint != "" && env.Get("IDENTITY_HEADER") != "":
		m.header, m.value = "X-IDENTITY-HEADER", env.Get("IDENTITY_HEADER")
		query.Set("api-version", "2019-08-01")
		m.address = endpoint + "?" + query.Encode()
	case endpoint != "" && env.Get("IMDS_ENDPOINT") != "":
		m.arc = arcKeys
		query.Del("client_id") // an Azure Arc server has one identity
		query.Set("api-version", "2019-11-01")
		m.address = endpoint + "?" + query.Encode()
	default:
		query.Set("api-version", "2018-02-01")
		m.address = "http://169.254.169.254/metadata/identity/oauth2/token?" + query.Encode()
	}
	return m
}

func (m *managed) What() string { return "Azure token" }

func (m *managed) Secrets() []string {
	if m.header == "Metadata" {
		return nil
	}
	return []string{m.value}
}

func (m *managed) Get(ctx context.Context, net Network) (Access, error) {
	req, err := get(ctx, m.address, m.header, m.value)
	if err != nil {
		return Access{}, err
	}
	if m.arc != "" {
		if err := m.answerChallenge(req, net); err != nil {
			return Access{}, err
		}
	}
	return askBearer(net, req, true)
}

// arcKeys is the directory in which the Azure Arc agent stores the answers to its challenges; maxArcKey bounds
// an answer, in bytes.
const (
	arcKeys   = "/var/opt/azcmagent/tokens"
	maxArcKey = 4096
)

// answerChallenge proves to the Azure Arc agent that this process may read its files: a refusal names a file whose
// contents go into the next request.
func (m *managed) answerChallenge(req *http.Request, net Network) error {
	resp, refused := call(net, req.Clone(req.Context()), true, OAuthWords)
	switch {
	case refused == nil:
		return nil
	case refused.Status != http.StatusUnauthorized:
		return refused
	}
	_, file, ok := strings.Cut(resp.Header.Get("Www-Authenticate"), "realm=")
	file = strings.Trim(file, `"`)
	if !ok || filepath.Dir(file) != m.arc || filepath.Ext(file) != ".key" {
		refused.Text = "the challenge of Azure Arc names no file in " + m.arc
		return refused
	}
	key, err := readArcKey(file)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: add the agent's user to the group himds", err)
	}
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Basic "+key)
	return nil
}

func readArcKey(file string) (string, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxArcKey {
		return "", fmt.Errorf("%s is not a key of Azure Arc", file)
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}
