package reply

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// real is one text of a receiver. In it §q stands for a label's value (or name) inside of a Go string, and §r for one as it
// is, as the receiver writes it.
type real struct {
	status int
	text   string
}

const (
	labels      = `{__name__="up", zone="§q"}`
	ingester    = "send data to ingesters: failed pushing to ingester mimir-ingester-0: user=10: "
	affected    = " The affected sample has timestamp 2024-01-29T13:44:19.997Z and is from series " + labels
	exemplar    = " The affected exemplar is {trace_id=\"§q\"} with timestamp 2024-01-29T13:44:19.997Z for series " + labels
	perTenant   = " To adjust the related per-tenant limit, configure -validation.some-limit, or contact your service administrator."
	perInstance = " To adjust the related limit, configure -distributor.some-limit, or contact your service administrator."
	endpoint    = "store locally for endpoint 127.0.0.1:10901: "
	forwarded   = "forwarding request to endpoint thanos-receive-1.thanos:10901: rpc error: code = AlreadyExists desc = store locally for endpoint thanos-receive-1.thanos:10901: "
	points      = "One or more TimeSeries could not be written: "
)

// realTexts has a full text for each row of the table, by the row's words.
func realTexts() map[string]real {
	m := map[string]real{}
	maps.Copy(m, prometheusTexts())
	maps.Copy(m, mimirTexts())
	maps.Copy(m, catalogueTexts())
	maps.Copy(m, cortexTexts())
	maps.Copy(m, otherTexts())
	return m
}

func prometheusTexts() map[string]real {
	const (
		tooFew = "histogram's observation count should be at least the number of observations found in the buckets"
		equal  = "histogram's observation count should equal the number of observations found in the buckets (in absence of NaN)"
		spans  = "histogram spans specify different number of buckets than provided"
		schema = ", which must be between -4 and 8 for exponential buckets, or -53 for custom buckets, got schema 17"
		minus  = "histogram has a bucket whose observation count is negative"
		offset = "histogram has a span whose offset is negative"
	)
	return map[string]real{
		prometheus[0].words:  {400, "out of order sample"},
		prometheus[1].words:  {400, "duplicate sample for timestamp 1700000000000; overrides not allowed: existing 1.5, new value -2e+06 for series " + labels},
		prometheus[2].words:  {400, "duplicate sample for timestamp 1700000000000; overrides not allowed: existing is a histogram, new value NaN"},
		prometheus[3].words:  {400, "duplicate sample for timestamp for series " + labels},
		prometheus[4].words:  {400, "out of bounds: timestamp is too far in the future"},
		prometheus[5].words:  {400, "out of bounds"},
		prometheus[6].words:  {400, "too old sample for series " + labels},
		prometheus[7].words:  {400, "out of order exemplar for series " + labels},
		prometheus[8].words:  {400, "parsing exemplar for series " + labels + ": labelRefs 7 (name) = 9 (value) outside of symbols table (size 3)"},
		prometheus[9].words:  {400, "invalid metric name or labels, got " + labels},
		prometheus[10].words: {400, "invalid labels for series, labels " + labels + ", duplicated label §r"},
		prometheus[11].words: {500, `label name "§r" is not unique: invalid sample`},
		prometheus[12].words: {500, "empty labelset: invalid sample"},
		prometheus[13].words: {400, "parsing labels for series [1 2 7]: invalid labelRefs length 3"},
		prometheus[14].words: {400, "parsing metadata for series [1 2]: help ref 9 outside of symbols table (size 3)"},
		prometheus[15].words: {400, "TimeSeries must contain at least one sample or histogram for series " + labels},
		prometheus[16].words: {500, "native histograms are disabled"},
		prometheus[17].words: {400, "5 observations found in buckets, but the Count field is 4: " + tooFew},
		prometheus[18].words: {400, "5 observations found in buckets, but the Count field is 4: " + equal + " for series " + labels},
		prometheus[19].words: {400, "positive side: bucket number 1 has observation count of -1: " + minus},
		prometheus[20].words: {400, "negative side: bucket number 2 has observation count of -3.5: " + minus + " for series " + labels},
		prometheus[21].words: {400, "positive side: span number 2 with offset -1: " + offset},
		prometheus[22].words: {400, "negative side: span number 2 with offset -1: " + offset + " for series " + labels},
		prometheus[23].words: {400, "positive side: spans need 3 buckets, have 2 buckets: " + spans},
		prometheus[24].words: {400, "negative side: spans need 3 buckets, have 2 buckets: " + spans},
		prometheus[25].words: {400, "custom buckets: only 2 custom bounds defined which is insufficient to cover total span length of 9: histogram custom bounds are too few"},
		prometheus[26].words: {400, "custom buckets: previous bound is 2.000000 and current is 1.000000: histogram custom bounds must be in strictly increasing order"},
		prometheus[27].words: {400, "custom buckets: last +Inf bound must not be explicitly defined: histogram custom bounds must be finite"},
		prometheus[28].words: {400, "histogram has an invalid schema" + schema + " for series " + labels},
		prometheus[29].words: {400, "histogram has an unknown schema" + schema},
		prometheus[30].words: {400, "histogram with exponential schema must not have custom bounds"},
		prometheus[31].words: {413, "request body exceeds the 33554432 bytes limit"},
		prometheus[32].words: {400, "decoded size exceeds the 33554432 bytes limit"},
		prometheus[33].words: {400, "snappy: corrupt input"},
		prometheus[34].words: {400, "s2: corrupt input"},
		prometheus[35].words: {415, "prometheus.WriteRequest protobuf message is not accepted by this server; only accepts io.prometheus.write.v2.Request"},
		prometheus[36].words: {415, "io.prometheus.write.v2.Request protobuf message is not accepted by this server; only accepts prometheus.WriteRequest"},
		prometheus[37].words: {404, "remote write receiver needs to be enabled with --web.enable-remote-write-receiver"},
	}
}

func mimirTexts() map[string]real {
	const quoted = "label: 'zone' series: 'up{zone=\"§q\"}'"
	return map[string]real{
		mimir[0].words:  {400, "received a series whose label name length exceeds the limit, label: '§r' series: 'up{§r=\"a\"}' (err-mimir-label-name-too-long)." + perTenant},
		mimir[1].words:  {400, "received a series whose label value length exceeds the limit, label: 'zone', value: '§r' (truncated) series: 'up{zone=\"§q\"}' (err-mimir-label-value-too-long)." + perTenant},
		mimir[2].words:  {400, "received a series whose number of labels exceeds the limit (actual: 41, limit: 30) series: 'up{zone=\"§q\"…' (err-mimir-max-label-names-per-series)." + perTenant},
		mimir[3].words:  {400, "received an info series whose number of labels exceeds the limit (actual: 91, limit: 80) series: 'a_info{zone=\"§q\"}' (err-mimir-max-label-names-per-info-series)." + perTenant},
		mimir[4].words:  {400, "received a series with an invalid label: '§r' series: 'up{zone=\"§q\"}' (err-mimir-label-invalid)"},
		mimir[5].words:  {400, "received a series with invalid value in label 'zone': '§r' metric: 'up' (err-mimir-label-value-invalid)"},
		mimir[6].words:  {400, "received a series with duplicate label name, " + quoted + " (err-mimir-duplicate-label-names)"},
		mimir[7].words:  {400, "received a series where the label names are not alphabetically sorted, " + quoted + " (err-mimir-labels-not-sorted)"},
		mimir[8].words:  {400, "received a series with invalid metric name: '§r' (err-mimir-metric-name-invalid)"},
		mimir[9].words:  {400, "received a sample whose timestamp is too far in the future, timestamp: 1906550943997 series: '§r' (err-mimir-too-far-in-future)." + perTenant},
		mimir[10].words: {400, "received a sample whose timestamp is too far in the past, timestamp: 1706550943997 series: '§r' (err-mimir-too-far-in-past)." + perTenant},
		mimir[11].words: {400, "received a native histogram sample with too many buckets, timestamp: 1706550943997 series: up" + labels + ", buckets: 200, limit: 160 (err-mimir-max-native-histogram-buckets)"},
		mimir[12].words: {400, "received a native histogram sample with too many buckets and cannot reduce, timestamp: 1706550943997 series: " + labels + ", buckets: 200, limit: 160 (err-mimir-not-reducible-native-histogram)"},
		mimir[13].words: {400, "received a native histogram sample with more custom buckets than the limit, timestamp: 1706550943997 series: " + labels + ", buckets: 200, limit: 160 (err-mimir-native-histogram-custom-buckets-not-reducible)"},
		mimir[14].words: {400, "received an exemplar with no valid labels, timestamp: 1706550943997 series: " + labels + " labels: {} (err-mimir-exemplar-labels-missing)"},
		mimir[15].words: {400, "received an exemplar with no timestamp, timestamp: 0 series: " + labels + " labels: {a=\"§q\"} (err-mimir-exemplar-timestamp-invalid)"},
		mimir[16].words: {400, "received an exemplar where the size of its combined labels exceeds the limit of 128 characters, timestamp: 1706550943997 series: " + labels + " labels: {a=\"§q\"} (err-mimir-exemplar-labels-too-long)"},
		mimir[17].words: {400, "received a metric metadata whose metric name length exceeds the limit, metric name: '§r' (err-mimir-metric-name-too-long)." + perTenant},
		mimir[18].words: {400, "received a metric metadata whose unit name length exceeds the limit, unit: '§r' metric name: 'up' (err-mimir-unit-too-long)." + perTenant},
	}
}

func catalogueTexts() map[string]real {
	const newer = "the sample has been rejected because another sample with a more recent timestamp has already been ingested and "
	m := map[string]real{
		"sample-out-of-order":        {400, ingester + newer + "out-of-order samples are not allowed (err-mimir-sample-out-of-order)." + affected + " (sampled 1/10)"},
		"sample-duplicate-timestamp": {400, ingester + "the sample has been rejected because another sample with the same timestamp, but a different value, has already been ingested (err-mimir-sample-duplicate-timestamp)." + affected},
		"sample-timestamp-too-old":   {400, "failed pushing to ingester: user=gitlab-gstg: the sample has been rejected because its timestamp is too old (err-mimir-sample-timestamp-too-old)." + affected},
		"too-far-in-future":          {400, ingester + "received a sample whose timestamp is too far in the future (err-mimir-too-far-in-future)." + affected},
		"max-series-per-user":        {400, ingester + "per-user series limit of 150000 exceeded (err-mimir-max-series-per-user)." + perTenant},
		"max-series-per-metric":      {400, ingester + "per-metric series limit of 5 exceeded (err-mimir-max-series-per-metric)." + perTenant + " This is for series " + labels},
		"max-active-series":          {429, "the request has been rejected because the tenant exceeded the active series limit, set to 1000. 5 series were rejected from this request of a total of 9 (err-mimir-max-active-series)." + perTenant},
		"ingester-max-series":        {503, ingester + "the write request has been rejected because the ingester exceeded the allowed number of in-memory series (err-mimir-ingester-max-series)." + perInstance},
		"max-metadata-per-metric":    {400, ingester + "per-metric metadata limit of 5 exceeded (err-mimir-max-metadata-per-metric)." + perTenant + " This is for series " + labels},
		"missing-metric-name":        {400, "received series has no metric name (err-mimir-missing-metric-name)"},
		"exemplar-series-missing":    {400, ingester + "the exemplar has been rejected because the related series has not been ingested yet (err-mimir-exemplar-series-missing)." + exemplar},
		"exemplar-too-far-in-future": {400, ingester + "received an exemplar whose timestamp is too far in the future (err-mimir-exemplar-too-far-in-future)." + exemplar},

		"distributor-max-write-message-size":           {400, "the incoming push request has been rejected because its message size of 104857700 bytes (uncompressed) is larger than the allowed limit of 104857600 bytes (err-mimir-distributor-max-write-message-size)." + perInstance},
		"distributor-max-write-request-data-item-size": {400, "failed pushing to partition 7: the write request contains a timeseries or metadata item which is larger that the maximum allowed size of 15983616 bytes (err-mimir-distributor-max-write-request-data-item-size)"},
		"tenant-max-request-rate":                      {429, "the request has been rejected because the tenant exceeded the request rate limit, set to 10 requests/s across all distributors with a maximum allowed burst of 20 (err-mimir-tenant-max-request-rate)." + perTenant},
		"tenant-max-ingestion-rate":                    {429, "the request has been rejected because the tenant exceeded the ingestion rate limit, set to 10000 items/s with a maximum allowed burst of 200000. This limit is applied on the total number of samples, exemplars and metadata received across all distributors (err-mimir-tenant-max-ingestion-rate)." + perTenant},
		"tenant-too-many-ha-clusters":                  {400, "the write request has been rejected because the maximum number of high-availability (HA) clusters has been reached for this tenant (limit: 100) (err-mimir-tenant-too-many-ha-clusters)." + perTenant},
	}
	for _, r := range catalogue { // of these the key alone is relied on
		if _, ok := m[r.words]; !ok {
			m[r.words] = real{400, ingester + "words that Mimir may change (err-mimir-" + r.words + ")." + affected}
		}
	}
	return m
}

func cortexTexts() map[string]real {
	const (
		metric = `metric: "up{zone=\"§q\"}"`
		raise  = "please contact administrator to raise it (local limit: 0 global limit: 150000 actual local limit: 75000)"
		local  = "(local limit: 0 global limit: 3000000 actual local limit: 500000) exceeded"
	)
	return map[string]real{
		cortex[0].words:  {400, "user=system: err: out of order sample. timestamp=2021-06-11T15:44:36Z, series=" + labels},
		cortex[1].words:  {400, "user=system: err: duplicate sample for timestamp. series=" + labels},
		cortex[2].words:  {400, "user=system: err: duplicate sample for timestamp 1700000000000; overrides not allowed: existing 1, new value 2. series=" + labels},
		cortex[3].words:  {400, "user=1234: err: out of bounds. timestamp=2022-05-20T13:22:47.101Z, series=" + labels},
		cortex[4].words:  {400, "user=1234: err: too old sample. timestamp=2022-05-20T13:22:47.101Z, tsdbHeadMaxTimestamp=2022-05-20T15:22:47.101Z, series=" + labels},
		cortex[5].words:  {400, `timestamp too old: 1600000000000 metric: "§q"`},
		cortex[6].words:  {400, `timestamp too new: 1900000000000 metric: "§q"`},
		cortex[7].words:  {400, "user=wdc-01: per-user series limit of 150000 exceeded, " + raise},
		cortex[8].words:  {400, "user=wdc-01: per-user native histogram series limit of 150000 exceeded, " + raise},
		cortex[9].words:  {400, "user=wdc-01: per-metric series limit of 5 exceeded for metric §r, " + raise + " for series " + labels},
		cortex[10].words: {400, "user=wdc-01: per-metric series limit of 5 exceeded, " + raise + " for series " + labels},
		cortex[11].words: {400, "user=wdc-01: per-labelset series limit of 5 exceeded (labelSet: " + labels + ", global limit: 5 actual local limit: 5) for series " + labels},
		cortex[12].words: {429, "user=accountid_workspace_id: per-user series limit " + local},
		cortex[13].words: {429, "user=accountid_workspace_id: per-metric series limit " + local + " for series " + labels},
		cortex[14].words: {503, "cannot add series: ingesters's max series limit reached"},
		cortex[15].words: {400, "user=wdc-01: per-user metric metadata limit of 5 exceeded, " + raise},
		cortex[16].words: {400, "user=wdc-01: per-metric metadata limit of 5 exceeded for metric §r, " + raise},
		cortex[17].words: {400, `label name too long for metric (actual: 2000, limit: 1024) metric: "up{zone=\"§q\"}" label name: "§q"`},
		cortex[18].words: {400, `label name too long: "§q" metric "up"`},
		cortex[19].words: {400, `label value too long for metric (actual: 9000, limit: 2048) ` + metric + ` label name: "zone" label value: "§q"`},
		cortex[20].words: {400, `label value too long: "§q" metric "up"`},
		cortex[21].words: {400, "labels size bytes exceeded for metric (actual: 9000, limit: 2048) " + metric},
		cortex[22].words: {400, `series has too many labels (actual: 32, limit: 30) series: 'up{zone="§q"}'`},
		cortex[23].words: {400, `sample invalid label: "§q" metric "up"`},
		cortex[24].words: {400, `duplicate label name: "§q" metric "up"`},
		cortex[25].words: {400, `labels not sorted: "§q" metric "up"`},
		cortex[26].words: {400, "sample missing metric name"},
		cortex[27].words: {400, `sample invalid metric name: "§q"`},
		cortex[28].words: {400, "native histogram bucket count exceeded for metric (limit: 160) " + metric},
		cortex[29].words: {400, "native histogram sample size bytes exceeded for metric (actual: 9000, limit: 160) " + metric},
		cortex[30].words: {400, "invalid native histogram schema 17 for " + metric + ". supported schema from -4 to 8"},
		cortex[31].words: {400, "invalid native histogram, validation err: histogram's observation count is negative, " + metric},
		cortex[32].words: {400, "exemplar missing labels, timestamp: 1600000000000 series: " + labels + " labels: {}"},
		cortex[33].words: {400, "exemplar missing timestamp, timestamp: 0 series: " + labels + ` labels: {a="§q"}`},
		cortex[34].words: {400, "exemplar combined labelset exceeds 128 characters, timestamp: 1600000000000 series: " + labels + ` labels: {a="§q"}`},
		cortex[35].words: {400, "metadata missing metric name"},
		cortex[36].words: {429, "ingestion rate limit (6666.666666666667) exceeded while adding 499 samples and 0 metadata"},
		cortex[37].words: {429, "native histogram ingestion rate limit (100) exceeded while adding 499 native histogram samples"},
		cortex[38].words: {503, "distributor's samples push rate limit reached"},
		cortex[39].words: {503, "cannot push more samples: ingester's samples push rate limit reached"},
		cortex[40].words: {503, "too many inflight push requests in distributor"},
		cortex[41].words: {503, "cannot push: too many inflight push requests in ingester"},
		cortex[42].words: {400, "received message larger than max (104857700 vs 104857600)"},
	}
}

func otherTexts() map[string]real {
	return map[string]real{
		thanos[0].words:  {409, endpoint + "add 1 samples: out of order sample"},
		thanos[1].words:  {409, forwarded + "add 1 samples: duplicate sample for timestamp"},
		thanos[2].words:  {409, "forwarding request to endpoint addr: thanos-1:10901, capnp_addr: thanos-1:19391, az: : add 7 samples: out of bounds"},
		thanos[3].words:  {409, endpoint + "add 1 samples: too old sample"},
		thanos[4].words:  {409, endpoint + "add 1 series: out of order labels"},
		thanos[5].words:  {409, endpoint + "add 1 series: label set contains duplicate label names"},
		thanos[6].words:  {409, endpoint + "add 1 series: label set contains a label with empty name or value"},
		thanos[7].words:  {409, endpoint + "add 1 exemplars: out of order exemplar"},
		thanos[8].words:  {409, endpoint + "add 1 exemplars: duplicate exemplar"},
		thanos[9].words:  {409, endpoint + "add 1 exemplars: label length for exemplar exceeds maximum of 128 UTF-8 characters"},
		thanos[10].words: {409, endpoint + "conflict"},
		thanos[11].words: {429, "tenant is above active series limit"},
		thanos[12].words: {413, "too many timeseries"},
		thanos[13].words: {413, "too many samples"},
		thanos[14].words: {413, "write request too large"},
		thanos[15].words: {400, "snappy decode error: snappy: corrupt input"},
		thanos[16].words: {400, "snappy decode error: s2: corrupt input"},
		thanos[17].words: {503, "forwarding request to endpoint addr: thanos-1:10901, capnp_addr: thanos-1:19391, az: west-1: target not available"},
		thanos[18].words: {503, endpoint + "target not ready"},

		rings[0].words: {500, "at least 2 live replicas required, could only find 1 - unhealthy instances: 10.0.0.7:9095"},
		rings[1].words: {500, "too many unhealthy instances in the ring"},
		rings[2].words: {500, "rpc error: code = Unknown desc = empty ring"},
		rings[3].words: {500, "instance not found in the ring"},

		victoria[0].words:  {400, "remoteAddr: \"127.0.0.1:41814\"; requestURI: /api/v1/write; too big unpacked request; mustn't exceed `-maxInsertRequestSize=33554432` bytes; got 33554433 bytes"},
		victoria[1].words:  {400, "too big data size exceeding -maxInsertRequestSize=33554432 bytes"},
		victoria[2].words:  {400, "too big decompressed data size exceeding -maxInsertRequestSize=33554432 bytes"},
		victoria[3].words:  {400, "cannot read snappy-encoded data block because its' size exceeds 100000000 bytes"},
		victoria[4].words:  {400, "cannot decompress snappy-encoded request with length 7: snappy: corrupt input"},
		victoria[5].words:  {400, "cannot decompress zstd-encoded request with length 7: invalid header"},
		victoria[6].words:  {400, "cannot decompress request with length 18: snappy: corrupt input"},
		victoria[7].words:  {400, "cannot decode snappy-encoded data block: snappy: corrupt input"},
		victoria[8].words:  {400, "remoteAddr: \"127.0.0.1:41814, X-Forwarded-For: 10.0.0.7\"; requestURI: /insert/0/prometheus/api/v1/write; cannot unmarshal prompb.WriteRequest with size 7 bytes: cannot read the next field"},
		victoria[9].words:  {503, "cannot process insert request for 60.000 seconds because 8 concurrent insert requests are executed. Possible solutions: to reduce workload; to increase compute resources at the server; to increase -insert.maxQueueDuration; to increase -maxConcurrentInserts"},
		victoria[10].words: {429, "remote storage systems cannot keep up with the data ingestion rate; retry the request later or remove -remoteWrite.disableOnDiskQueue from vmagent command-line flags, so it could save pending data to -remoteWrite.tmpDataPath; see https://docs.victoriametrics.com/victoriametrics/vmagent/#disabling-on-disk-persistence"},

		others[0].words: {400, "missing metric name in labels\nduplicate label \"§q\" in labels"},
		others[1].words: {400, `duplicate label "§q" in labels`},
		others[2].words: {400, `unsupported metric type "METRIC_TYPE_INFO" for metric "§q"`},
		others[3].words: {400, "error converting timeseries to labels: invalid labelRefs length 3"},
		others[4].words: {400, "unit ref 9 is out of bounds of symbolsTable"},
		others[5].words: {400, "help ref 9 is out of bounds of symbolsTable"},
		others[6].words: {415, "Unsupported proto version"},

		others[7].words:  {400, points + "Points must be written in order. One or more of the points specified had an older start time than the most recent point."},
		others[8].words:  {400, points + "Points must be written in order. One or more of the points specified had an older end time than the most recent point."},
		others[9].words:  {400, points + "The new labels would cause the metric prometheus.googleapis.com/§r/gauge to have over 100 labels."},
		others[10].words: {400, `{"error":"partial write: points beyond retention policy dropped=225"}`},
		others[11].words: {400, `{"error":"partial write: max-series-per-database limit exceeded: (1000000)"}`},
		others[12].words: {400, `{"error":"partial write: max-values-per-tag limit exceeded (100000/100000): measurement=\"up\" tag=\"zone\" value=\"§q\""}`},
		others[13].words: {400, `{"status":"error","error":"bad_request_errors: count=1, last=datapoint for aggregation too far in past: off_by=1m0s, timestamp=Mon, 29 Jan 2024 13:44:19 +0000"}`},
		others[14].words: {400, `{"status":"error","error":"bad_request_errors: count=1, last=datapoint for aggregation too far in future: off_by=1m0s, timestamp=Mon, 29 Jan 2024 13:44:19 +0000"}`},
	}
}

// filled is a real text with a label's value in it.
func filled(text, value string) string {
	quoted := strconv.Quote(value)
	return strings.NewReplacer("§q", quoted[1:len(quoted)-1], "§r", value).Replace(text)
}

func tables() map[string][]row {
	return map[string][]row{"prometheus": prometheus, "mimir": mimir, "catalogue": catalogue, "cortex": cortex, "thanos": thanos, "victoria": victoria, "rings": rings, "others": others}
}

// wanted is what Of must say of a row's text with a status: the status decides before the words do.
func wanted(status int, r row) Reply {
	switch {
	case status == 413:
		return Reply{TooLarge, r.reason}
	case status == 429:
		return Reply{Throttled, r.reason}
	case status == 503, status == 500 && r.kind == Failed:
		return Reply{Failed, r.reason}
	case status == 404, status == 415:
		return Reply{Opaque, r.reason}
	}
	return r.reply()
}

// TestEachRow: the full real text of each row is read as the row says, with its own status, and with the statuses
// for which the status alone decides.
func TestEachRow(t *testing.T) {
	texts, rows := realTexts(), 0
	for name, table := range tables() {
		for _, r := range table {
			rows++
			text, ok := texts[r.words]
			if !ok {
				t.Errorf("%s: no real text for %q", name, r.words)
				continue
			}
			for _, status := range []int{text.status, 413, 429, 503} {
				words := filled(text.text, "west")
				if got, want := Of(status, words+"\n"), wanted(status, r); got != want {
					t.Errorf("%s: %d %q is %v %v, want %v %v", name, status, words, got.Kind, got.Reason, want.Kind, want.Reason)
				}
			}
			if r.source == "" || r.reason == Unknown || r.kind == Took || (r.kind == Failed) != (r.reason == PartlyDown) {
				t.Errorf("%s: row %q is incomplete", name, r.words)
			}
		}
	}
	if len(texts) != rows {
		t.Errorf("%d texts for %d rows: two rows have the same words, or a text has no row", len(texts), rows)
	}
}

// hostileValues are label values that try to pass for other texts: each row's text, and its end.
func hostileValues() []string {
	texts := realTexts()
	all := make([]string, 0, 9*len(texts))
	for _, words := range slices.Sorted(maps.Keys(texts)) {
		text := filled(texts[words].text, "x")
		all = append(all, text, `"} `+text, `"}`+"\n"+text, "'} "+text, "\n"+text, "; "+text, ": "+text, "' (err-mimir-"+words+")", `\"} `+text)
	}
	return all
}

// TestHostileLabels: a label's value, whatever is in it, does not change what a text is read as.
func TestHostileLabels(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	values, texts := hostileValues(), realTexts()
	for name, table := range tables() {
		for _, r := range table {
			text := texts[r.words]
			if !strings.Contains(text.text, "§") {
				continue
			}
			want := wanted(text.status, r)
			for _, v := range values {
				for _, folded := range []bool{false, true} {
					words := filled(text.text, v)
					if folded { // as the caller shows it
						words = strings.Join(strings.Fields(words), " ")
					}
					if got := Of(text.status, words); got != want {
						t.Fatalf("%s: %d %q is %v %v, want %v %v", name, text.status, words, got.Kind, got.Reason, want.Kind, want.Reason)
					}
				}
			}
		}
	}
}

// TestHostileOpaque: a text that no row begins is opaque, whatever it quotes.
func TestHostileOpaque(t *testing.T) {
	for _, v := range hostileValues() {
		for _, text := range []string{
			"bad sample " + strconv.Quote(v),
			"the policy blocks " + v,
			"series up{zone=" + strconv.Quote(v) + "} is refused",
			"<html><head><title>" + v + "</title></head></html>",
			"<!DOCTYPE html>\n<p>" + v,
			"sample: '" + v + "'",
			`{"message":` + strconv.Quote(v) + `}`,
		} {
			if strings.Contains(v, "(err-mimir-") && strings.HasPrefix(text, "the policy") {
				continue // Mimir's key may stand after any words that have no label
			}
			if got := Of(400, text); got.Kind != Opaque {
				t.Fatalf("400 %q is %v %v, want opaque", text, got.Kind, got.Reason)
			}
		}
	}
}
