package cloud

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"hwsagent/internal/redact"
	"hwsagent/remotewrite/config"
)

// workloadToken is the file with a pod's token if neither the entry nor the environment names one, as in Prometheus.
const workloadToken = "/var/run/secrets/azure/tokens/azure-identity-token" // #nosec G101 -- the name of a file

// azure gets tokens of Microsoft Entra ID by Microsoft's library.
type azure struct{ *config.AzureAD }

// Azure returns the source of an entry's tokens.
func Azure(c *config.AzureAD) Source { return azure{c} }

func (a azure) What() string { return "Azure token" }

// Files returns the files that the entry names. The token of a workload identity is no such file if its name comes
// from the environment of an entry with sdk.
func (a azure) Files() []string {
	switch {
	case a.WorkloadIdentity != nil:
		return []string{a.tokenFile()}
	case a.Certificate != nil && a.Certificate.CertificateKeyPath != "":
		return []string{a.Certificate.CertificatePath, a.Certificate.CertificateKeyPath}
	case a.Certificate != nil:
		return []string{a.Certificate.CertificatePath}
	}
	return nil
}

func (a azure) tokenFile() string {
	return cmp.Or(a.WorkloadIdentity.TokenFilePath, os.Getenv("AZURE_FEDERATED_TOKEN_FILE"), workloadToken)
}

func (a azure) Get(ctx context.Context, client *http.Client) (Access, error) {
	of := azureCloudOf(a.Cloud)
	o := policy.ClientOptions{
		Cloud:     cloud.Configuration{ActiveDirectoryAuthorityHost: of.login},
		Transport: client,
		Retry:     policy.RetryOptions{MaxRetries: -1}, // the caller tries again
	}
	// The library asks a public endpoint of Microsoft whether it knows the host, which a host of one's own need not be.
	own := os.Getenv("AZURE_AUTHORITY_HOST")
	if own != "" {
		o.Cloud.ActiveDirectoryAuthorityHost = strings.TrimRight(own, "/")
	}
	from, err := a.credential(o, own != "")
	if err != nil {
		return Access{}, fmt.Errorf("azuread: %w", err)
	}
	got, err := from.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{cmp.Or(a.Scope, of.scope)}})
	if err != nil {
		return Access{}, fmt.Errorf("azuread: %w", err)
	}
	return bearer(got.Token, got.ExpiresOn), nil
}

// credential returns the library's credential for the way to log in that the entry has.
func (a azure) credential(o policy.ClientOptions, own bool) (azcore.TokenCredential, error) {
	switch {
	case a.ManagedIdentity != nil:
		m := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: o}
		if id := a.ManagedIdentity.ClientID; id != "" {
			m.ID = azidentity.ClientID(id)
		}
		return azidentity.NewManagedIdentityCredential(m)
	case a.WorkloadIdentity != nil:
		w := a.WorkloadIdentity
		token, err := redact.ReadFile(a.tokenFile())
		if err != nil {
			return nil, err
		}
		assertion := func(context.Context) (string, error) { return token, nil }
		return azidentity.NewClientAssertionCredential(w.TenantID, w.ClientID, assertion,
			&azidentity.ClientAssertionCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: own})
	case a.OAuth != nil:
		return azidentity.NewClientSecretCredential(a.OAuth.TenantID, a.OAuth.ClientID, string(a.OAuth.ClientSecret),
			&azidentity.ClientSecretCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: own})
	case a.Certificate != nil:
		return certificate(a.Certificate, o, own)
	}
	s := &azidentity.DefaultAzureCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: own}
	if a.SDK != nil {
		s.TenantID = a.SDK.TenantID
	}
	return azidentity.NewDefaultAzureCredential(s)
}

// certificate returns the credential of an application with a certificate: PEM, or PFX with or without a password.
func certificate(c *config.AzureCertificate, o policy.ClientOptions, own bool) (azcore.TokenCredential, error) {
	text, err := redact.ReadFile(c.CertificatePath)
	if err != nil {
		return nil, err
	}
	if c.CertificateKeyPath != "" {
		key, err := redact.ReadFile(c.CertificateKeyPath)
		if err != nil {
			return nil, err
		}
		text += "\n" + key
	}
	certs, key, err := azidentity.ParseCertificates([]byte(text), []byte(c.CertificatePassword))
	if err != nil {
		return nil, fmt.Errorf("use the certificate and the key of %s: %w", c.CertificatePath, err)
	}
	return azidentity.NewClientCertificateCredential(c.TenantID, c.ClientID, certs, key, &azidentity.ClientCertificateCredentialOptions{
		ClientOptions: o, DisableInstanceDiscovery: own, SendCertificateChain: c.SendCertificateChain,
	})
}

// azureCloud is the login address of an Azure cloud, and the scope of its Azure Monitor, with the two slashes that its
// receivers require.
type azureCloud struct{ login, scope string }

func azureCloudOf(name string) azureCloud {
	switch name {
	case config.AzureGovernment:
		return azureCloud{cloud.AzureGovernment.ActiveDirectoryAuthorityHost, "https://monitor.azure.us//.default"}
	case config.AzureChina:
		return azureCloud{cloud.AzureChina.ActiveDirectoryAuthorityHost, "https://monitor.azure.cn//.default"}
	}
	return azureCloud{cloud.AzurePublic.ActiveDirectoryAuthorityHost, "https://monitor.azure.com//.default"}
}
