// Package kubernetes checks the manifests of deploy/kubernetes against the types of Kubernetes' API. It is a separate
// module, because the agent must not have its dependencies.
package kubernetes
