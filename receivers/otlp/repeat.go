package otlp

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"

	"hwsagent/receivers"
	"hwsagent/receivers/otlp/translation"
)

// headBytes bounds the memory of resources, and of heads.
const headBytes = 16 << 20

// known finds the series of points by the bytes that senders repeat: a resource by its message, the head of a metric by
// its resource, its scope and what it has beside points, a series by its head and its attributes.
type known struct {
	resources *receivers.Table[resource]
	heads     *receivers.Table[head]
}

func newKnown() *known {
	return &known{resources: receivers.NewTable(headBytes, (*resource).size), heads: receivers.NewTable(headBytes, (*head).size)}
}

// resource is a resource that was translated.
type resource struct {
	id   uint64
	info labels.Labels // of target_info; empty without one
}

// head is a metric that was translated.
type head struct {
	id     uint64
	family string
	meta   metadata.Metadata
}

func (r *resource) size() int { return int(r.info.ByteSize()) } // #nosec G115 -- a request is bounded

func (h *head) size() int { return len(h.family) + len(h.meta.Help) + len(h.meta.Unit) }

// keys makes the keys of the tables. A key is valid until the next one of its kind is made.
type keys struct{ head, point []byte }

func (k *keys) ofHead(r *resource, m *rawMetric) []byte {
	k.head = append(binary.LittleEndian.AppendUint64(k.head[:0], r.id), m.kind)
	for _, part := range [...][]byte{m.scope, m.url, m.name, m.description, m.unit} {
		k.head = protowire.AppendBytes(k.head, part)
	}
	for _, part := range m.more {
		k.head = protowire.AppendBytes(k.head, part)
	}
	return k.head
}

func (k *keys) ofPoint(h *head, attributes []byte) []byte {
	k.point = append(binary.LittleEndian.AppendUint64(k.point[:0], h.id), attributes...)
	return k.point
}

// plain visits requests to see whether they are plain.
type plain struct{}

func (plain) resource([]byte) error   { return nil }
func (plain) metric(*rawMetric) error { return nil }
func (plain) resourceEnds() error     { return nil }

// repeating appends the points of known series.
type repeating struct {
	known *known
	app   *appender
	info  *translation.Info
	now   time.Time
	keys  keys

	of           *resource
	last         *receivers.Known  // the current series of the batch; nil if it is another one
	first, until pcommon.Timestamp // of the points of the resource
}

func (v *repeating) resource(bytes []byte) error {
	of := v.known.resources.Find(bytes, v.now)
	if of == nil {
		return receivers.ErrUnknown
	}
	v.of, v.first, v.until = of, 0, 0
	return nil
}

func (v *repeating) metric(m *rawMetric) error {
	h := v.known.heads.Find(v.keys.ofHead(v.of, m), v.now)
	if h == nil {
		return receivers.ErrUnknown
	}
	return m.each(func(p rawPoint) error { return v.point(h, p) })
}

func (v *repeating) point(h *head, p rawPoint) error {
	b := v.app.b
	s := b.Find(v.keys.ofPoint(h, p.attributes))
	if s == nil {
		return receivers.ErrUnknown
	}
	if s != v.last {
		if err := b.Repeat(s, h.family, h.meta); err != nil {
			return err
		}
		v.last, v.app.last = s, labels.EmptyLabels()
	}
	if err := b.Append(translation.Milliseconds(p.st), translation.Milliseconds(p.t), p.value(), nil, nil); err != nil {
		return err
	}
	v.app.PointEnds()
	if v.first == 0 || p.t < v.first {
		v.first = p.t
	}
	v.until = max(v.until, p.t)
	return nil
}

func (v *repeating) resourceEnds() error {
	if v.first == 0 || v.of.info.IsEmpty() {
		return nil
	}
	v.last = nil
	return v.info.Append(v.of.info, v.first, v.until)
}

// repeat stores a plain request all of whose series are known, and reports whether the request is one. If it is not,
// nothing is stored, and the request must be decoded; learn then has the points of a plain request.
func (v *Receiver) repeat(r *receivers.Request, body []byte) (done bool, learn *learning, refused uint64, why string, err error) {
	if walk(body, plain{}) != nil {
		return false, nil, 0, "", nil
	}
	b := r.Batch()
	defer b.Rollback()
	app := &appender{b: b}
	now := time.Now()
	err = walk(body, &repeating{known: v.known, app: app, info: translation.NewInfo(app), now: now})
	switch {
	case err == nil:
		refused, why, err = verdict(b, app)
		return true, nil, refused, why, err
	case errors.Is(err, errOther):
		b.Abandon()
		return false, nil, 0, "", nil
	case !errors.Is(err, receivers.ErrUnknown):
		return true, nil, 0, "", err
	}
	b.Abandon()
	learn = &learning{receiver: v, now: now}
	if walk(body, learn) != nil {
		return false, nil, 0, "", nil
	}
	return false, learn, 0, "", nil
}

// learning collects the points of a plain request, and stores their series in the tables when the translation has made
// their labels: its points come in the same order.
type learning struct {
	receiver  *Receiver
	now       time.Time
	keys      keys
	resources []learntResource
	heads     []learntHead
	points    []learntPoint
	next      int // of points
}

type learntResource struct {
	*resource

	bytes []byte
	known bool
}

type learntHead struct {
	*head

	key   []byte
	known bool
}

type learntPoint struct {
	head       int // of heads
	attributes []byte
}

func (l *learning) resource(bytes []byte) error {
	r := l.receiver.known.resources.Find(bytes, l.now)
	known := r != nil
	if !known {
		r = &resource{id: l.receiver.ids.Add(1)}
	}
	l.resources = append(l.resources, learntResource{r, bytes, known})
	return nil
}

func (l *learning) metric(m *rawMetric) error {
	key := l.keys.ofHead(l.resources[len(l.resources)-1].resource, m)
	one := learntHead{head: l.receiver.known.heads.Find(key, l.now)}
	if one.known = one.head != nil; !one.known {
		one.head, one.key = &head{id: l.receiver.ids.Add(1)}, slices.Clone(key)
	}
	l.heads = append(l.heads, one)
	return m.each(func(p rawPoint) error {
		l.points = append(l.points, learntPoint{len(l.heads) - 1, p.attributes})
		return nil
	})
}

func (*learning) resourceEnds() error { return nil }

// begin stores the resources of the request, which was decoded to md.
func (l *learning) begin(md pmetric.Metrics) {
	for i, from := range md.ResourceMetrics().All() {
		r := &l.resources[i]
		if r.known {
			continue
		}
		r.info = translation.InfoLabels(l.receiver.settings, from.Resource().Attributes())
		l.receiver.known.resources.Put(r.bytes, *r.resource)
	}
}

// point stores the series of the next point, which is the current one of the batch unless other is set: then the point
// belongs to a series of several points, which is found by other bytes already.
func (l *learning) point(b *receivers.Batch, other bool) {
	p := l.points[l.next]
	l.next++
	if other {
		return
	}
	h := &l.heads[p.head]
	if !h.known {
		h.known = true
		h.family, h.meta = b.Described()
		l.receiver.known.heads.Put(h.key, *h.head)
	}
	b.Learn(l.keys.ofPoint(h.head, p.attributes))
}
