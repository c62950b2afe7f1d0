// Package steps runs the steps of a client's program; each prints how it went (tests/clients/run.py).
package steps

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"time"
)

// NotYet is why a step cannot be done with this server or this library.
type NotYet string

var (
	// Port is the server's.
	Port = os.Getenv("EDDY_CLIENT_PORT")
	// Resp3 says which protocol to speak.
	Resp3  = os.Getenv("EDDY_CLIENT_RESP") == "3"
	failed = false
	input  = bufio.NewReader(os.Stdin)
)

const deadline = 15 * time.Second

// TLS is the configuration where the port speaks TLS, and else nil. Go itself knows the authority, by
// SSL_CERT_FILE.
func TLS() *tls.Config {
	if os.Getenv("EDDY_CLIENT_CA") == "" {
		return nil
	}
	return &tls.Config{}
}

// Scheme is that of the server's URL.
func Scheme() string {
	if TLS() == nil {
		return "redis"
	}
	return "rediss"
}

func dial() (net.Conn, error) {
	if how := TLS(); how != nil {
		return tls.Dial("tcp", Address(), how)
	}
	return net.Dial("tcp", Address())
}

// Address is where the server listens.
func Address() string { return "127.0.0.1:" + Port }

// Addresses are those of all servers.
func Addresses() []string {
	addresses := strings.Fields(os.Getenv("EDDY_CLIENT_PORTS"))
	for i, port := range addresses {
		addresses[i] = "127.0.0.1:" + port
	}
	return addresses
}

func say(format string, args ...any) {
	fmt.Println(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " | "))
}

// Version prints the version of a module that this program was built with.
func Version(module string) {
	info, _ := debug.ReadBuildInfo()
	for _, each := range info.Deps {
		if each.Path == module {
			say("version %s", strings.TrimPrefix(each.Version, "v"))
		}
	}
}

// Step runs a step; it fails by a panic.
func Step(name string, body func()) {
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		body()
	}()
	var outcome any
	select {
	case outcome = <-done:
	case <-time.After(2 * deadline):
		outcome = "it was not done in time"
	}
	switch why := outcome.(type) {
	case nil:
		say("ok %s", name)
	case NotYet:
		say("not yet %s: %s", name, string(why))
	default:
		failed = true
		say("FAILED %s: %v", name, why)
	}
}

// Finish ends the program.
func Finish() {
	if failed {
		os.Exit(1)
	}
	os.Exit(0)
}

// Must yields the value of a call that must succeed.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("error: %v", err))
	}
	return value
}

// Ok is Must without a value.
func Ok(err error) {
	if err != nil {
		panic(fmt.Sprintf("error: %v", err))
	}
}

// Is compares.
func Is(actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Sprintf("%.500v, but %.500v was due", fmt.Sprint(actual), fmt.Sprint(expected)))
	}
}

// True is a condition with a name.
func True(condition bool, what string) {
	if !condition {
		panic(what + " is not so")
	}
}

// Fails wants an error with this text.
func Fails(err error, text string) {
	if err == nil || !strings.Contains(err.Error(), text) {
		panic(fmt.Sprintf("error %v, but one with %q was due", err, text))
	}
}

// Eventually asks again until it is true.
func Eventually(what string, condition func() bool) {
	end := time.Now().Add(deadline)
	for !condition() {
		if time.Now().After(end) {
			panic(what + " did not come true")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// RestartServer asks for a restart and waits for it.
func RestartServer() { ask("restart") }

// EndLastServer ends the last of several servers for good.
func EndLastServer() { ask("end") }

func ask(what string) {
	say("ask %s", what)
	if line, _ := input.ReadString('\n'); strings.TrimSpace(line) != "done" {
		panic("nobody did this: " + what)
	}
}

// Needs ends the step when the server lacks a command; it asks without any library.
func Needs(commands ...string) {
	for _, command := range commands {
		connection := Must(dial())
		defer connection.Close()
		// A subcommand without arguments changes nothing.
		question := "COMMAND INFO " + command
		if strings.Contains(command, "|") {
			question = strings.ReplaceAll(command, "|", " ")
		}
		Must(fmt.Fprintf(connection, "%s\r\nQUIT\r\n", question))
		reply := string(Must(io.ReadAll(connection)))
		if strings.HasPrefix(reply, "-ERR unknown ") || strings.HasPrefix(reply, "*1\r\n*-1") || strings.HasPrefix(reply, "*1\r\n$-1") {
			panic(NotYet("the server has no " + strings.ToUpper(strings.ReplaceAll(command, "|", " "))))
		}
	}
}
