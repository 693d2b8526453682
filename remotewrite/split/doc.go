// Package split finds the samples in a batch for which a receiver refuses or fails it, and decides their outcomes. It is
// pure: it sends nothing and has no clock. A driver asks a [Machine] for the next step, does it, and returns the answer:
//
//	(samples, answer) ──> Machine ──> next samples to send, or outcomes
//
// Three kinds of state exist. A Machine lives as long as one batch. [Facts] are the facts that the batches of one target have shown.
// [Mutes] hold the series that a target does not get at present.
//
// # The rules
//
// Pieces. A batch of more than 2,000 samples that is refused, unless about time, or that fails three times, is sent again in pieces of 2,000. For an
// hour requests are no larger.
//
// Bisect. A refused batch is sent once more on a new connection, then halved down to one sample. A refusal of a sample alone
// counts after a fixed row of turns (s: the sample, c: the control):
//
//	the database's words, about time     s s             late, duplicate, too old
//	the database's words, other          s s c           labels, type, limit; after eight proven of one reason: s
//	unknown words                        s c c s s c c s s c; after eight proven in the batch: s s c s
//
// If all turns end as expected, the sample is rejected. Refusals in a row that prove nothing are limited to 64. Then each
// remaining part that was not sent by itself is sent once, and what is refused is unconfirmed. From a part that is refused in
// unknown words, the samples of series whose last sample was rejected are taken out and sent alone. So are all others once a quarter of
// the settled samples was rejected.
//
// Control. The control is the sample that the target took last, sent again. It passes if it is taken, or if the receiver's
// database refuses it in its own words: then the way to the database works. Without a control, eight samples of different
// series are sent alone, and the first that is taken becomes the control. If none is taken, the target is held, unless a
// refusal is about time. If a control is refused, the target is held, and nothing is given up.
//
// Contradiction. A target that takes what it refused a moment ago, or refuses a control, is contradictory for an hour. Its
// refusals, also of a control, but not those about time, count as failures: one that refuses every fifth request would be held again
// and again.
//
// Late as a whole. If 32 samples of different series, spread over a part, are each refused alone as late, the part is
// late. Late samples are rejected; those that may be stored are unconfirmed.
//
// Too old. The newest samples of three series of a part are asked alone. If all are too old, the part is: the receiver's
// bound is one for all series. The next batch, which may be larger than a request, asks its newest samples first; if one of them
// is not too old, the batch is sent. A sample that is under five minutes old by the receiver's clock is too old only if a control is
// taken after it: the receiver's bound may be wrong. For an hour after such a refusal, and until a sample is taken, the same holds for
// samples under an hour old.
//
// Failing part. The third failure of a batch asks the control. If it fails, the batch is retried as a whole. If it passes, the
// batch is sent once without exemplars and metadata, then it is divided. A sample that fails alone waits, and is sent again in
// rounds, each with a control. It is given up as unconfirmed after 20 failures over ten minutes; after one minute if a sample of
// its kind, or with the same words, was given up within the last hour. The samples of a batch wait side by side, and later samples
// of a waiting series wait behind it. If in two batches in a row a part fails,
// both its halves pass at once, and no part of its size passes, requests get no larger than such a half.
//
// In doubt. A sample that may be stored is sent again. It is never taken for stored because of other samples.
//
// Mute. A series leaves the batches if it is proven bad itself, not by the time of a sample. In unknown words
// four samples in a row must be proven bad, because one may be refused for its time or its value. One of its samples is sent alone as a
// probe each minute and reason. If it is taken, the series is released, and twice as many probes follow at once.
// If eight new series are refused alone for one reason of the database and no new series was taken since, all new series of the batch are muted.
package split
