package scrape

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/miekg/dns"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"hwsagent/internal/panics"
)

// resolvConf names the DNS servers and the search domains for names without a dot (resolv.conf(5)).
const resolvConf = "/etc/resolv.conf"

// Labels that discovery by DNS gives a target, as in Prometheus
// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#dns_sd_config).
const (
	dnsNameLabel = model.MetaLabelPrefix + "dns_name"
	srvTarget    = model.MetaLabelPrefix + "dns_srv_record_target"
	srvPort      = model.MetaLabelPrefix + "dns_srv_record_port"
	mxTarget     = model.MetaLabelPrefix + "dns_mx_record_target"
	nsTarget     = model.MetaLabelPrefix + "dns_ns_record_target"
)

// lookups finds targets by a dns_sd_configs entry.
type lookups struct {
	config  *dnsSettings
	metrics *sdMetrics
	guard   *panics.Guard
}

// refresh looks up all names concurrently. It returns a group for each answered name, including answers
// that the name does not exist, and an error about the others.
func (n *lookups) refresh(ctx context.Context) ([]*targetgroup.Group, error) {
	groups, errs := make([]*targetgroup.Group, len(n.config.Names)), make([]error, len(n.config.Names))
	var all sync.WaitGroup
	for i, name := range n.config.Names {
		all.Go(func() {
			errs[i] = n.guard.Do(func() (err error) {
				groups[i], err = n.group(ctx, name)
				return err
			})
		})
	}
	all.Wait()
	var found []*targetgroup.Group
	for _, g := range groups {
		if g != nil {
			found = append(found, g)
		}
	}
	return found, errors.Join(errs...)
}

// group looks up one name.
func (n *lookups) group(ctx context.Context, name string) (*targetgroup.Group, error) {
	n.metrics.dnsLookups.Inc()
	answer, err := lookUp(ctx, name, dns.StringToType[strings.ToUpper(n.config.Type)])
	if err != nil {
		n.metrics.dnsFailed.Inc()
		return nil, err
	}
	g := &targetgroup.Group{Source: name}
	for _, record := range answer {
		if t := targetOf(record, n.config.Port); t != nil {
			t[dnsNameLabel] = model.LabelValue(name)
			g.Targets = append(g.Targets, t)
		}
	}
	return g, nil
}

// targetOf returns the target of a record, or nil if it has none, such as a CNAME on the way.
func targetOf(record dns.RR, port int) model.LabelSet {
	var host string
	t := model.LabelSet{srvTarget: "", srvPort: "", mxTarget: "", nsTarget: ""}
	switch r := record.(type) {
	case *dns.SRV:
		host, port = r.Target, int(r.Port)
		t[srvTarget], t[srvPort] = model.LabelValue(r.Target), model.LabelValue(strconv.Itoa(port))
	case *dns.MX:
		host, t[mxTarget] = r.Mx, model.LabelValue(r.Mx)
	case *dns.NS:
		host, t[nsTarget] = r.Ns, model.LabelValue(r.Ns)
	case *dns.A:
		host = r.A.String()
	case *dns.AAAA:
		host = r.AAAA.String()
	default:
		return nil
	}
	t[model.AddressLabel] = model.LabelValue(net.JoinHostPort(strings.TrimRight(host, "."), strconv.Itoa(port)))
	return t
}

// lookUp asks for the records of a name, in each search domain of resolv.conf until one has it. If all domains
// answer that they lack it, the result has no records; a missing answer of any domain is an error.
func lookUp(ctx context.Context, name string, kind uint16) ([]dns.RR, error) {
	conf, err := dns.ClientConfigFromFile(resolvConf)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", resolvConf, err)
	}
	var missing error
	for _, full := range conf.NameList(name) {
		answer, err := askServers(ctx, conf, full, kind)
		switch {
		case err != nil:
			missing = err
		case answer.Rcode == dns.RcodeSuccess:
			return answer.Answer, nil
		}
	}
	return nil, missing
}

// askServers asks one server after the other, until one answers that the name exists or that it does
// not.
func askServers(ctx context.Context, conf *dns.ClientConfig, name string, kind uint16) (*dns.Msg, error) {
	errs := []error{fmt.Errorf("look up %s: no server has answered", name)}
	for _, server := range conf.Servers {
		answer, err := askServer(ctx, net.JoinHostPort(server, conf.Port), name, kind)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", server, err))
		case answer.Rcode == dns.RcodeSuccess || answer.Rcode == dns.RcodeNameError:
			return answer, nil
		default:
			errs = append(errs, fmt.Errorf("%s answered %s", server, dns.RcodeToString[answer.Rcode]))
		}
	}
	return nil, errors.Join(errs...)
}

// askServer asks a server over UDP, and over TCP if the answer is truncated.
func askServer(ctx context.Context, server, name string, kind uint16) (*dns.Msg, error) {
	question := new(dns.Msg)
	question.SetQuestion(dns.Fqdn(name), kind)
	question.SetEdns0(dns.DefaultMsgSize, false)
	answer, err := exchange(ctx, "udp", server, question)
	if err != nil || !answer.Truncated {
		return answer, err
	}
	question.Extra = nil
	answer, err = exchange(ctx, "tcp", server, question)
	if err == nil && answer.Truncated {
		return nil, errors.New("the answer does not fit into a message of TCP")
	}
	return answer, err
}

// exchange sends a question. It ends with ctx, or after the library's timeout of two seconds.
func exchange(ctx context.Context, network, server string, question *dns.Msg) (*dns.Msg, error) {
	client := &dns.Client{Net: network}
	conn, err := client.DialContext(ctx, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	answer, _, err := client.ExchangeWithConnContext(ctx, question, conn)
	return answer, err
}
