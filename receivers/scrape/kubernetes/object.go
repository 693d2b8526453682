package kubernetes

import (
	"reflect"
)

// kind is a resource of the API.
type kind uint8

const (
	nodes kind = iota
	pods
	services
	endpointses
	endpointSlices
	ingresses
	namespaces
	replicaSets
	jobs
)

// resource describes a kind in the API's terms.
type resource struct {
	name       string // in addresses and in RBAC rules
	group      string // "" is the core group
	list       string // kind of a list
	namespaced bool
	role       Role // "" if it has none
	empty      func() object
}

// resource returns the resource of a kind (https://kubernetes.io/docs/reference/kubernetes-api/), in version v1 of its
// group.
func (k kind) resource() resource {
	switch k {
	case nodes:
		return resource{"nodes", "", "NodeList", false, RoleNode, func() object { return new(node) }}
	case pods:
		return resource{"pods", "", "PodList", true, RolePod, func() object { return new(pod) }}
	case services:
		return resource{"services", "", "ServiceList", true, RoleService, func() object { return new(service) }}
	case endpointses:
		return resource{"endpoints", "", "EndpointsList", true, RoleEndpoints, func() object { return new(endpoints) }}
	case endpointSlices:
		return resource{"endpointslices", "discovery.k8s.io", "EndpointSliceList", true, RoleEndpointSlice, func() object { return new(endpointSlice) }}
	case ingresses:
		return resource{"ingresses", "networking.k8s.io", "IngressList", true, RoleIngress, func() object { return new(ingress) }}
	case namespaces:
		return resource{"namespaces", "", "NamespaceList", false, "", func() object { return new(namespace) }}
	case replicaSets:
		return resource{"replicasets", "apps", "ReplicaSetList", true, "", func() object { return new(owned) }}
	}
	return resource{"jobs", "batch", "JobList", true, "", func() object { return new(owned) }}
}

func (k kind) role() string { return string(k.resource().role) }

// object is the kept part of an API object. It is immutable once stored.
type object interface {
	about() *meta
	// trim removes the fields that labels and targets do not need.
	trim()
}

// meta holds the fields common to objects of all kinds.
type meta struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	UID             string            `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Labels          map[string]string `json:"labels"`
	Annotations     map[string]string `json:"annotations"`
	Owners          []owner           `json:"ownerReferences"`
}

// owner identifies the owner of an object.
type owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller bool   `json:"controller"`
}

// tidy removes everything from m that labels do not need.
func (m *meta) tidy() {
	m.UID, m.ResourceVersion = "", ""
	m.Owners = m.controller()
}

// controller returns the owner that controls the object, in a list of at most one.
func (m *meta) controller() []owner {
	for _, o := range m.Owners {
		if o.Controller {
			return []owner{o}
		}
	}
	return nil
}

type node struct {
	Meta meta `json:"metadata"`
	Spec struct {
		ProviderID string `json:"providerID"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
		Addresses  []struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		} `json:"addresses"`
		Daemons struct {
			Kubelet struct {
				Port int32 `json:"Port"`
			} `json:"kubeletEndpoint"`
		} `json:"daemonEndpoints"`
	} `json:"status"`
}

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

type pod struct {
	Meta meta `json:"metadata"`
	Spec struct {
		NodeName       string      `json:"nodeName"`
		Containers     []container `json:"containers"`
		InitContainers []container `json:"initContainers"`
	} `json:"spec"`
	Status struct {
		Phase        string            `json:"phase"`
		PodIP        string            `json:"podIP"`
		HostIP       string            `json:"hostIP"`
		Conditions   []condition       `json:"conditions"` // only Ready is kept
		Statuses     []containerStatus `json:"containerStatuses"`
		InitStatuses []containerStatus `json:"initContainerStatuses"`
	} `json:"status"`
}

type container struct {
	Name  string          `json:"name"`
	Image string          `json:"image"`
	Ports []containerPort `json:"ports"`
}

type containerPort struct {
	Name     string `json:"name"`
	Port     uint32 `json:"containerPort"`
	Protocol string `json:"protocol"`
}

type containerStatus struct {
	Name string `json:"name"`
	ID   string `json:"containerID"`
}

type service struct {
	Meta meta `json:"metadata"`
	Spec struct {
		Type           string   `json:"type"`
		ClusterIP      string   `json:"clusterIP"`
		ExternalName   string   `json:"externalName"`
		LoadBalancerIP string   `json:"loadBalancerIP"`
		IPFamilyPolicy string   `json:"ipFamilyPolicy"`
		IPFamilies     []string `json:"ipFamilies"`
		Ports          []struct {
			Name     string `json:"name"`
			Port     uint32 `json:"port"`
			Protocol string `json:"protocol"`
		} `json:"ports"`
	} `json:"spec"`
	Status struct {
		LoadBalancer struct {
			Ingress []struct {
				IP string `json:"ip"`
			} `json:"ingress"`
		} `json:"loadBalancer"`
	} `json:"status"`
}

type endpoints struct {
	Meta    meta     `json:"metadata"`
	Subsets []subset `json:"subsets"`
}

type subset struct {
	Addresses []endpointAddress `json:"addresses"`
	NotReady  []endpointAddress `json:"notReadyAddresses"`
	Ports     []endpointPort    `json:"ports"`
}

type endpointAddress struct {
	IP       string     `json:"ip"`
	Hostname string     `json:"hostname"`
	NodeName *string    `json:"nodeName"`
	Target   *reference `json:"targetRef"`
}

type endpointPort struct {
	Name     string `json:"name"`
	Port     uint32 `json:"port"`
	Protocol string `json:"protocol"`
}

// reference names an object.
type reference struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type endpointSlice struct {
	Meta        meta            `json:"metadata"`
	AddressType string          `json:"addressType"`
	Endpoints   []sliceEndpoint `json:"endpoints"`
	Ports       []slicePort     `json:"ports"`
}

type sliceEndpoint struct {
	Addresses  []string `json:"addresses"`
	Conditions struct {
		Ready       *bool `json:"ready"`
		Serving     *bool `json:"serving"`
		Terminating *bool `json:"terminating"`
	} `json:"conditions"`
	Hostname *string           `json:"hostname"`
	Target   *reference        `json:"targetRef"`
	NodeName *string           `json:"nodeName"`
	Zone     *string           `json:"zone"`
	Topology map[string]string `json:"deprecatedTopology"`
}

type slicePort struct {
	Name        *string `json:"name"`
	Port        *uint32 `json:"port"`
	Protocol    *string `json:"protocol"`
	AppProtocol *string `json:"appProtocol"`
}

type ingress struct {
	Meta meta `json:"metadata"`
	Spec struct {
		Class *string `json:"ingressClassName"`
		TLS   []struct {
			Hosts []string `json:"hosts"`
		} `json:"tls"`
		Rules []struct {
			Host string `json:"host"`
			HTTP *struct {
				Paths []struct {
					Path string `json:"path"`
				} `json:"paths"`
			} `json:"http"`
		} `json:"rules"`
	} `json:"spec"`
}

type namespace struct {
	Meta meta `json:"metadata"`
}

// owned is a ReplicaSet or a Job; only its owner matters.
type owned struct {
	Meta meta `json:"metadata"`
}

func (o *node) about() *meta          { return &o.Meta }
func (o *pod) about() *meta           { return &o.Meta }
func (o *service) about() *meta       { return &o.Meta }
func (o *endpoints) about() *meta     { return &o.Meta }
func (o *endpointSlice) about() *meta { return &o.Meta }
func (o *ingress) about() *meta       { return &o.Meta }
func (o *namespace) about() *meta     { return &o.Meta }
func (o *owned) about() *meta         { return &o.Meta }

func (o *node) trim()          { o.Meta.tidy() }
func (o *service) trim()       { o.Meta.tidy() }
func (o *endpoints) trim()     { o.Meta.tidy() }
func (o *endpointSlice) trim() { o.Meta.tidy() }
func (o *ingress) trim()       { o.Meta.tidy() }
func (o *namespace) trim()     { o.Meta.tidy() }

func (o *pod) trim() {
	uid := o.Meta.UID
	o.Meta.tidy()
	o.Meta.UID = uid
	var ready []condition
	for _, c := range o.Status.Conditions {
		if c.Type == "Ready" {
			ready = append(ready, c)
			break
		}
	}
	o.Status.Conditions = ready
}

func (o *owned) trim() {
	o.Meta.tidy()
	o.Meta.Labels, o.Meta.Annotations = nil, nil
}

// weigh estimates how many bytes an object takes.
func weigh(v reflect.Value) int {
	n := int(v.Type().Size()) // #nosec G115 -- the size of a type
	switch v.Kind() {
	case reflect.String:
		n += v.Len()
	case reflect.Pointer:
		if !v.IsNil() {
			n += weigh(v.Elem())
		}
	case reflect.Struct:
		n = 0
		for i := range v.NumField() {
			n += weigh(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += weigh(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			n += weigh(it.Key()) + weigh(it.Value())
		}
	}
	return n
}
