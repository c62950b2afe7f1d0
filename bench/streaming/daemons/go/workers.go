// Supervisor of several worker processes: starts this program again for each, with the listener and the
// counters' memory inherited, and sums the peaks once all have ended.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// sharedCounters makes memory for the counters of all workers, as an unlinked file that they inherit.
func sharedCounters(workers int) (*os.File, []counters, error) {
	file, err := os.CreateTemp("", "streaming-daemon-")
	if err != nil {
		return nil, nil, err
	}
	os.Remove(file.Name())
	if err := file.Truncate(int64(workers) * int64(unsafe.Sizeof(counters{}))); err != nil {
		return nil, nil, err
	}
	all, err := mapCounters(int(file.Fd()), workers)
	return file, all, err
}

func mapCounters(fd, workers int) ([]counters, error) {
	memory, err := syscall.Mmap(fd, 0, workers*int(unsafe.Sizeof(counters{})), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return unsafe.Slice((*counters)(unsafe.Pointer(&memory[0])), workers), nil
}

func startWorker(index int, listener, counters *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(self, os.Args[1:]...)
	command.Env = append(os.Environ(), workerVariable+"="+strconv.Itoa(index))
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.ExtraFiles = []*os.File{listener, counters}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return command, command.Start()
}

// isTerminated says whether a worker had no handler of the signal yet, and so no streams either.
func isTerminated(why error) bool {
	ended, isExit := why.(*exec.ExitError)
	return isExit && ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM
}

func supervise(chosen options) error {
	// PR_SET_PDEATHSIG is sent as the thread ends that has forked.
	runtime.LockOSThread()
	memory, all, err := sharedCounters(chosen.workers)
	if err != nil {
		return err
	}
	stop := stopSignals()
	listener, err := listen(chosen)
	if err != nil {
		return err
	}
	defer os.Remove(chosen.socket)

	ended := make(chan error, chosen.workers)
	var started []*exec.Cmd
	for index := 0; index < chosen.workers && err == nil; index++ {
		var worker *exec.Cmd
		if worker, err = startWorker(index, listener, memory); err == nil {
			started = append(started, worker)
			go func() { ended <- worker.Wait() }()
		}
	}
	listener.Close()
	serveMetrics(chosen, all)

	running := len(started)
	if err == nil {
		select {
		case <-stop:
		case early := <-ended:
			running--
			err = fmt.Errorf("a worker has ended: %v", early)
		}
	}
	os.Remove(chosen.socket)
	for _, worker := range started {
		worker.Process.Signal(syscall.SIGTERM)
	}
	deadline := time.After(drainWithin + drainMargin)
	for running > 0 {
		select {
		case last := <-ended:
			running--
			if last != nil && !isTerminated(last) && err == nil {
				err = fmt.Errorf("a worker has failed: %w", last)
			}
		case <-deadline:
			for _, worker := range started {
				worker.Process.Kill()
			}
			deadline = nil
		}
	}
	fmt.Fprintf(os.Stderr, "Peak concurrent streams: %d\n", peakStreams(all))
	return err
}
