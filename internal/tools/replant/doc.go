// Package replant proves that the tests detect known mistakes (mutation testing). Each file in patches brings one
// mistake back into the product: no fsync, an append after a failed write, a savepoint ahead of the acknowledgements.
// TestReplant builds the product with each of them in turn and runs the tests that the patch names; these must fail,
// with the expected message. A suite that passes in spite of a known mistake is the defect.
//
// etcd keeps such a list of its past bugs (tests/robustness, "make test-robustness-issue…").
//
// A patch is a unified diff below a few lines of this form:
//
//	# Mistake: what is wrong, in one line
//	# Seen in: the public place where it is known from, if any
//	# Caught by: ./wal TestHeals: 0 commits are durable
//	# Caught in minutes by: ./e2e/crashlab TestPowerCut: are lost
//
// Each "Caught by" line is one proof: the package, the test, and a regular expression for the test's message. The last
// kind runs the built agent on real file systems and belongs to the full tier.
//
// Only the files touched by a patch are copied: go build -overlay substitutes them for the originals, so that
// everything unchanged comes from the build cache. A patch that no longer applies is a failure: it must be updated.
package replant
