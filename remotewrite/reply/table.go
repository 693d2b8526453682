package reply

// The sources of the rows. If a file has changed, the table has the texts of all versions found.
const (
	promStorage   = "prometheus/prometheus storage/interface.go, storage/errors.go"
	promHandler   = "prometheus/prometheus storage/remote/write_handler.go"
	promHistogram = "prometheus/prometheus model/histogram/generic.go"
	promHead      = "prometheus/prometheus tsdb/head_append.go"
	promClient    = "prometheus/client_golang exp/api/remote/remote_api.go"
	mimirValid    = "grafana/mimir pkg/distributor/validate.go"
	mimirPush     = "grafana/mimir pkg/distributor/errors.go"
	cortexValid   = "cortexproject/cortex pkg/util/validation/errors.go"
	cortexIngest  = "cortexproject/cortex pkg/ingester/ingester.go"
	cortexLimiter = "cortexproject/cortex pkg/ingester/limiter.go"
	thanosHandler = "thanos-io/thanos pkg/receive/handler.go"
	thanosErrors  = "thanos-io/thanos pkg/receive/writer_errors.go"
	vmReader      = "VictoriaMetrics/VictoriaMetrics lib/protoparser/protoparserutil/compress_reader.go"
	vmServer      = "VictoriaMetrics/VictoriaMetrics lib/httpserver/httpserver.go, up to 1.9x"
	otelReceiver  = "open-telemetry/opentelemetry-collector-contrib receiver/prometheusremotewritereceiver/receiver.go"
	googleOrder   = "https://github.com/GoogleCloudPlatform/prometheus-engine/issues/851"
	googleLabels  = "https://github.com/GoogleCloudPlatform/prometheus-engine/issues/493"
	influxIssue   = "https://github.com/AdysTech/InfluxDB.Client.Net/issues/31"
	influxLimit   = "https://github.com/sdr-enthusiasts/docker-readsb-protobuf/issues/66"
	dskitRing     = "grafana/dskit ring/ring.go, ring/replication_strategy.go"
	m3Write       = "m3db/m3 src/query/api/v1/handler/prometheus/remote/write.go, src/aggregator/aggregator/entry.go"
)

// wrappers are prefixes that a receiver writes before its own words, as in a row. No wrapper contains a label.
var wrappers = []struct {
	words  string
	list   bool // several texts follow
	source string
}{
	{"user=#: ", false, "grafana/mimir pkg/ingester/errors.go"},
	{"err: ", false, cortexIngest},
	{"send data to ingesters: ", false, "https://github.com/grafana/mimir/issues/10829"},
	{"failed pushing to ingester: ", false, "https://gitlab.com/gitlab-com/gl-infra/scalability/-/issues/2779"},
	{"failed pushing to ingester #: ", false, mimirPush},
	{"failed pushing to partition #: ", false, mimirPush},
	{"rpc error: code = Code(#) desc = ", false, "https://github.com/grafana/helm-charts/issues/1320"},
	{"rpc error: code = # desc = ", false, "https://github.com/thanos-io/thanos/issues/3913"},
	{"store locally for endpoint #: ", false, "https://github.com/thanos-io/thanos/issues/3913"},
	{"forwarding request to endpoint addr: #, capnp_addr: #, az: : ", false, thanosHandler},
	{"forwarding request to endpoint addr: #, capnp_addr: #, az: #: ", false, thanosHandler},
	{"forwarding request to endpoint #: ", false, thanosHandler},
	{"writing locally: ", false, thanosHandler},
	{"add # samples: ", false, thanosErrors},
	{"add # series: ", false, thanosErrors},
	{"# errors: ", true, thanosHandler},
	{"remoteAddr: \"#\"; requestURI: #; ", false, vmServer},
	{"remoteAddr: \"#, X-Forwarded-For: #\"; requestURI: #; ", false, vmServer},
	{"One or more TimeSeries could not be written: ", false, googleOrder},
	{`{"error":"partial write: `, false, influxIssue},
	{`{"status":"error","error":"bad_request_errors: count=#, last=`, false, m3Write},
}

// table are the texts of receivers, by their beginning. Thanos, Cortex and Mimir before its catalogue repeat those of
// Prometheus; Amazon Managed Prometheus uses Cortex's texts, Grafana Cloud uses Mimir's. A row stands before those that begin
// like it.
var table = []struct {
	words  string // see match
	reason Reason
	source string // repository and file, or the page
}{
	{"out of order sample", OutOfOrder, promStorage},
	{"duplicate sample for timestamp", DuplicateTimestamp, promStorage},
	{"out of bounds: timestamp is too far in the future", TooFarInFuture, promHandler},
	{"out of bounds", OutsideWindow, promStorage}, // Thanos also means: in the future
	{"too old sample", OutsideWindow, promStorage},
	{"native histograms are disabled", HistogramsDisabled, promStorage},
	{"invalid metric name or labels, got ", InvalidLabels, promHandler},
	{"invalid labels for series, labels ", InvalidLabels, promHandler},
	{"parsing labels for series ", InvalidLabels, promHandler},
	{"label name \"", InvalidLabels, promHead},
	{"empty labelset: invalid sample", InvalidLabels, promHead},
	{"# observations found in buckets, but the Count field is #: ", InvalidHistogram, promHistogram},
	{"positive side: ", InvalidHistogram, promHistogram},
	{"negative side: ", InvalidHistogram, promHistogram},
	{"custom buckets: ", InvalidHistogram, promHistogram},
	{"histogram has an ", InvalidHistogram, promHistogram},
	{"histogram with exponential schema must not have custom bounds", InvalidHistogram, promHistogram},
	{"request body exceeds the # bytes limit", RequestTooLarge, promClient},
	{"decoded size exceeds the # bytes limit", RequestTooLarge, promClient},

	// Mimir writes labels before the key.
	{"received a series whose label name length exceeds the limit, ", LabelLimit, mimirValid},
	{"received a series whose label value length exceeds the limit, ", LabelLimit, mimirValid},
	{"received a series whose number of labels exceeds the limit ", LabelLimit, mimirValid},
	{"received an info series whose number of labels exceeds the limit ", LabelLimit, mimirValid},
	{"received a series with an invalid label: ", InvalidLabels, mimirValid},
	{"received a series with invalid value in label ", InvalidLabels, mimirValid},
	{"received a series with duplicate label name, label: ", InvalidLabels, mimirValid},
	{"received a series where the label names are not alphabetically sorted, ", InvalidLabels, mimirValid},
	{"received a series with invalid metric name: ", InvalidLabels, mimirValid},
	{"received a sample whose timestamp is too far in the future, timestamp: ", TooFarInFuture, mimirValid},
	{"received a sample whose timestamp is too far in the past, timestamp: ", OutsideWindow, mimirValid},
	{"received a native histogram sample with ", InvalidHistogram, mimirValid},

	{"timestamp too old: ", OutsideWindow, cortexValid},
	{"timestamp too new: ", TooFarInFuture, cortexValid},
	{"per-user series limit ", SeriesLimit, cortexLimiter},
	{"per-user native histogram series limit ", SeriesLimit, cortexLimiter},
	{"per-metric series limit ", SeriesLimit, cortexLimiter},
	{"per-labelset series limit ", SeriesLimit, cortexLimiter},
	{"per-metric metadata limit of # exceeded for metric ", Unknown, cortexLimiter}, // a name follows that could pass for a key of Mimir
	{"cannot add series: ingesters's max series limit reached", SeriesLimit, "cortexproject/cortex pkg/ingester/instance_limits.go"},
	{"label name too long", LabelLimit, cortexValid},
	{"label value too long", LabelLimit, cortexValid},
	{"labels size bytes exceeded for metric ", LabelLimit, cortexValid},
	{"series has too many labels ", LabelLimit, cortexValid},
	{"sample invalid label: ", InvalidLabels, cortexValid},
	{"sample missing metric name", InvalidLabels, cortexValid},
	{"sample invalid metric name: ", InvalidLabels, cortexValid},
	{"duplicate label name: ", InvalidLabels, cortexValid},
	{"labels not sorted: ", InvalidLabels, cortexValid},
	{"native histogram bucket count exceeded for metric ", InvalidHistogram, cortexValid},
	{"native histogram sample size bytes exceeded for metric ", InvalidHistogram, cortexValid},
	{"invalid native histogram", InvalidHistogram, cortexValid},
	{"received message larger than max ", RequestTooLarge, "cortexproject/cortex pkg/util/http.go"},

	{"out of order labels", InvalidLabels, thanosErrors},
	{"label set contains ", InvalidLabels, thanosErrors},
	{"tenant is above active series limit", SeriesLimit, thanosHandler},
	{"too many timeseries", RequestTooLarge, thanosHandler},
	{"too many samples", RequestTooLarge, thanosHandler},
	{"write request too large", RequestTooLarge, thanosHandler},
	{"target not available", Unavailable, thanosHandler},
	{"target not ready", Unavailable, thanosHandler},

	{"at least # live replicas required, could only find #", Unavailable, dskitRing},
	{"too many unhealthy instances in the ring", Unavailable, dskitRing},
	{"empty ring", Unavailable, dskitRing},
	{"instance not found in the ring", Unavailable, dskitRing},

	{"too big ", RequestTooLarge, "VictoriaMetrics/VictoriaMetrics lib/protoparser/promremotewrite/stream/streamparser.go; " + vmReader},
	{"cannot read snappy-encoded data block because its' size exceeds # bytes", RequestTooLarge, vmReader},

	{"missing metric name in labels", InvalidLabels, otelReceiver},
	{"duplicate label \"", InvalidLabels, otelReceiver},
	{"error converting timeseries to labels: ", InvalidLabels, otelReceiver},
	{"unsupported metric type \"", TypeConflict, otelReceiver},

	{"Points must be written in order. ", OutOfOrder, googleOrder},
	{"The new labels would cause the metric ", LabelLimit, googleLabels},
	{"points beyond retention policy dropped=", OutsideWindow, influxIssue},
	{"max-series-per-database limit exceeded: ", SeriesLimit, influxLimit},
	{"max-values-per-tag limit exceeded ", SeriesLimit, "https://github.com/shell909090/influx-proxy/issues/98"},
	{"datapoint for aggregation too far in past: ", OutsideWindow, m3Write},
	{"datapoint for aggregation too far in future: ", TooFarInFuture, m3Write},
}

// catalogue are the keys of Mimir's error catalogue, which Mimir promises not to change, without "err-mimir-". A text has
// its key in brackets after the words. Source: grafana/mimir pkg/util/globalerror/user.go.
var catalogue = map[string]Reason{
	"sample-out-of-order":        OutOfOrder,
	"sample-duplicate-timestamp": DuplicateTimestamp,
	"sample-timestamp-too-old":   OutsideWindow,
	"too-far-in-past":            OutsideWindow,
	"too-far-in-future":          TooFarInFuture,

	"max-series-per-user":   SeriesLimit,
	"max-series-per-metric": SeriesLimit,
	"max-active-series":     SeriesLimit,
	"ingester-max-series":   SeriesLimit,

	"missing-metric-name":             InvalidLabels,
	"metric-name-invalid":             InvalidLabels,
	"label-invalid":                   InvalidLabels,
	"label-value-invalid":             InvalidLabels,
	"duplicate-label-names":           InvalidLabels,
	"labels-not-sorted":               InvalidLabels,
	"label-name-too-long":             LabelLimit,
	"label-value-too-long":            LabelLimit,
	"max-label-names-per-series":      LabelLimit,
	"max-label-names-per-info-series": LabelLimit,

	"max-native-histogram-buckets":                  InvalidHistogram,
	"not-reducible-native-histogram":                InvalidHistogram,
	"native-histogram-custom-buckets-not-reducible": InvalidHistogram,
	"invalid-native-histogram-schema":               InvalidHistogram,
	"native-histogram-count-mismatch":               InvalidHistogram,
	"native-histogram-count-not-big-enough":         InvalidHistogram,
	"native-histogram-negative-bucket-count":        InvalidHistogram,
	"native-histogram-span-negative-offset":         InvalidHistogram,
	"native-histogram-spans-buckets-mismatch":       InvalidHistogram,
	"native-histogram-custom-buckets-mismatch":      InvalidHistogram,
	"native-histogram-custom-buckets-invalid":       InvalidHistogram,
	"native-histogram-custom-buckets-infinite":      InvalidHistogram,

	"distributor-max-write-message-size": RequestTooLarge,
}
