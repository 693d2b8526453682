package recording

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gosnmp/gosnmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// all has each tag once, out of order, and lines that stand for nothing.
const all = `1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.9
1.3.6.1.2.1.1.1.0|4|a|b
# a comment

1.3.6.1.2.1.1.3.0|67|4711
1.3.6.1.2.1.2.1.0|2|-5
1.3.6.1.2.1.2.2.1.10.1|65|4294967295
1.3.6.1.2.1.2.2.1.5.1|66|7
1.3.6.1.2.1.31.1.1.1.6.1|70|18446744073709551615
1.3.6.1.2.1.4.20.1.1.1|64x|c0000207
1.3.6.1.2.1.4.20.1.1.2|64|192.0.2.8
1.3.6.1.2.1.2.2.1.6.1|4x|00ff 41
1.3.6.1.2.1.1.6.0|4e|one\x0atwo
1.3.6.1.4.1.1.1.0|68x|9f780441480000
1.3.6.1.4.1.1.2.0|68x|9f79084029000000000000
1.3.6.1.2.1.1.1.0|4|the second one of an OID
`

func TestParse(t *testing.T) {
	rec, notes, err := Parse(strings.NewReader(all + "rubbish\n1.3.6.1|2|x\n1.3.6.1.5|2:numeric|rate=1\n1.3.6.1.6|4x|0g\n1.3|99|1\n"))
	if err != nil || len(notes) != 5 {
		t.Fatalf("%v, %q", err, notes)
	}
	var got []string
	for _, v := range rec.All() {
		got = append(got, fmt.Sprintf("%s %s %v", v.Name, v.Type, v.Value))
	}
	want := []string{
		".1.3.6.1.2.1.1.1.0 OctetString [97 124 98]", ".1.3.6.1.2.1.1.2.0 ObjectIdentifier .1.3.6.1.4.1.9", ".1.3.6.1.2.1.1.3.0 TimeTicks 4711",
		".1.3.6.1.2.1.1.6.0 OctetString [111 110 101 10 116 119 111]", ".1.3.6.1.2.1.2.1.0 Integer -5", ".1.3.6.1.2.1.2.2.1.5.1 Gauge32 7",
		".1.3.6.1.2.1.2.2.1.6.1 OctetString [0 255 65]", ".1.3.6.1.2.1.2.2.1.10.1 Counter32 4294967295", ".1.3.6.1.2.1.4.20.1.1.1 IPAddress 192.0.2.7",
		".1.3.6.1.2.1.4.20.1.1.2 IPAddress 192.0.2.8", ".1.3.6.1.2.1.31.1.1.1.6.1 Counter64 18446744073709551615", ".1.3.6.1.4.1.1.1.0 OpaqueFloat 12.5", ".1.3.6.1.4.1.1.2.0 OpaqueDouble 12.5",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestServe asks by each kind of request, in both versions, for all that there is.
func TestServe(t *testing.T) {
	rec, _, err := Parse(strings.NewReader(all))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Serve(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	host, port, _ := strings.Cut(a.Addr(), ":")
	for _, version := range []gosnmp.SnmpVersion{gosnmp.Version1, gosnmp.Version2c} {
		g := &gosnmp.GoSNMP{Target: host, Community: "any", Version: version, Timeout: 5 * time.Second, MaxRepetitions: 4}
		if _, err := fmt.Sscan(port, &g.Port); err != nil {
			t.Fatal(err)
		}
		if err := g.Connect(); err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		got, err := g.WalkAll("1.3.6.1")
		if version == gosnmp.Version2c {
			got, err = g.BulkWalkAll("1.3.6.1")
		}
		if err != nil || len(got) != rec.Len() {
			t.Errorf("v%s: %d of %d variables, %v", version, len(got), rec.Len(), err)
		}
		for i := range got {
			if want := rec.All()[i]; got[i].Name != want.Name || fmt.Sprint(got[i].Value) != fmt.Sprint(want.Value) {
				t.Errorf("v%s: %v, want %v", version, got[i], want)
			}
		}
		p, err := g.Get([]string{"1.3.6.1.2.1.1.3.0", "1.3.6.1.9.0"})
		if version == gosnmp.Version1 {
			if err != nil || p.Error != gosnmp.NoSuchName {
				t.Errorf("v1: %v, %v", p, err)
			}
		} else if err != nil || p.Variables[1].Type != gosnmp.NoSuchObject || p.Variables[0].Value != uint32(4711) {
			t.Errorf("v2c: %v, %v", p, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(all)
	f.Fuzz(func(t *testing.T, text string) {
		rec, _, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, v := range rec.All() {
			resp := rec.Answer(&gosnmp.SnmpPacket{Version: gosnmp.Version2c, PDUType: gosnmp.GetRequest, Variables: []gosnmp.SnmpPDU{{Name: v.Name}}})
			if len(resp.Variables) != 1 || resp.Variables[0].Name != v.Name {
				t.Errorf("%s is not found: %v", v.Name, resp.Variables)
			}
		}
	})
}
