// Counters of each worker in memory that all share, and their sums as Prometheus text (version 0.0.4).
package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

type handoffError int

const (
	noDescriptor handoffError = iota
	truncatedControl
	receiveFailed
	badFormat
	tooLarge
	timedOut
	handoffErrorCount
	noError handoffError = -1
)

var handoffReasons = [handoffErrorCount]string{
	"no_descriptor", "descriptor_truncated", "receive", "format", "too_large", "timeout"}

const (
	clientGone = iota
	clientStalled
	writeFailed
	streamErrorCount
)

var streamReasons = [streamErrorCount]string{"client_gone", "timeout", "write"}

func streamReason(err error) int {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return clientGone
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return clientStalled
	}
	return writeFailed
}

// Upper bounds of a histogram's buckets, in seconds.
var bounds = [...]float64{0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 120}

type histogram struct {
	buckets     [len(bounds) + 1]atomic.Uint64
	nanoseconds atomic.Uint64
}

func (h *histogram) observe(took time.Duration) {
	seconds, index := took.Seconds(), 0
	for index < len(bounds) && seconds > bounds[index] {
		index++
	}
	h.buckets[index].Add(1)
	h.nanoseconds.Add(uint64(took))
}

// counters of one worker. Any thread of any process.
type counters struct {
	activeConnections, activeStreams, peakStreams  atomic.Int64
	connections, rejected, handoffs, bytes, chunks atomic.Uint64
	handoffErrors                                  [handoffErrorCount]atomic.Uint64
	streamErrors                                   [streamErrorCount]atomic.Uint64
	handoffDuration, streamDuration                histogram
	backendDuration, backendTTFB                   histogram
}

func (c *counters) raisePeak(streams int64) {
	for {
		peak := c.peakStreams.Load()
		if streams <= peak || c.peakStreams.CompareAndSwap(peak, streams) {
			return
		}
	}
}

func activeConnections(all []counters) int64 {
	return total(all, func(c *counters) int64 { return c.activeConnections.Load() })
}

// peakStreams is the sum of the workers' peaks, which can be of different moments.
func peakStreams(all []counters) int64 {
	return total(all, func(c *counters) int64 { return c.peakStreams.Load() })
}

func total[T int64 | uint64](all []counters, of func(*counters) T) T {
	var sum T
	for index := range all {
		sum += of(&all[index])
	}
	return sum
}

func writeMetrics(out *strings.Builder, all []counters) {
	single := func(name, kind string, value any) {
		fmt.Fprintf(out, "# TYPE daemon_%s %s\ndaemon_%s %d\n", name, kind, name, value)
	}
	count := func(name string, of func(*counters) *atomic.Uint64) {
		single(name, "counter", total(all, func(c *counters) uint64 { return of(c).Load() }))
	}
	single("active_connections", "gauge", activeConnections(all))
	single("active_streams", "gauge", total(all, func(c *counters) int64 { return c.activeStreams.Load() }))
	single("peak_streams", "gauge", peakStreams(all))
	count("connections_total", func(c *counters) *atomic.Uint64 { return &c.connections })
	count("connections_rejected_total", func(c *counters) *atomic.Uint64 { return &c.rejected })
	count("handoffs_total", func(c *counters) *atomic.Uint64 { return &c.handoffs })
	count("bytes_sent_total", func(c *counters) *atomic.Uint64 { return &c.bytes })
	count("chunks_sent_total", func(c *counters) *atomic.Uint64 { return &c.chunks })

	reasons := func(name string, texts []string, of func(*counters, int) *atomic.Uint64) {
		fmt.Fprintf(out, "# TYPE daemon_%s counter\n", name)
		for index, text := range texts {
			value := total(all, func(c *counters) uint64 { return of(c, index).Load() })
			fmt.Fprintf(out, "daemon_%s{reason=%q} %d\n", name, text, value)
		}
	}
	reasons("handoff_errors_total", handoffReasons[:], func(c *counters, i int) *atomic.Uint64 { return &c.handoffErrors[i] })
	reasons("stream_errors_total", streamReasons[:], func(c *counters, i int) *atomic.Uint64 { return &c.streamErrors[i] })

	times := func(name string, of func(*counters) *histogram) {
		fmt.Fprintf(out, "# TYPE daemon_%s histogram\n", name)
		var below uint64
		for index := 0; index <= len(bounds); index++ {
			below += total(all, func(c *counters) uint64 { return of(c).buckets[index].Load() })
			bound := "+Inf"
			if index < len(bounds) {
				bound = fmt.Sprint(bounds[index])
			}
			fmt.Fprintf(out, "daemon_%s_bucket{le=%q} %d\n", name, bound, below)
		}
		sum := total(all, func(c *counters) uint64 { return of(c).nanoseconds.Load() })
		fmt.Fprintf(out, "daemon_%s_sum %g\ndaemon_%s_count %d\n", name, float64(sum)/1e9, name, below)
	}
	times("handoff_duration_seconds", func(c *counters) *histogram { return &c.handoffDuration })
	times("stream_duration_seconds", func(c *counters) *histogram { return &c.streamDuration })
	times("backend_duration_seconds", func(c *counters) *histogram { return &c.backendDuration })
	times("backend_ttfb_seconds", func(c *counters) *histogram { return &c.backendTTFB })
}

// serveMetrics answers at the metrics address in the background. Where it is taken, the daemon runs without.
func serveMetrics(chosen options, all []counters) {
	if chosen.metricsAddr == "" {
		return
	}
	answers := http.NewServeMux()
	answers.HandleFunc("/metrics", func(to http.ResponseWriter, _ *http.Request) {
		var text strings.Builder
		writeMetrics(&text, all)
		to.Header().Set("Content-Type", "text/plain; version=0.0.4")
		to.Write([]byte(text.String()))
	})
	answers.HandleFunc("/healthz", func(to http.ResponseWriter, _ *http.Request) {
		to.Write([]byte("ok\n"))
	})
	go func() {
		fmt.Fprintln(os.Stderr, "streaming-daemon: metrics server:", http.ListenAndServe(chosen.metricsAddr, answers))
	}()
}
