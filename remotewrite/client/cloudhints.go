package client

import "hwsagent/remotewrite/config"

// cloudTokenHint returns the remedy if an entry's cloud gives no token or keys; "" for an entry without a cloud.
func cloudTokenHint(c *config.Config) string {
	switch a := c.AzureAD; {
	case c.SigV4 != nil && c.SigV4.RoleARN != "":
		return "look at sigv4.role_arn: its trust policy must name the owner of the keys (and external_id), and the owner needs the right sts:AssumeRole"
	case c.SigV4 != nil:
		return "look at where the keys come from: sigv4.access_key, profile, AWS_WEB_IDENTITY_TOKEN_FILE, or the role of this container or EC2 instance (in a container: a hop limit of 2 for its metadata)"
	case a != nil && a.ManagedIdentity != nil:
		return "give this machine a managed identity, and write its client ID into azuread.managed_identity.client_id, or none"
	case a != nil && a.WorkloadIdentity != nil:
		return "look at the federated credential of that identity: issuer, subject and audience must be those of the token in the pod"
	case a != nil:
		return "look at azuread: client_id, tenant_id, secret or certificate, and the environment's AZURE_… variables; files are read again by themselves"
	case c.GoogleIAM != nil && c.GoogleIAM.CredentialsFile != "":
		return "put a valid key of the service account into " + c.GoogleIAM.CredentialsFile + "; no reload is needed"
	case c.GoogleIAM != nil:
		return "write google_iam.credentials_file, or give this machine a service account with the scope monitoring.write"
	}
	return ""
}

// cloudRightHint returns the remedy if the receiver refuses a cloud's token or signature; "" for an entry without a
// cloud.
func cloudRightHint(c *config.Config) string {
	switch {
	case c.SigV4 != nil:
		return "the keys need the right aps:RemoteWrite on this workspace, and sigv4.region and url must be of its region (service_name, if it is not Amazon Managed Prometheus)"
	case c.AzureAD != nil:
		return "give the identity the role Monitoring Metrics Publisher on the data collection rule of url, and wait up to half an hour; azuread.cloud and scope must be the receiver's"
	case c.GoogleIAM != nil:
		return "give the service account the role roles/monitoring.metricWriter in the project that url names"
	}
	return ""
}
