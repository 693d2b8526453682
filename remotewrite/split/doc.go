// Package split decides the outcome of each sample in a refused request.
//
// A [Machine] is a value without I/O, clock, lock or goroutine. Its caller, the driver, asks Next for the
// next request, sends it and passes the answer to Tell, until the machine ends:
//
//	m := split.New(config, samples)
//	for r, ok := m.Next(); ok; r, ok = m.Next() {
//		m.Tell(answerTo(r))
//	}
//
// Verdicts returns the outcomes decided since its last call. Open returns the samples that have no outcome at the
// end, because there is no evidence that they are at fault.
//
// The rules:
//
//   - Requests follow the order of the log, with one sample per series each. A refused request is halved, or cut into smaller
//     parts if many samples are bad. A sample is sent only after the previous one of its series has its outcome.
//   - A sample that is refused alone needs a proof: it must be refused repeatedly while the receiver accepts control
//     samples, which it accepted before, in between. A refused control ends the machine: the target
//     refuses everything, and no sample is given up.
//   - The answer that a sample is late comes from the receiver's database itself and needs no proof. If the sample and a
//     later one of its series may be stored already, and the later one is accepted, the sample is stored.
//   - A sample that was refused together with a later one of its series and is accepted on the second attempt may have been
//     dropped silently (see withholds). It gets its outcome at the end.
//   - Samples that may be stored go in full-size requests until one is refused, and then partition by partition.
//   - The samples stored before a crash are a prefix, in each partition, of those sent. So a few late samples of a round,
//     those with the last successors and others drawn at random, decide for the rest of it (see search). If the target is
//     known to have samples of some series, late samples of the others do not show which kind of receiver it is.
//   - A machine may send 64 requests, and two more for each delivered sample. Before the last one, each part of the
//     refused request that was not yet sent alone is sent once, which may deliver samples and so pay for more requests.
//     If it delivers none, the samples being searched are sent together, and are unconfirmed if refused with the same
//     proof. Samples not searched yet get a budget of their own. While all refusals are for late samples, the budget
//     has no part for proofs.
package split
