package exposition

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// corpus is the bodies of Prometheus' own test cases, by the name of the file.
func corpus(t testing.TB) map[string][][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/prometheus/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("find the corpus: %v, %d files", err, len(files))
	}
	all := map[string][][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			var body string
			if err := json.Unmarshal(lines.Bytes(), &body); err != nil {
				var binary struct{ Base64 string }
				if err := json.Unmarshal(lines.Bytes(), &binary); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				b, err := base64.StdEncoding.DecodeString(binary.Base64)
				if err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				body = string(b)
			}
			name := filepath.Base(file)
			all[name] = append(all[name], []byte(body))
		}
	}
	return all
}

// hostile returns short bodies that break Prometheus' parsers, or that have rare features.
func hostile() []string {
	return []string{
		endless,
		"# TYPE a counter\na_total 1\na_created 2 # {\"a=7\n# EOF\n",
		"# TYPE aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa counter\na 1\na_created 1\n# EOF\n",
		"# TYPE a counter\n{x=\"0123456789\",\"a_total\"} 1\n{x=\"0123456789\",\"a_created\"} 1\n# EOF\n",
		"# TYPE a histogram\na_bucket{le=\"-Inf\"} 1\na_bucket{le=\"+Inf\"} 1\na_created 5\na_count 1\na_sum 1\nb_bucket{le=\"1\"} 1\n# EOF\n",
		"# TYPE a summary\na{quantile=\"0.5\",x=\"1\"} 1\na_count{x=\"1\"} 1\na_created{x=\"1\"} 7\na_sum{x=\"1\"} 1\na_count{x=\"2\"} 3\n# TYPE b counter\nb_total 1\n# EOF\n",
		"# HELP \"a\nb\" \"c\n{\"a\nb\",\"c\nd\"=\"e\\\\\"} 1\n",
		"# TYPE a histogram\n# UNIT a s\na{x=\"y\"} {count:2,sum:3,schema:3,zero_threshold:0.1,zero_count:0,positive_spans:[0:3],positive_buckets:[1,0,1],bucket:[1:1,+Inf:2]} 5 st@4 # {t=\"1\"} 1 2 # {t=\"2\"} 3 4\n# EOF\n",
		"\x00\x00\x00",
		"\x80\x80\x80\x80\x80\x00",
	}
}
