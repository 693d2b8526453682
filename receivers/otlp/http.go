package otlp

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"hwsagent/receivers"
)

// Path is where metrics are to be sent over HTTP.
const Path = "/v1/metrics"

// HTTP is the handler of OTLP over HTTP, protobuf and JSON.
func (v *Receiver) HTTP(g *receivers.Gate) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+Path, g.Handler(v.post, refuseHTTP))
	mux.HandleFunc("POST /v1/", func(w http.ResponseWriter, r *http.Request) {
		why := receivers.Refuse(receivers.Unsupported, http.StatusNotFound, "this receiver takes metrics only, on %s", Path)
		g.Refused(why)
		refuseHTTP(w, r, why)
	})
	return mux
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

func (v *Receiver) post(w http.ResponseWriter, r *receivers.Request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-protobuf" && kind != "application/json" {
		return receivers.Refuse(receivers.Unsupported, http.StatusUnsupportedMediaType, "the Content-Type is neither application/x-protobuf nor application/json")
	}
	req, err := v.decode(r, r.Body, isJSON(r.Request))
	if err != nil {
		return err
	}
	refused, why, err := v.store(r, req.Metrics())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", kind)
	if !isJSON(r.Request) {
		_, _ = w.Write(response(refused, why)) // the client has gone, or gets it
		return nil
	}
	answer := map[string]any{}
	if refused > 0 {
		answer["partialSuccess"] = map[string]string{"rejectedDataPoints": strconv.FormatUint(refused, 10), "errorMessage": why}
	}
	_ = json.NewEncoder(w).Encode(answer) // as above
	return nil
}

// response is an ExportMetricsServiceResponse.
func response(refused uint64, why string) []byte {
	if refused == 0 {
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
		w.Header().Set("Content-Type", "application/json")
		body, _ = json.Marshal(map[string]any{"code": code, "message": why.Text}) // of a number and a text
	} else {
		w.Header().Set("Content-Type", "application/x-protobuf")
		body = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(code))
		body = protowire.AppendString(protowire.AppendTag(body, 2, protowire.BytesType), why.Text)
	}
	w.WriteHeader(why.Status)
	_, _ = w.Write(body) // who does not read it has gone
}
