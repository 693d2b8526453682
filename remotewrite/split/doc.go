// Package split decides what becomes of the samples of a refused request.
//
// A [Machine] is a value without I/O, clock, lock or goroutine. Its caller, the driver, asks Next for the
// next request, sends it and tells the machine the answer, until the machine ends:
//
//	m := split.New(config, samples)
//	for r, ok := m.Next(); ok; r, ok = m.Next() {
//		m.Tell(answerTo(r))
//	}
//
// Verdicts returns what was decided since it was called last; Open returns what has no outcome at the end,
// because nothing shows that the samples are at fault.
//
// The rules:
//
//   - Requests go in the log's order, with one sample of a series each. A request that is refused is
//     halved; where many are bad, into smaller parts. Samples of a series go in order: none is sent before the one before it has its outcome.
//   - A sample that is refused alone needs a proof: it is refused again and again, and control samples,
//     which the target took before, are taken in between. A control that is refused ends the machine: the target
//     refuses everything, and no sample is given up.
//   - The receiver's database says itself that a sample is late: that needs no proof. If the sample, and a later one of
//     its series, may be stored already, and that later one is taken, the sample is stored.
//   - A sample that is taken again after it was refused beside a later one of its series may have been dropped in silence (see withholds).
//     It has its outcome at the end.
//   - What may be stored goes in full-size requests until one is refused, and then by its partitions.
//   - What was stored before a crash is a prefix, in each partition, of what was sent. So some late samples of a round,
//     those whose successors come last and others drawn at random, speak for the others of it (see search).
//   - After 64 requests, and two more for each delivered sample, what was being searched is sent together,
//     and is unconfirmed if that is refused with the same proof. What was not searched yet gets requests of its own.
package split
