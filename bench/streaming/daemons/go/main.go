// Streaming daemon in Go: a goroutine for each client that a web server hands over.
//
// A handoff is one connection to a Unix socket that brings one message: JSON, or one NUL byte, with the
// client's descriptor (SCM_RIGHTS). The answer is a stream of server-sent events on that descriptor.
//
// One process, or with -workers several that accept from one listener, since each process has a descriptor
// table, and thus a limit of open files, of its own.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof" // registers its handlers for -pprof-addr
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	listenBacklog = 4096
	maxWorkers    = 64
	drainWithin   = 10 * time.Second
	// After a worker's own deadline, before it is killed.
	drainMargin = 2 * time.Second
	// Names the number of a worker to the process that becomes it; see supervise().
	workerVariable = "STREAMING_DAEMON_WORKER"
	// Descriptors of a worker at its start.
	inheritedListener = 3
	inheritedCounters = 4
)

type options struct {
	socket         string
	socketMode     os.FileMode
	isSeqpacket    bool
	maxConnections int64
	messages       int
	delay          time.Duration
	metricsAddr    string
	pprofAddr      string
	workers        int
}

func parse() options {
	found := options{socketMode: 0660}
	flag.StringVar(&found.socket, "socket", "/var/run/streaming-daemon.sock", "Unix socket `path`")
	flag.Func("socket-mode", "Unix socket permissions, octal (default 0660)", func(text string) error {
		mode, err := strconv.ParseUint(strings.TrimPrefix(text, "0o"), 8, 9)
		found.socketMode = os.FileMode(mode)
		return err
	})
	flag.Func("socket-type", "`stream` or seqpacket (default stream)", func(text string) error {
		if text != "stream" && text != "seqpacket" {
			return errors.New("stream or seqpacket")
		}
		found.isSeqpacket = text == "seqpacket"
		return nil
	})
	flag.Int64Var(&found.maxConnections, "max-connections", 1000, "maximum concurrent connections, of all workers")
	flag.IntVar(&found.messages, "messages", 18, "events of a stream")
	flag.DurationVar(&found.delay, "message-delay", 50*time.Millisecond, "time between two events of a stream")
	flag.StringVar(&found.metricsAddr, "metrics-addr", "127.0.0.1:9090", "Prometheus metrics `address` (empty to disable)")
	flag.StringVar(&found.pprofAddr, "pprof-addr", "", "pprof server `address` (empty to disable)")
	flag.IntVar(&found.workers, "workers", 1, "processes, each with its own limit of open files")
	flag.Parse()
	if flag.NArg() > 0 || found.maxConnections < 1 || found.messages < 1 || found.delay < 0 || found.workers < 1 ||
		found.workers > maxWorkers {
		fmt.Fprintf(os.Stderr, "streaming-daemon: no arguments, -max-connections and -messages from 1, -workers 1 to %d\n", maxWorkers)
		os.Exit(2)
	}
	return found
}

func main() {
	chosen := parse()
	var err error
	if number := os.Getenv(workerVariable); number != "" {
		err = runWorker(chosen, number)
	} else if chosen.workers > 1 {
		err = supervise(chosen)
	} else {
		err = runAlone(chosen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "streaming-daemon:", err)
		os.Exit(1)
	}
}

// listen makes the listener of all workers. It is in blocking mode: each worker makes it non-blocking, and as its
// open file description is shared, nothing may set it back.
func listen(chosen options) (*os.File, error) {
	kind := syscall.SOCK_STREAM
	if chosen.isSeqpacket {
		kind = syscall.SOCK_SEQPACKET
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, kind|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := os.Remove(chosen.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: chosen.socket}); err != nil {
		return nil, fmt.Errorf("bind %s: %w", chosen.socket, err)
	}
	if err := os.Chmod(chosen.socket, chosen.socketMode); err != nil {
		return nil, err
	}
	if err := syscall.Listen(fd, listenBacklog); err != nil {
		return nil, os.NewSyscallError("listen", err)
	}
	return os.NewFile(uintptr(fd), chosen.socket), nil
}

// accepting makes a listener of Go's of an inherited or own one, which is closed.
func accepting(file *os.File) (*net.UnixListener, error) {
	defer file.Close()
	found, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	listener := found.(*net.UnixListener)
	listener.SetUnlinkOnClose(false)
	return listener, nil
}

func stopSignals() chan os.Signal {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	return stop
}

func runAlone(chosen options) error {
	all := make([]counters, 1)
	file, err := listen(chosen)
	if err != nil {
		return err
	}
	defer os.Remove(chosen.socket)
	listener, err := accepting(file)
	if err != nil {
		return err
	}
	serveMetrics(chosen, all)
	servePprof(chosen)
	if err := serve(chosen, listener, all, 0, stopSignals(), func() { os.Remove(chosen.socket) }); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "Peak concurrent streams: %d\n", all[0].peakStreams.Load())
	return nil
}

func runWorker(chosen options, number string) error {
	index, err := strconv.Atoi(number)
	if err != nil || index < 0 || index >= chosen.workers {
		return fmt.Errorf("%s=%s is no worker's number", workerVariable, number)
	}
	syscall.CloseOnExec(inheritedListener)
	syscall.CloseOnExec(inheritedCounters)
	all, err := mapCounters(inheritedCounters, chosen.workers)
	if err != nil {
		return err
	}
	listener, err := accepting(os.NewFile(inheritedListener, "listener"))
	if err != nil {
		return err
	}
	if index == 0 {
		servePprof(chosen)
	}
	return serve(chosen, listener, all, index, stopSignals(), func() {})
}

func servePprof(chosen options) {
	if chosen.pprofAddr == "" {
		return
	}
	go func() {
		fmt.Fprintln(os.Stderr, "streaming-daemon: pprof server:", http.ListenAndServe(chosen.pprofAddr, nil))
	}()
}
