package split

// Kind is the meaning of an answer for the samples of its request.
type Kind uint8

// The kinds of answers.
const (
	Took      Kind = iota // all are stored
	Late                  // the receiver's database has something newer of a series
	Duplicate             // it has another value at the time of a sample
	TooOld                // it accepts nothing this old
	Bad                   // it refuses a sample for another known reason
	Opaque                // a refusal without a known reason
	TooLarge              // the request is too large
	Failed                // the receiver fails at the request each time
	None                  // there is no control to send; answers a control request only
)

// final reports whether the receiver's database itself refused.
func (k Kind) final() bool { return k == Late || k == Duplicate || k == TooOld }

// Receiver is what a receiver does with the good part of a request that it refuses.
type Receiver uint8

// The receivers.
const (
	Unknown   Receiver = iota
	RollsBack          // it stores no part of it, like Prometheus
	KeepsGood          // it stores the good part, like Mimir, Cortex and Thanos
)

// Standing is the knowledge about a sample's series. Requests are sent in the order of these values, so that a worse standing
// cannot use up the budget of a better one.
type Standing uint8

// The standings.
const (
	Fresh    Standing = iota // the target has nothing as new of the series, as far as is known
	Unproven                 // the target is not known to have accepted any sample of the series
	Refused                  // the target refuses the whole series, as far as is known
	Stale                    // the target has a sample of the series that is as new or newer
)

// Sample describes a sample of the refused request.
type Sample struct {
	Series    uint64
	T         int64  // the timestamp
	Partition uint16 // for Sent ones: the stored samples of a partition are a prefix of it
	Standing  Standing
	Sent      bool // it may be stored already
	Blamed    bool // refused alone before, without a known reason, and not given up: if it is accepted now, refusals are no evidence
	Aged      bool // so old that the answer "too old" needs no proof

	// Refusals is how many samples of a Refused series were refused alone, with proof, at
	// most RefusalsThatSpeak. Lately is set if one of these refusals is less than a minute old.
	Refusals uint8
	Lately   bool
}

// RefusalsThatSpeak is how many samples of a series must be refused alone, with proof, before they stand for
// other samples of the series.
const RefusalsThatSpeak = 3

// Config is the machine's input besides the samples.
type Config struct {
	Receiver Receiver
	Limit    int    // samples in a request
	Shards   int    // number of shards, each with its own machine: they share the budget of witness requests for Refused series
	Turns    int    // of a proof for an opaque refusal; 0: no proof is possible at present
	More     bool   // later samples than the machine's may be stored too
	AnyOrder bool   // the receiver accepts samples in any order, so that no refusal shows that a sample is stored
	Seed     uint64 // picks the witnesses, and the numbers of controls
}

const (
	// FullTurns is how many turns a proof for an opaque refusal takes: if one of two receivers behind a
	// balancer refuses everything at random, less than one attempt in 8,000 rejects a good sample.
	FullTurns = 5
	// QuickTurns is the number of turns soon after a full proof, and for a refusal with a known reason.
	QuickTurns = 2
	// failedTurns is the number of turns for a sample that the receiver fails at or denies: if one of two receivers behind
	// a balancer fails at everything at random, less than one attempt in 90,000 rejects a good sample.
	failedTurns = 6
	// fullCost and quickCost are the most requests of a proof with FullTurns or QuickTurns.
	fullCost  = 15
	quickCost = 4
	// budget is how many requests a machine may send, and perDelivered how many more for each delivered sample.
	budget       = 64
	perDelivered = 2
	// renewals is how often the budget is renewed if samples are left that were not searched when it was spent; each batch
	// of them adds one renewal.
	renewals = 3
	// witnesses is how many samples are sent alone on behalf of all Stale or Refused ones.
	witnesses = 3
	// opaqueWitnesses is the most additional Refused samples sent alone if the receiver gives no known reason: samples
	// without a witness end unconfirmed. Together with the proof for all of them it stays below the budget.
	opaqueWitnesses = 40
	// newestAsked is how many of the newest samples are sent alone on behalf of all that are too old.
	newestAsked = 2
)

// Request is the next request to send.
type Request struct {
	Samples []int // indices, in log order
	Control bool  // send a sample that the target accepted before instead
	Once    bool  // a failure is an answer: do not retry

	// Withhold: if the samples are accepted, do not assign their outcome yet.
	Withhold bool
}

// Reply is the answer to a request.
type Reply struct {
	Kind     Kind
	Doubt    bool     // the samples may be stored: an earlier attempt had no final answer
	Receiver Receiver // its kind, as far as its answers show it
	Ref      int      // identifies the answer; see Verdict

	// Unwritten is how many samples of a refused request the receiver reports as not stored, while it stored others. 0: not reported.
	Unwritten int
}

// Outcome is the final result for a sample.
type Outcome uint8

// The outcomes.
const (
	none Outcome = iota
	Delivered
	Resent      // it was stored before
	Rejected    // the receiver does not accept it
	Unconfirmed // the reason of its refusal is unknown
)

// Verdict is the outcome of some samples.
type Verdict struct {
	Samples []int
	Outcome Outcome
	Ref     int // the Reply.Ref of the answer that refused them

	// Bad, if not 0, is how many of the samples have the outcome; it is unknown which. The others are Resent.
	Bad int
}
