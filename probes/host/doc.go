// Package host reads the machine it runs on: the kernel's counters from procfs and the hardware from sysfs.
//
// Metrics carry the names, labels and types that node_exporter (1.5 and later) gives them, so that its dashboards and
// alerts work unchanged. A collector here is named as there: cpu, meminfo, hwmon, …. In addition, the collectors hw_*
// report the hardware in the vocabulary of package hw.
//
// # Rules
//
//   - A collector that fails costs its own series only; the error of the round names
//     it. Hardware that is not there is silent.
//   - A single attribute that cannot be read (many drivers answer ENODATA, EIO or
//     EAGAIN now and then) is skipped; its neighbours are kept.
//   - A read that may hang (a mount whose server is gone, a sensor on a hung bus)
//     runs in a goroutine of its own under a deadline. It is not tried again until
//     that goroutine has returned, so a hung mount or sensor costs at most one thread.
//   - procfs and sysfs are read with plain read(2): the files are small, and Go's
//     poller would wait for ever on drivers that answer EAGAIN.
package host
