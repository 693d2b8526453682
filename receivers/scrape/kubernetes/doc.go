// Package kubernetes finds scrape targets through the API of a Kubernetes cluster, as kubernetes_sd_configs of
// Prometheus do (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#kubernetes_sd_config), with
// net/http alone.
//
// Data goes one way. A reflector per resource and namespace lists the resource and watches it from there (api.go,
// reflector.go). A [Discovery] puts the objects from reflectors into a store, with only the few fields that labels need
// (object.go, store.go), and rebuilds the groups of targets of objects that have changed or that depend on a changed
// one (node.go, pod.go, service.go, endpoints.go, endpointslice.go, ingress.go). A group is a pure function of the
// store.
//
// The protocol is that of https://kubernetes.io/docs/reference/using-api/api-concepts/: lists in pages, watches from a
// resourceVersion with bookmarks, and a new list if the server no longer has that version (410 Gone). Everything has a
// bound: the time of a request, the bytes of an object, and the number and the text of the objects that are kept.
package kubernetes
