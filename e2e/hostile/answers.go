package hostile

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// statuses answer everything with a status alone.
func statuses() []Behaviour {
	// For an hour after the receiver refused a control, its refusals of samples count as failures.
	again := func(code int) string {
		if slices.Contains([]int{400, 409, 413, 422}, code) {
			return retrying
		}
		return ""
	}
	var all []Behaviour
	add := func(code int, state string) {
		all = append(all, Behaviour{
			Name: fmt.Sprint("status ", code), State: state, Again: again(code), Says: fmt.Sprint(code),
			answer: func(x *Exchange) bool { return x.status(code, "", "") },
		})
	}
	for _, code := range []int{
		101, 300, 304, 305, 399, 400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 417, 418, 421, 422, 423, 424, 426, 428, 431, 451, 499, 600, 999,
	} {
		add(code, held)
	}
	for _, code := range []int{408, 425, 429, 500, 501, 502, 503, 504, 505, 507, 511, 520, 529, 599} {
		add(code, retrying)
	}
	for _, code := range []int{200, 201, 202, 203, 206, 208, 226, 299} {
		all = append(all, Behaviour{Name: fmt.Sprint("status ", code), answer: func(x *Exchange) bool {
			return x.store(false) && x.say(fmt.Sprintf("HTTP/1.1 %d %s\r\n%sContent-Length: 0\r\n\r\n", code, http.StatusText(code), x.head()))
		}})
	}
	early := func(name, text string) Behaviour {
		return Behaviour{Name: name, answer: func(x *Exchange) bool { return x.say(text) && x.accept() }}
	}
	return append(all,
		early("100 before the answer", "HTTP/1.1 100 Continue\r\n\r\n"),
		early("102 and 103 before the answer", "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"),
		Behaviour{Name: "1xx without end", State: retrying, answer: func(x *Exchange) bool {
			return x.store(true) && x.repeat("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n", atOnce)
		}},
		Behaviour{Name: "204 with a body", answer: func(x *Exchange) bool {
			return x.store(false) && x.say("HTTP/1.1 204 No Content\r\n"+x.head()+"Content-Length: 5\r\n\r\nhello") && false
		}},
	)
}

// redirects point elsewhere, where no request may arrive.
func redirects() []Behaviour {
	to := func(code int, name string, where func(x *Exchange) string) Behaviour {
		return Behaviour{Name: fmt.Sprint(code, " to ", name), State: held, Says: fmt.Sprint(code), answer: func(x *Exchange) bool {
			return x.status(code, "Location: "+where(x)+"\r\n", "")
		}}
	}
	place := func(format string) func(x *Exchange) string {
		return func(x *Exchange) string { return fmt.Sprintf(format, x.c.s.o.Elsewhere) }
	}
	// The HTTP library reads a Location first, so the status is not known.
	unreadable := to(307, "nothing that can be read", func(*Exchange) string { return "http://[::1:%zz/" })
	unreadable.Says = "the URL leads elsewhere"
	return []Behaviour{
		unreadable,
		to(301, "another host", place("http://%s/api/v1/write")),
		to(302, "another port, with a user", place("http://user:password@%s/")),
		to(303, "another host without a scheme", place("//%s/")),
		to(307, "another host", place("http://%s/api/v1/write")),
		to(308, "another scheme", place("https://%s/api/v1/write")),
		to(307, "itself", func(x *Exchange) string { return x.c.s.URL() }),
		to(308, "another path", func(*Exchange) string { return "/elsewhere" }),
		{Name: "200 with Refresh and Location", answer: func(x *Exchange) bool {
			return x.store(false) && x.say("HTTP/1.1 200 OK\r\n"+x.head()+place("Refresh: 0; url=http://%[1]s/\r\nLocation: http://%[1]s/\r\nContent-Length: 0\r\n\r\n")(x))
		}},
		{Name: "503 with Alt-Svc", State: retrying, Says: "503", answer: func(x *Exchange) bool {
			return x.status(503, place("Alt-Svc: h2=\"%s\"; ma=86400; persist=1\r\n")(x), "")
		}},
	}
}

// waits request a pause, in every form.
func waits() []Behaviour {
	var all []Behaviour
	for _, code := range []int{429, 503} {
		add := func(name string, pause time.Duration, head func() string) {
			all = append(all, Behaviour{
				Name: fmt.Sprint(code, ", Retry-After ", name), State: retrying, Says: fmt.Sprint(code), Pause: pause,
				answer: func(x *Exchange) bool { return x.status(code, "Retry-After: "+head()+"\r\n", "slow down") },
			})
		}
		is := func(text string) func() string { return func() string { return text } }
		date := func(d time.Duration) func() string {
			return func() string { return time.Now().UTC().Add(d).Format(http.TimeFormat) }
		}
		add("in seconds", 2*time.Second, is("2"))
		add("as a date", time.Second, date(2*time.Second)) // a date has whole seconds
		add("of the past", 0, date(-time.Hour))
		add("0", 0, is("0"))
		add("negative", 0, is("-5"))
		add("a fraction", 0, is("1.5"))
		add("garbage", 0, is("tomorrow, about noon"))
		add("empty", 0, is(""))
		add("huge", 5*time.Minute, is("99999999999999999999"))
		add("in a year", 5*time.Minute, date(365*24*time.Hour))
		add("twice", 2*time.Second, is("2\r\nRetry-After: 0"))
	}
	return all
}
