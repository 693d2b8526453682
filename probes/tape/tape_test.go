package tape_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"hwsagent/probes/tape"
)

// What is written is read again, whatever the questions and answers hold.
func TestFile(t *testing.T) {
	from := tape.New("example")
	for _, e := range []tape.Exchange{
		{Ask: "plain", Status: tape.OK, Answer: []byte("two\nlines\n")},
		{Ask: "", Status: tape.OK},
		{Ask: "no end", Status: "exit 3", Answer: []byte("\n> not a question\n= nor a status")},
		{Ask: "one\nof two", Status: "odd\x00", Answer: []byte("\x00\xff binary")},
		{Ask: `"quoted"`, Status: tape.OK, Answer: []byte("tab\tand ünïcode")},
		{Ask: "carriage", Status: tape.OK, Answer: []byte("a\r\nb")},
		{Ask: "long", Status: tape.OK, Answer: bytes.Repeat([]byte{1, 2, 3}, 1000)},
	} {
		from.Add(e.Ask, e.Status, e.Answer)
	}
	var b bytes.Buffer
	if err := from.Write(&b); err != nil || !tape.Is(b.Bytes()) {
		t.Fatal(err)
	}
	got, err := tape.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got.Type != "example" || !reflect.DeepEqual(got.Exchanges, from.Exchanges) {
		t.Errorf("%+v", got.Exchanges)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "line 1",
		"1.3.6.1|4|x\n":                          "line 1",
		"hwsagent-recording 2 smart\n":           "later version",
		"hwsagent-recording 1 x\n|early\n":       "line 2: an answer stands before",
		"hwsagent-recording 1 x\n> a\n#0\n":      "line 3",
		"hwsagent-recording 1 x\n> a\n\n":        "line 3: is empty",
		"hwsagent-recording 1 x\n> \"a\n":        "line 2: has a quoted text",
		"hwsagent-recording 1 x\n> a\n?what\n":   "line 3: begins with",
		"hwsagent-recording 1 x\n> a\n= \"\\q\"": "line 3",
	} {
		if _, err := tape.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The answers to a repeated question come in their order, and then the last one again.
func TestPlayer(t *testing.T) {
	from := tape.New("x")
	from.Add("a", tape.OK, []byte("1"))
	from.Add("b", tape.OK, []byte("3"))
	from.Add("a", tape.OK, []byte("2"))
	p := from.Player()
	got := ""
	for _, ask := range []string{"a", "a", "a", "b", "c"} {
		if e, ok := p.Next(ask); ok {
			got += string(e.Answer)
		} else {
			got += "-"
		}
	}
	if got != "1223-" {
		t.Error(got)
	}
}

// A program's output, exit status and errors are played as they were.
func TestPrograms(t *testing.T) {
	from := tape.New("x")
	run := from.Record(func(_ context.Context, args ...string) ([]byte, error) {
		switch args[0] {
		case "good":
			return []byte("fine"), nil
		case "odd":
			out, err := exec.Command("/bin/sh", "-c", "echo half; exit 4").Output()
			return out, err
		}
		return nil, errors.New("no such program")
	})
	for _, player := range []func() tape.Run{func() tape.Run { return run }, func() tape.Run { return from.Player().Run() }} {
		play := player()
		if out, err := play(t.Context(), "good", "1"); string(out) != "fine" || err != nil {
			t.Errorf("%q %v", out, err)
		}
		var status *exec.ExitError
		if out, err := play(t.Context(), "odd"); string(out) != "half\n" || !errors.As(err, &status) || err.Error() == "" {
			t.Errorf("%q %v", out, err)
		}
		if _, err := play(t.Context(), "bad"); err == nil || err.Error() != "no such program" {
			t.Error(err)
		}
	}
	if _, err := from.Player().Run()(t.Context(), "never"); err == nil {
		t.Error("an answer to what was never asked")
	}
}

func TestRedactor(t *testing.T) {
	if _, err := tape.NewRedactor([]string{"all"}); err == nil || !strings.Contains(err.Error(), "the kinds are names") {
		t.Error(err)
	}
	r, err := tape.NewRedactor(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Learn(tape.Serials, "WX41D123ABCD")
	r.Learn(tape.Serials, "1234567")
	r.Learn(tape.Serials, "LETTERS")
	r.Learn(tape.Serials, "0000-0000")
	r.Learn(tape.Serials, "Not Specified")
	r.Learn(tape.Names, "rack7")
	for _, kept := range []string{
		"0000-0000", "LETTERSONLY", "Not Specified", "91234567 bytes", "crack7s", "0000:00:1f.2", "12:30:45", "version 3.2.1.0", "127.0.0.1", "WS-C3750G-24TS", `{"value": 30}`,
		"1.3.6.1.4.1.9.1.516", ".1.3.6.1", "firmware 5.1.2.3", `{"FirmwareVersion":"5.1.2.3"}`, "<vbios_version>9.4.3.1</vbios_version>", `VAR ups driver.version "2.8.0.1"`,
	} {
		if got := r.Value(kept); got != kept {
			t.Errorf("%q became %q", kept, got)
		}
	}
	for _, gone := range []string{
		"ata-WDC_wx41d123abcd-part1", "serial 1234567.", "S/N LETTERS", "on rack7: 3", "192.168.4.5", "8.8.4.4", `{"Version":"5.1.2.3","Gateway":"5.6.7.8"}`, "fe80::1:2:3", "00:1b:21:aa:bb:cc", "4c4c4544-0042-3010-8051-b4c04f4d4e32", "jane@example.org", "FOC1234X5YZ",
	} {
		if got := r.Value(gone); got == gone || len(gone) > 12 && strings.ContainsAny(gone, "-_:") && strings.Count(got, "-") != strings.Count(gone, "-") {
			t.Errorf("%q became %q", gone, got)
		}
	}
	if a, b := r.Text("WX41D123ABCD"), r.Text("wx41d123abcd"); !strings.EqualFold(a, b) {
		t.Errorf("the two cases of one serial number became %q and %q", a, b)
	}
	if n := r.Text("1234567"); strings.HasPrefix(n, "0") {
		t.Errorf("a number begins with 0: %s", n)
	}
}

// TestRedactorReplacesWholeHardwareAddresses: the address of an InfiniBand interface has 20 bytes, of which the last name the card.
func TestRedactorReplacesWholeHardwareAddresses(t *testing.T) {
	const address, tail = "80:00:02:08:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:1a:2b:3c", "2b:3c"
	left := 0
	for range 8 { // a stand-in may end as the address does by chance
		r, err := tape.NewRedactor(nil)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Text("link/infiniband " + address + " brd")
		if strings.Contains(got, tail) {
			left++
		}
		if len(got) != len("link/infiniband "+address+" brd") || r.Replaced()[tape.MACs] != 1 || r.Replaced()[tape.Addresses] != 0 {
			t.Errorf("%q, replaced %v", got, r.Replaced())
		}
	}
	if left == 8 {
		t.Errorf("%s is left of the address", tail)
	}
	kept, err := tape.NewRedactor([]string{tape.MACs})
	if err != nil {
		t.Fatal(err)
	}
	if got := kept.Text(address); got != address {
		t.Errorf("the address is kept, and became %s", got)
	}
}

// TestStandInDiffersFromTheText: a short text is not its own stand-in by chance, and both cases have the same one.
func TestStandInDiffersFromTheText(t *testing.T) {
	for range 200 { // one in nine stand-ins of a single digit would be the digit itself
		r, err := tape.NewRedactor(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"a", "Z", "7", "10", "a1", "-b-"} {
			got, upper := string(r.Shape(tape.Names, []byte(text))), string(r.Shape(tape.Names, []byte(strings.ToUpper(text))))
			if strings.EqualFold(got, text) || len(got) != len(text) || !strings.EqualFold(got, upper) {
				t.Fatalf("%q became %q, in capitals %q", text, got, upper)
			}
		}
		for _, text := range []string{"", "0", "-00:"} {
			if got := string(r.Shape(tape.Names, []byte(text))); got != text {
				t.Fatalf("%q, without anything to replace, became %q", text, got)
			}
		}
	}
}

// TestAccountsStayInPaths: an account that is called as a part of every service's paths is replaced elsewhere only.
func TestAccountsStayInPaths(t *testing.T) {
	r, err := tape.NewRedactor(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.LearnAccount("redfish")
	taped := tape.New("redfish")
	taped.Add("/redfish/v1/Systems/redfish?x=redfish", tape.OK, []byte(`{"@odata.id": "/redfish/v1", "Links": "\/redfish\/v1\/Chassis", "User": "redfish", "Text": "Redfish logged in by (redfish)"}`))
	r.Tape(taped)
	e := taped.Exchanges[0]
	if e.Ask != "/redfish/v1/Systems/redfish?x=redfish" {
		t.Errorf("the path became %s", e.Ask)
	}
	got := string(e.Answer)
	if !strings.Contains(got, `"@odata.id": "/redfish/v1"`) || !strings.Contains(got, `"\/redfish\/v1\/Chassis"`) {
		t.Errorf("paths changed: %s", got)
	}
	if strings.Contains(got, `"redfish"`) || strings.Contains(got, "(redfish)") || strings.Contains(got, "Redfish logged") {
		t.Errorf("the account is left: %s", got)
	}
}

// Numbers and texts of JSON are found by their keys, and the JSON stays JSON.
func TestLearnJSON(t *testing.T) {
	r, err := tape.NewRedactor([]string{tape.MACs})
	if err != nil {
		t.Fatal(err)
	}
	text := `{"serial": ["AB12", {"id": 34359738368}], "wwn": {"id": 34359738367, "naa": 5}, "rest": 34359738369}`
	r.LearnJSON([]byte(text), func(parent, key string) string {
		if key == "serial" || parent == "wwn" {
			return tape.Serials
		}
		return ""
	})
	got := r.Text(text)
	if strings.Contains(got, "AB12") || strings.Contains(got, "34359738367") || !strings.Contains(got, `"rest": 34359738369`) || !strings.Contains(got, `"naa": 5}`) {
		t.Error(got)
	}
	r.LearnJSON([]byte("{broken"), nil)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("hwsagent-recording 1 smart\n> a\n= exit 4\n|x\n\\y\n> b\n#00ff\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		from, err := tape.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := from.Write(&b); err != nil {
			t.Fatal(err)
		}
		again, err := tape.Read(&b)
		if err != nil || !reflect.DeepEqual(again.Exchanges, from.Exchanges) {
			t.Fatalf("%v\n%+v\n%+v", err, again, from.Exchanges)
		}
	})
}

// TestRedactorReadsEveryAnswer: names, numbers and addresses are replaced whatever the line ends and the character set of
// an answer are, and however JSON writes them.
func TestRedactorReadsEveryAnswer(t *testing.T) {
	for what, body := range map[string]string{
		"LF":       "{\n \"SerialNumber\": \"CZ12345ABC\",\n \"HostName\": \"db17-prod\",\n \"MACAddress\": \"3c:fd:fe:12:34:56\",\n \"IPv4\": \"10.20.30.40\"\n}\n",
		"CRLF":     "{\r\n \"SerialNumber\": \"CZ12345ABC\",\r\n \"HostName\": \"db17-prod\",\r\n \"MACAddress\": \"3c:fd:fe:12:34:56\",\r\n \"IPv4\": \"10.20.30.40\"\r\n}\r\n",
		"Latin-1":  "{ \"Vendor\": \"M\xfcller\", \"SerialNumber\": \"CZ12345ABC\", \"HostName\": \"db17-prod\", \"MACAddress\": \"3c:fd:fe:12:34:56\", \"IPv4\": \"10.20.30.40\"}",
		"escaped":  `{ "SerialNumber": "CZ12345\/ABC", "HostName": "db17-pr\u00fcf"}`,
		"nested":   `{"a": [{"b": {"SerialNumber": ["CZ12345ABC"]}}], "HostName": "db17-prod"} and more`,
		"a number": `{"SerialNumber": 1234567890, "HostName": "db17-prod"}`,
	} {
		r, err := tape.NewRedactor(nil)
		if err != nil {
			t.Fatal(err)
		}
		taped := tape.New("redfish")
		taped.Add("/redfish/v1/Systems/1", tape.OK, []byte(body))
		r.LearnJSON(taped.Exchanges[0].Answer, func(_, key string) string {
			return map[string]string{"SerialNumber": tape.Serials, "HostName": tape.Names}[key]
		})
		r.Tape(taped)
		for _, secret := range []string{"CZ12345", "1234567890", "db17-pr", "3c:fd:fe:12:34:56", "10.20.30.40"} {
			if strings.Contains(string(taped.Exchanges[0].Answer), secret) {
				t.Errorf("%s: %q is in the recording: %s", what, secret, taped.Exchanges[0].Answer)
			}
		}
	}
}
