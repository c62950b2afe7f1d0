// Handoffs and streams of one worker: accept loop, one message with a descriptor, events at their times.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
)

const (
	// Largest handoff message; above it the client gets a 413.
	maxMessage = 212_992
	// Descriptors that one message may bring; all but the first are closed.
	maxDescriptors = 8
	// A connection to the handoff socket that has sent no message by then is closed.
	handoffWithin = 5 * time.Second
	// Longest time that a client may leave a full socket buffer unread, beyond the stream's own time.
	stalledWithin = 30 * time.Second
	// Descriptors kept free for metrics and for the runtime.
	reservedDescriptors = 32
	// After SIGTERM: how long the listener must have been empty before it is closed.
	emptyWithin       = 20 * time.Millisecond
	promptCharacters  = 50
	streamHead        = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: close\r\nX-Accel-Buffering: no\r\n\r\n"
	doneEvent         = "data: [DONE]\n\n"
	responseRejected  = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 21\r\nRetry-After: 1\r\nConnection: close\r\n\r\ntoo many connections\n"
	responseTooLarge  = "HTTP/1.1 413 Content Too Large\r\nContent-Type: text/plain\r\nContent-Length: 20\r\nConnection: close\r\n\r\nmessage is too long\n"
	responseBadFormat = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 20\r\nConnection: close\r\n\r\nmessage is not JSON\n"
)

type daemon struct {
	options
	all []counters
	own *counters
	// One element for each descriptor that may be open besides those of the start. A full table would make
	// recvmsg() drop the client's descriptor (MSG_CTRUNC), so no connection is accepted without two.
	descriptors chan struct{}
	// Events 3 to the last; the same in all streams.
	events  [][]byte
	streams sync.WaitGroup
}

type request struct {
	prompt string
	userID string
}

// openDescriptors counts those of this process, besides the one that lists them.
func openDescriptors() (int, error) {
	names, err := os.ReadDir("/proc/self/fd")
	return len(names) - 1, err
}

func newDaemon(chosen options, all []counters, index int) (*daemon, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil, os.NewSyscallError("getrlimit", err)
	}
	open, err := openDescriptors()
	if err != nil {
		return nil, err
	}
	room := int(limit.Cur) - open - reservedDescriptors
	if room < 2 {
		return nil, fmt.Errorf("%d open files are too few", limit.Cur)
	}
	d := &daemon{options: chosen, all: all, own: &all[index], descriptors: make(chan struct{}, room)}
	for number := 3; number <= chosen.messages; number++ {
		d.events = append(d.events, d.event(number, fmt.Sprintf("This is message %d of %d.", number, chosen.messages)))
	}
	return d, nil
}

// event is one server-sent event; the last of a stream has the mark of the end with it. `content` is JSON already.
func (d *daemon) event(number int, content string) []byte {
	text := "data: {\"content\":\"" + content + "\"}\n\n"
	if number == d.messages {
		text += doneEvent
	}
	return []byte(text)
}

// serve accepts and streams until a signal, then until the last stream has ended or the deadline. `unlink` removes the
// socket's name, before the last of the queue are accepted.
func serve(chosen options, listener *net.UnixListener, all []counters, index int, stop <-chan os.Signal, unlink func()) error {
	d, err := newDaemon(chosen, all, index)
	if err != nil {
		return err
	}
	stopping := make(chan struct{})
	go func() {
		<-stop
		unlink()
		// Queued messages were sent before the signal.
		listener.SetDeadline(time.Now().Add(emptyWithin))
		close(stopping)
	}()
	d.accept(listener, stopping)
	listener.Close()

	drained := make(chan struct{})
	go func() {
		d.streams.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(drainWithin):
	}
	return nil
}

func (d *daemon) accept(listener *net.UnixListener, stopping <-chan struct{}) {
	for {
		for needed := 0; needed < 2; needed++ {
			select {
			case d.descriptors <- struct{}{}:
			default:
				select {
				case d.descriptors <- struct{}{}:
				case <-stopping:
					return
				}
			}
		}
		connection, err := listener.AcceptUnix()
		if err != nil {
			<-d.descriptors
			<-d.descriptors
			if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
				return
			}
			fmt.Fprintln(os.Stderr, "streaming-daemon: accept:", err)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		d.streams.Add(1)
		go d.serve(connection)
	}
}

// serve is the goroutine of one handoff. The stream has another, whose stack stays small.
func (d *daemon) serve(connection *net.UnixConn) {
	started := time.Now()
	client, asked, refusal, reason := d.handoff(connection)
	connection.Close()
	<-d.descriptors
	if reason != noError {
		d.own.handoffErrors[reason].Add(1)
	}
	if client < 0 {
		fmt.Fprintln(os.Stderr, "streaming-daemon: handoff without a client:", handoffReasons[reason])
		<-d.descriptors
		d.streams.Done()
		return
	}
	d.own.handoffs.Add(1)
	d.own.connections.Add(1)
	d.own.handoffDuration.observe(time.Since(started))
	syscall.SetNonblock(client, true)
	go d.answer(os.NewFile(uintptr(client), "client"), asked, refusal, started)
}

// answer is the goroutine of one client.
func (d *daemon) answer(client *os.File, asked request, refusal string, started time.Time) {
	active := d.own.activeConnections.Add(1)
	if len(d.all) > 1 {
		active = activeConnections(d.all)
	}
	if refusal == "" && active > d.maxConnections {
		d.own.rejected.Add(1)
		refusal = responseRejected
	}
	if refusal != "" {
		client.SetWriteDeadline(started.Add(stalledWithin))
		client.WriteString(refusal)
	} else {
		d.own.raisePeak(d.own.activeStreams.Add(1))
		if err := d.stream(client, asked, started); err != nil {
			d.own.streamErrors[streamReason(err)].Add(1)
		}
		d.own.activeStreams.Add(-1)
		d.own.streamDuration.observe(time.Since(started))
		d.own.backendDuration.observe(time.Since(started))
	}
	client.Close()
	d.own.activeConnections.Add(-1)
	<-d.descriptors
	d.streams.Done()
}

// stream writes all events at their times. A client that has gone fails the next write.
func (d *daemon) stream(client *os.File, asked request, started time.Time) error {
	client.SetWriteDeadline(started.Add(time.Duration(d.messages)*d.delay + stalledWithin))
	if err := d.write(client, append([]byte(streamHead), d.event(1, "Hello from Go! Prompt: "+asked.prompt)...)); err != nil {
		return err
	}
	d.own.backendTTFB.observe(time.Since(started))
	due := time.Now()
	for number := 2; number <= d.messages; number++ {
		due = due.Add(d.delay)
		time.Sleep(time.Until(due))
		var event []byte
		if number == 2 {
			event = d.event(number, "User ID: "+asked.userID)
		} else {
			event = d.events[number-3]
		}
		if err := d.write(client, event); err != nil {
			return err
		}
	}
	return nil
}

func (d *daemon) write(client *os.File, event []byte) error {
	written, err := client.Write(event)
	d.own.bytes.Add(uint64(written))
	if err == nil {
		d.own.chunks.Add(1)
	}
	return err
}

// Buffers for one recvmsg() each; only while a message is there to be read.
var buffers = sync.Pool{New: func() any { return new([maxMessage]byte) }}

// handoff receives the message: the client's descriptor or -1, what it asks for, or else the response that refuses it.
// Over SOCK_STREAM a long message comes in pieces, until it is whole or the sender has closed.
func (d *daemon) handoff(connection *net.UnixConn) (client int, asked request, refusal string, reason handoffError) {
	client, reason = -1, noDescriptor
	raw, err := connection.SyscallConn()
	if err != nil {
		return
	}
	connection.SetReadDeadline(time.Now().Add(handoffWithin))
	var pieces []byte
	isRetry := false
	failed := raw.Read(func(fd uintptr) bool {
		buffer := buffers.Get().(*[maxMessage]byte)
		defer buffers.Put(buffer)
		var control [32 + 4*maxDescriptors]byte
		for {
			size, controlSize, flags, _, err := syscall.Recvmsg(int(fd), buffer[:], control[:], syscall.MSG_CMSG_CLOEXEC)
			if err == syscall.EINTR {
				continue
			}
			if err == syscall.EAGAIN {
				return false
			}
			if err != nil {
				reason = receiveFailed
				return true
			}
			if client < 0 {
				client = firstDescriptor(control[:controlSize])
			}
			if client >= 0 {
				reason = noError
			} else if flags&syscall.MSG_CTRUNC != 0 {
				reason = truncatedControl
				return true
			}
			if size == 0 {
				// A SOCK_SEQPACKET peer that sends and closes can be seen as closed before its message is: the next
				// call has the message.
				if d.isSeqpacket && client < 0 && !isRetry {
					isRetry = true
					continue
				}
				if client >= 0 {
					refusal, reason = responseBadFormat, badFormat
				}
				return true
			}
			if flags&syscall.MSG_TRUNC != 0 || len(pieces)+size > maxMessage {
				refusal, reason = responseTooLarge, tooLarge
				return true
			}
			message := buffer[:size]
			if len(pieces) > 0 {
				pieces = append(pieces, message...)
				message = pieces
			}
			var isWhole bool
			if asked, isWhole = parseRequest(message); isWhole {
				return true
			}
			if d.isSeqpacket {
				refusal, reason = responseBadFormat, badFormat
				return true
			}
			if len(pieces) == 0 {
				pieces = append(pieces, message...)
			}
		}
	})
	if failed != nil {
		if reason = timedOut; client >= 0 {
			refusal = responseBadFormat
		}
	}
	return
}

// firstDescriptor takes the first descriptor of control messages and closes the others; -1 without one.
func firstDescriptor(control []byte) int {
	first := -1
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return first
	}
	for index := range messages {
		descriptors, err := syscall.ParseUnixRights(&messages[index])
		if err != nil {
			continue
		}
		for _, descriptor := range descriptors {
			if first < 0 {
				first = descriptor
			} else {
				syscall.Close(descriptor)
			}
		}
	}
	return first
}

// parseRequest reads a handoff message; false where it is not whole, or no JSON object.
func parseRequest(message []byte) (request, bool) {
	if len(message) == 1 && message[0] == 0 {
		return request{userID: "0"}, true
	}
	var fields struct {
		Prompt json.RawMessage `json:"prompt"`
		UserID json.RawMessage `json:"user_id"`
	}
	if json.Unmarshal(message, &fields) != nil {
		return request{}, false
	}
	found := request{userID: "0"}
	var text string
	if json.Unmarshal(fields.Prompt, &text) == nil {
		found.prompt = escaped(firstCharacters(text, promptCharacters))
	}
	var number int64
	if text = ""; json.Unmarshal(fields.UserID, &number) == nil && string(fields.UserID) != "null" {
		found.userID = string(fields.UserID)
	} else if json.Unmarshal(fields.UserID, &text) == nil && text != "" {
		found.userID = escaped(text)
	}
	return found, true
}

func firstCharacters(text string, count int) string {
	end := 0
	for ; count > 0 && end < len(text); count-- {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return text[:end]
}

// escaped is the inside of a JSON string. encoding/json would also escape U+2028, which the other daemons leave.
func escaped(text string) string {
	var out strings.Builder
	for _, character := range text {
		switch character {
		case '"', '\\':
			out.WriteByte('\\')
			out.WriteRune(character)
		case '\b':
			out.WriteString(`\b`)
		case '\f':
			out.WriteString(`\f`)
		case '\n':
			out.WriteString(`\n`)
		case '\r':
			out.WriteString(`\r`)
		case '\t':
			out.WriteString(`\t`)
		default:
			if character < ' ' {
				fmt.Fprintf(&out, `\u%04x`, character)
			} else {
				out.WriteRune(character)
			}
		}
	}
	return out.String()
}
