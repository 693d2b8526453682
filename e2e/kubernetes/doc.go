// Package kubernetes holds the manifests of deploy/kubernetes to the types of Kubernetes' API. It is a
// module of its own: what it needs is nothing that the agent may need.
package kubernetes
