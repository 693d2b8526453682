// Package kubernetes finds scrape targets by the API of a Kubernetes cluster, as kubernetes_sd_configs
// of Prometheus do (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#kubernetes_sd_config),
// with net/http alone.
//
// Data goes one way. A reflector per resource and namespace lists the resource and watches it from
// there (api.go, reflector.go). A [Discovery] puts what reflectors bring into a store of the few
// fields that labels are made of (object.go, store.go), and makes groups of targets of the objects
// that have changed, or that were made with the help of one that has (node.go, pod.go, service.go,
// endpoints.go, endpointslice.go, ingress.go). A group is a pure function of the store.
//
// The protocol is that of https://kubernetes.io/docs/reference/using-api/api-concepts/: lists in
// pages, watches from a resourceVersion with bookmarks, and a new list where the server has forgotten
// that version (410 Gone). Everything has a bound: the time of a request, the bytes of an object, and
// the number and the text of the objects that are kept.
package kubernetes
