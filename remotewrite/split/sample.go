package split

// Kind is what an answer says about the samples of its request.
type Kind uint8

// The kinds of answers.
const (
	Took      Kind = iota // all are stored
	Late                  // the receiver's database has something newer of a series
	Duplicate             // it has another value at the time of a sample
	TooOld                // it takes nothing that is so old
	Bad                   // it refuses a sample for another reason, in words that are known
	Opaque                // a refusal that does not say why in known words
	TooLarge              // the request is too large
	Failed                // the receiver fails at the request each time
	None                  // there is no such sample: the answer to a control only
)

// final reports whether a refusal is the receiver's database's.
func (k Kind) final() bool { return k == Late || k == Duplicate || k == TooOld }

// Receiver says what a receiver does with the good part of a request that it refuses.
type Receiver uint8

// The receivers.
const (
	Unknown   Receiver = iota
	RollsBack          // it stores nothing of it, as Prometheus
	KeepsGood          // it stores the good part, as Mimir, Cortex and Thanos
)

// Standing is what is known of a sample's series. The order is that of sending: no budget of one standing is spent
// by one behind it.
type Standing uint8

// The standings.
const (
	Fresh    Standing = iota // the target has nothing as new of the series
	Unproven                 // the target is not known to have taken any sample of the series
	Refused                  // the target refuses the whole series, as far as is known
	Stale                    // the target has something as new, or newer, of the series
)

// Sample is what is known of a sample of the refused request.
type Sample struct {
	Series    uint64
	T         int64  // its time
	Partition uint16 // of Sent ones: the stored samples of a partition are its first ones
	Standing  Standing
	Sent      bool // it may be stored already
	Blamed    bool // it was refused alone before, in no known words, and not given up: if it is taken now, refusals are no evidence
	Aged      bool // it is so old that the words "too old" need no proof

	// Refusals is how many samples of a series with the standing Refused were refused alone, with proof, at
	// most RefusalsThatSpeak. Lately says that one was within a minute.
	Refusals uint8
	Lately   bool
}

// RefusalsThatSpeak is how many samples of a series must be refused alone, with proof, before they speak for
// other samples of the series.
const RefusalsThatSpeak = 3

// Config is what the machine has to know besides the samples.
type Config struct {
	Receiver Receiver
	Limit    int    // samples in a request
	Shards   int    // that have machines of their own: they ask for the series that are refused together
	Turns    int    // of a proof for an opaque refusal; 0: there can be none at present
	More     bool   // there are more samples that may be stored, later ones, than those of the machine
	AnyOrder bool   // the receiver takes samples in any order, so that no refusal shows that a sample is stored
	Seed     uint64 // picks the samples that speak for others, and the numbers of controls
}

const (
	// FullTurns is how many turns a proof for an opaque refusal takes: with one of two receivers behind a
	// balancer refusing everything at random, a good sample passes for a bad one in less than one of 8,000 attempts.
	FullTurns = 5
	// QuickTurns is the same soon after a full proof, and for a refusal in words that are known.
	QuickTurns = 2
	// failedTurns is the same for a sample that the receiver fails at.
	failedTurns = 3
	// fullCost and quickCost are the most requests that a proof of FullTurns or QuickTurns takes.
	fullCost  = 15
	quickCost = 4
	// budget is how many requests a machine may take, and perDelivered more for each delivered sample.
	budget       = 64
	perDelivered = 2
	// renewals is how often the budget is renewed, where samples are left that were not searched when it was spent; and once more
	// for each batch of them.
	renewals = 3
	// witnesses is how many samples are asked for alone in the name of all Stale or Refused ones.
	witnesses = 3
	// opaqueWitnesses is how many more Refused ones are asked for alone at most where the receiver does not say why it refuses
	// them: what nothing speaks for is unconfirmed. With the proof for all of them it is less than the budget.
	opaqueWitnesses = 40
	// newestAsked is how many of the newest samples are asked for alone in the name of all that are too old.
	newestAsked = 2
)

// Request is what to send next.
type Request struct {
	Samples []int // in the log's order, as indices
	Control bool  // send a sample that the target took before instead
	Once    bool  // a failure is an answer: do not try again

	// Withhold: if the samples are taken, they do not have their outcome yet.
	Withhold bool
}

// Reply is the answer to a request.
type Reply struct {
	Kind     Kind
	Doubt    bool     // the samples may be stored: an earlier attempt had no final answer
	Receiver Receiver // its kind, as far as its answers have shown it
	Ref      int      // names the answer; see Verdict

	// Unwritten is how many samples of a refused request the receiver says are not stored, where it stored others. 0: it does not say.
	Unwritten int
}

// Outcome is what became of a sample.
type Outcome uint8

// The outcomes.
const (
	none Outcome = iota
	Delivered
	Resent      // it was stored before
	Rejected    // the receiver does not take it
	Unconfirmed // it is not known why it was refused
)

// Verdict is the outcome of some samples.
type Verdict struct {
	Samples []int
	Outcome Outcome
	Ref     int // of the answer that refused them, of a Reply

	// Bad, if it is not 0, is how many of the samples have the outcome: it is not known which. The others are Resent.
	Bad int
}
