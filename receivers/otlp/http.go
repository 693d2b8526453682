package otlp

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"hwsagent/receivers"
)

// Path is the path for metrics over HTTP.
const Path = "/v1/metrics"

// HTTP returns the handler of OTLP over HTTP, protobuf and JSON.
func (v *Receiver) HTTP(g *receivers.Gate) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+Path, g.Handler(v.post, refuseHTTP, checkType))
	mux.HandleFunc("POST /v1/", func(w http.ResponseWriter, r *http.Request) {
		why := receivers.Refuse(receivers.Unsupported, http.StatusNotFound, "this receiver accepts only metrics, at %s", Path)
		g.Refused(why)
		refuseHTTP(w, r, why)
	})
	return mux
}

const (
	typeProtobuf = "application/x-protobuf"
	typeJSON     = "application/json"
)

// typeOf returns the media type of a request, "" if it is missing or invalid.
func typeOf(r *http.Request) string {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// checkType refuses a request that is not OTLP, by its header.
func checkType(r *http.Request) error {
	if kind := typeOf(r); kind != typeProtobuf && kind != typeJSON {
		return receivers.Refuse(receivers.Unsupported, http.StatusUnsupportedMediaType, "the Content-Type is neither %s nor %s", typeProtobuf, typeJSON)
	}
	return nil
}

func isJSON(r *http.Request) bool { return typeOf(r) == typeJSON }

func (v *Receiver) post(w http.ResponseWriter, r *receivers.Request) error {
	kind := typeOf(r.Request)
	return r.Once(w, func() (receivers.Answer, bool, error) {
		refused, why, err := v.receive(r, r.Body, kind == typeJSON)
		return func(w http.ResponseWriter) { answer(w, kind, refused, why) }, why == "", err
	})
}

// answer answers a stored request of that content type.
func answer(w http.ResponseWriter, kind string, refused uint64, why string) {
	w.Header().Set("Content-Type", kind)
	if kind != typeJSON {
		_, _ = w.Write(response(refused, why)) // an error means that the client has gone
		return
	}
	answer := map[string]any{}
	if why != "" {
		answer["partialSuccess"] = map[string]string{"rejectedDataPoints": strconv.FormatUint(refused, 10), "errorMessage": why}
	}
	_ = json.NewEncoder(w).Encode(answer) // as above
}

// response returns an ExportMetricsServiceResponse. Without refused points, why is a warning.
func response(refused uint64, why string) []byte {
	if why == "" {
		return nil
	}
	var partial []byte
	partial = protowire.AppendTag(partial, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, refused)
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, why)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}

// refuseHTTP answers with a google.rpc.Status, in the form of the request.
func refuseHTTP(w http.ResponseWriter, r *http.Request, why *receivers.Refusal) {
	why.Head(w)
	code := grpcCode(why)
	var body []byte
	if isJSON(r) {
		w.Header().Set("Content-Type", typeJSON)
		body, _ = json.Marshal(map[string]any{"code": code, "message": why.Text}) // cannot fail for a number and a text
	} else {
		w.Header().Set("Content-Type", typeProtobuf)
		body = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(code))
		body = protowire.AppendString(protowire.AppendTag(body, 2, protowire.BytesType), why.Text)
	}
	w.WriteHeader(why.Status)
	_, _ = w.Write(body) // an error means that the client has gone
}
