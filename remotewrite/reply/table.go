package reply

// The sources of the rows. If a file has changed, the table has the texts of all versions found.
const (
	promStorage   = "prometheus/prometheus storage/interface.go, storage/errors.go"
	promHandler   = "prometheus/prometheus storage/remote/write_handler.go"
	promHistogram = "prometheus/prometheus model/histogram/generic.go"
	promHead      = "prometheus/prometheus tsdb/head_append.go"
	promClient    = "prometheus/client_golang exp/api/remote/remote_api.go"
	promAPI       = "prometheus/prometheus web/api/v1/api.go"
	mimirCat      = "grafana/mimir pkg/util/globalerror/user.go"
	mimirValid    = "grafana/mimir pkg/distributor/validate.go"
	cortexValid   = "cortexproject/cortex pkg/util/validation/errors.go"
	cortexIngest  = "cortexproject/cortex pkg/ingester/ingester.go"
	cortexLimiter = "cortexproject/cortex pkg/ingester/limiter.go"
	cortexDistrib = "cortexproject/cortex pkg/distributor/distributor.go"
	cortexHTTP    = "cortexproject/cortex pkg/util/http.go"
	cortexLimits  = "cortexproject/cortex pkg/ingester/instance_limits.go"
	thanosHandler = "thanos-io/thanos pkg/receive/handler.go"
	thanosErrors  = "thanos-io/thanos pkg/receive/writer_errors.go"
	vmParser      = "VictoriaMetrics/VictoriaMetrics lib/protoparser/promremotewrite/stream/streamparser.go"
	vmReader      = "VictoriaMetrics/VictoriaMetrics lib/protoparser/protoparserutil/compress_reader.go"
	vmLimiter     = "VictoriaMetrics/VictoriaMetrics lib/writeconcurrencylimiter/concurrencylimiter.go"
	vmAgent       = "VictoriaMetrics/VictoriaMetrics app/vmagent/remotewrite/remotewrite.go"
	otelReceiver  = "open-telemetry/opentelemetry-collector-contrib receiver/prometheusremotewritereceiver/receiver.go"
	amazonDocs    = "https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-troubleshooting.html"
	googleIssue   = "https://github.com/GoogleCloudPlatform/prometheus-engine/issues/851"
	googleLabels  = "https://github.com/GoogleCloudPlatform/prometheus-engine/issues/493"
	influxIssue   = "https://github.com/AdysTech/InfluxDB.Client.Net/issues/31"
	influxLimit   = "https://github.com/sdr-enthusiasts/docker-readsb-protobuf/issues/66"
	dskitRing     = "grafana/dskit ring/ring.go, ring/replication_strategy.go"
	m3Write       = "m3db/m3 src/query/api/v1/handler/prometheus/remote/write.go, src/aggregator/aggregator/entry.go"
)

// wrapper is a prefix that a receiver writes before its own words. No wrapper contains a label.
type wrapper struct {
	words  string // as in a row
	list   bool   // several texts follow
	source string
}

var wrappers = []wrapper{
	{"user=#: ", false, "grafana/mimir pkg/ingester/errors.go"},
	{"send data to ingesters: ", false, "https://github.com/grafana/mimir/issues/10829"},
	{"failed pushing to ingester: ", false, "https://gitlab.com/gitlab-com/gl-infra/scalability/-/issues/2779"},
	{"failed pushing to ingester #: ", false, "grafana/mimir pkg/distributor/errors.go"},
	{"failed pushing to partition #: ", false, "grafana/mimir pkg/distributor/errors.go"},
	{"rpc error: code = Code(#) desc = ", false, "https://github.com/grafana/helm-charts/issues/1320"},
	{"rpc error: code = # desc = ", false, "https://github.com/thanos-io/thanos/issues/3913"},
	{"store locally for endpoint #: ", false, "https://github.com/thanos-io/thanos/issues/3913"},
	{"forwarding request to endpoint addr: #, capnp_addr: #, az: : ", false, thanosHandler},
	{"forwarding request to endpoint addr: #, capnp_addr: #, az: #: ", false, thanosHandler},
	{"forwarding request to endpoint #: ", false, thanosHandler},
	{"writing locally: ", false, thanosHandler},
	{"# errors: ", true, thanosHandler},
	{"remoteAddr: \"#\"; requestURI: #; ", false, "VictoriaMetrics/VictoriaMetrics lib/httpserver/httpserver.go, up to 1.9x"},
	{"remoteAddr: \"#, X-Forwarded-For: #\"; requestURI: #; ", false, "VictoriaMetrics/VictoriaMetrics lib/httpserver/httpserver.go, up to 1.9x"},
}

// prometheus are the texts of Prometheus 2 and 3; an answer to 2.0 may contain several in sequence.
var prometheus = []row{
	{"out of order sample", series, Late, OutOfOrder, promStorage},
	{"duplicate sample for timestamp #; overrides not allowed: existing #, new value #", series, Late, DuplicateTimestamp, promStorage},
	{"duplicate sample for timestamp #; overrides not allowed: existing is a histogram, new value #", series, Late, DuplicateTimestamp, promStorage},
	{"duplicate sample for timestamp", series, Late, DuplicateTimestamp, promStorage},
	{"out of bounds: timestamp is too far in the future", series, Bad, TooFarInFuture, promHandler},
	{"out of bounds", series, TooOld, OutOfBounds, promStorage},
	{"too old sample", series, TooOld, OutsideWindow, promStorage},
	{"out of order exemplar", series, Bad, LateExemplar, promStorage},
	{"parsing exemplar for series ", anything, Bad, InvalidExemplar, promHandler},
	{"invalid metric name or labels, got ", braces, Bad, InvalidLabel, promHandler},
	{"invalid labels for series, labels ", anything, Bad, DuplicateLabel, promHandler},
	{"label name \"", anything, Bad, DuplicateLabel, promHead},
	{"empty labelset: invalid sample", nothing, Bad, EmptyLabel, promHead},
	{"parsing labels for series ", anything, Bad, InvalidLabel, promHandler},
	{"parsing metadata for series ", anything, Bad, InvalidMetadata, promHandler},
	{"TimeSeries must contain at least one sample or histogram for series ", braces, Bad, NoSample, promHandler},
	{"native histograms are disabled", series, Bad, HistogramsDisabled, promStorage},
	{"# observations found in buckets, but the Count field is #: histogram's observation count should be at least the number of observations found in the buckets", series, Bad, InvalidHistogram, promHistogram},
	{"# observations found in buckets, but the Count field is #: histogram's observation count should equal the number of observations found in the buckets (in absence of NaN)", series, Bad, InvalidHistogram, promHistogram},
	{"positive side: bucket number # has observation count of #: histogram has a bucket whose observation count is negative", series, Bad, InvalidHistogram, promHistogram},
	{"negative side: bucket number # has observation count of #: histogram has a bucket whose observation count is negative", series, Bad, InvalidHistogram, promHistogram},
	{"positive side: span number # with offset #: histogram has a span whose offset is negative", series, Bad, InvalidHistogram, promHistogram},
	{"negative side: span number # with offset #: histogram has a span whose offset is negative", series, Bad, InvalidHistogram, promHistogram},
	{"positive side: spans need # buckets, have # buckets: histogram spans specify different number of buckets than provided", series, Bad, InvalidHistogram, promHistogram},
	{"negative side: spans need # buckets, have # buckets: histogram spans specify different number of buckets than provided", series, Bad, InvalidHistogram, promHistogram},
	{"custom buckets: only # custom bounds defined which is insufficient to cover total span length of #: histogram custom bounds are too few", series, Bad, InvalidHistogram, promHistogram},
	{"custom buckets: previous bound is # and current is #: histogram custom bounds must be in strictly increasing order", series, Bad, InvalidHistogram, promHistogram},
	{"custom buckets: last +Inf bound must not be explicitly defined: histogram custom bounds must be finite", series, Bad, InvalidHistogram, promHistogram},
	{"histogram has an invalid schema, which must be between # and # for exponential buckets, or # for custom buckets, got schema #", series, Bad, InvalidHistogram, promHistogram},
	{"histogram has an unknown schema, which must be between # and # for exponential buckets, or # for custom buckets, got schema #", series, Bad, InvalidHistogram, promHistogram},
	{"histogram with exponential schema must not have custom bounds", series, Bad, InvalidHistogram, promHistogram},

	{"request body exceeds the # bytes limit", nothing, TooLarge, RequestTooLarge, promClient},
	{"decoded size exceeds the # bytes limit", nothing, TooLarge, RequestTooLarge, promClient},
	{"snappy: corrupt input", nothing, Opaque, Malformed, "golang/snappy decode.go"},
	{"s2: corrupt input", nothing, Opaque, Malformed, "klauspost/compress s2/decode.go"},
	{"prometheus.WriteRequest protobuf message is not accepted by this server; only accepts ", anything, Opaque, UnsupportedMessage, promClient},
	{"io.prometheus.write.v2.Request protobuf message is not accepted by this server; only accepts ", anything, Opaque, UnsupportedMessage, promClient},
	{"remote write receiver needs to be enabled with --web.enable-remote-write-receiver", nothing, Opaque, ReceiverDisabled, promAPI},
}

// thanos are the texts of Thanos Receive, after the endpoint. A text may be one of several.
var thanos = []row{
	{"add # samples: out of order sample", nothing, Late, OutOfOrder, thanosErrors},
	{"add # samples: duplicate sample for timestamp", nothing, Late, DuplicateTimestamp, thanosErrors},
	{"add # samples: out of bounds", nothing, TooOld, OutOfBounds, thanosErrors}, // or too far in the future: Thanos uses the same words
	{"add # samples: too old sample", nothing, TooOld, OutsideWindow, thanosErrors},
	{"add # series: out of order labels", nothing, Bad, LabelsNotSorted, thanosErrors},
	{"add # series: label set contains duplicate label names", nothing, Bad, DuplicateLabel, thanosErrors},
	{"add # series: label set contains a label with empty name or value", nothing, Bad, EmptyLabel, thanosErrors},
	{"add # exemplars: out of order exemplar", nothing, Bad, LateExemplar, thanosErrors},
	{"add # exemplars: duplicate exemplar", nothing, Bad, LateExemplar, thanosErrors},
	{"add # exemplars: label length for exemplar exceeds maximum of # UTF-8 characters", nothing, Bad, InvalidExemplar, thanosErrors},
	{"conflict", nothing, Opaque, Conflict, thanosHandler}, // stored, late, or labels or exemplars that it does not accept
	{"tenant is above active series limit", nothing, Bad, SeriesLimit, thanosHandler},
	{"too many timeseries", nothing, TooLarge, RequestTooLarge, thanosHandler},
	{"too many samples", nothing, TooLarge, RequestTooLarge, thanosHandler},
	{"write request too large", nothing, TooLarge, RequestTooLarge, thanosHandler},
	{"snappy decode error: snappy: corrupt input", nothing, Opaque, Malformed, thanosHandler},
	{"snappy decode error: s2: corrupt input", nothing, Opaque, Malformed, thanosHandler},
	{"target not available", nothing, Failed, PartlyDown, thanosHandler},
	{"target not ready", nothing, Failed, PartlyDown, thanosHandler},
}

// victoria are the texts of VictoriaMetrics and vmagent.
var victoria = []row{
	{"too big unpacked request; mustn't exceed `-maxInsertRequestSize=#` bytes; got # bytes", nothing, TooLarge, RequestTooLarge, vmParser},
	{"too big data size exceeding -#=# bytes", nothing, TooLarge, RequestTooLarge, vmReader},
	{"too big decompressed data size exceeding -#=# bytes", nothing, TooLarge, RequestTooLarge, vmReader},
	{"cannot read snappy-encoded data block because its' size exceeds # bytes", nothing, TooLarge, RequestTooLarge, vmReader},
	{"cannot decompress snappy-encoded request with length #: ", anything, Opaque, Malformed, vmParser},
	{"cannot decompress zstd-encoded request with length #: ", anything, Opaque, Malformed, vmParser},
	{"cannot decompress request with length #: ", anything, Opaque, Malformed, vmParser},
	{"cannot decode snappy-encoded data block: ", anything, Opaque, Malformed, vmReader},
	{"cannot unmarshal prompb.WriteRequest with size # bytes: ", anything, Opaque, Malformed, vmParser},
	{"cannot process insert request for # seconds because # concurrent insert requests are executed. ", anything, Opaque, Overloaded, vmLimiter},
	{"remote storage systems cannot keep up with the data ingestion rate; retry the request later ", anything, Opaque, Overloaded, vmAgent},
}

// rings are the texts of the library that Cortex and Mimir find their ingesters with.
var rings = []row{
	{"at least # live replicas required, could only find #", anything, Failed, PartlyDown, dskitRing},
	{"too many unhealthy instances in the ring", nothing, Failed, PartlyDown, dskitRing},
	{"empty ring", nothing, Failed, PartlyDown, dskitRing},
	{"instance not found in the ring", nothing, Failed, PartlyDown, dskitRing},
}

// others are the texts of OpenTelemetry's receiver, of M3, of InfluxDB 1 and of hosted services. Amazon Managed Prometheus
// uses Cortex's texts, Grafana Cloud uses Mimir's.
var others = []row{
	{"missing metric name in labels", anything, Bad, MissingMetricName, otelReceiver},
	{"duplicate label \"", anything, Bad, DuplicateLabel, otelReceiver},
	{"unsupported metric type \"", anything, Bad, TypeConflict, otelReceiver},
	{"error converting timeseries to labels: ", anything, Bad, InvalidLabel, otelReceiver},
	{"unit ref # is out of bounds of symbolsTable", anything, Bad, InvalidMetadata, otelReceiver},
	{"help ref # is out of bounds of symbolsTable", anything, Bad, InvalidMetadata, otelReceiver},
	{"Unsupported proto version", nothing, Opaque, UnsupportedMessage, otelReceiver},

	{"One or more TimeSeries could not be written: Points must be written in order. One or more of the points specified had an older start time than the most recent point.", nothing, Late, OutOfOrder, googleIssue},
	{"One or more TimeSeries could not be written: Points must be written in order. One or more of the points specified had an older end time than the most recent point.", nothing, Late, OutOfOrder, "https://github.com/googleapis/python-monitoring/issues/57"},
	{"One or more TimeSeries could not be written: The new labels would cause the metric ", anything, Bad, TooManyLabels, googleLabels},

	{`{"error":"partial write: points beyond retention policy dropped=#"}`, nothing, TooOld, OutsideWindow, influxIssue},
	{`{"error":"partial write: max-series-per-database limit exceeded: `, anything, Bad, SeriesLimit, influxLimit},
	{`{"error":"partial write: max-values-per-tag limit exceeded `, anything, Bad, SeriesLimit, "https://github.com/shell909090/influx-proxy/issues/98"},

	{`{"status":"error","error":"bad_request_errors: count=#, last=datapoint for aggregation too far in past: `, anything, TooOld, OutsideWindow, m3Write},
	{`{"status":"error","error":"bad_request_errors: count=#, last=datapoint for aggregation too far in future: `, anything, Bad, TooFarInFuture, m3Write},
}
