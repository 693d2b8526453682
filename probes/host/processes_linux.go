package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// newProcesses counts processes and threads by state (proc_pid_stat(5)). It reads a file for each thread, so it only
// runs if configured.
func newProcesses(e *environment) reader {
	threads := gauge("node_processes_threads", "Threads.")
	maxThreads := gauge("node_processes_max_threads", "How many threads there may be.")
	threadState := gauge("node_processes_threads_state", "Threads, by state.")
	state := gauge("node_processes_state", "Processes, by state.")
	pids := gauge("node_processes_pids", "Processes.")
	maxPIDs := gauge("node_processes_max_processes", "The largest process ID.")
	return newOnce(e, func() (samples, error) {
		count, err := countProcesses(e.ProcPath)
		if err != nil {
			return nil, err
		}
		var s samples
		s.add(threads, float64(count.threads))
		s.add(pids, float64(count.processes))
		for name, n := range count.states {
			s.add(state, float64(n), "state", name)
		}
		for name, n := range count.threadStates {
			s.add(threadState, float64(n), "thread_state", name)
		}
		s.addAttrs(e.proc("sys/kernel"), []attr{{file: "threads-max", Family: maxThreads}, {file: "pid_max", Family: maxPIDs}})
		return s, nil
	})
}

// processCount holds the counts of the process table.
type processCount struct {
	processes, threads   int
	states, threadStates map[string]int
}

func countProcesses(proc string) (processCount, error) {
	c := processCount{states: map[string]int{}, threadStates: map[string]int{}}
	all, err := stats(proc)
	if err != nil {
		return c, err
	}
	for _, p := range all {
		c.processes++
		c.threads += p.NumThreads
		c.states[p.State]++
		tasks, err := stats(path.Join(proc, strconv.Itoa(p.PID), "task"))
		if err != nil && !ended(err) {
			return c, err
		}
		for _, t := range tasks {
			c.threadStates[t.State]++
		}
	}
	return c, nil
}

// stats returns the stats of all processes, or threads, in a directory.
func stats(dir string) ([]procfs.ProcStat, error) {
	table, err := procfs.NewFS(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	procs, err := table.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	all := make([]procfs.ProcStat, 0, len(procs))
	for _, p := range procs {
		s, err := p.Stat()
		if ended(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the state of process %d: %w", p.PID, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// ended reports whether an error says that the process has ended meanwhile.
func ended(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }
