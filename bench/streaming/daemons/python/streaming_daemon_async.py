#!/usr/bin/env python3
"""Streaming daemon in Python: a coroutine of asyncio for each client that a web server hands over.

A handoff is one connection to a Unix socket that brings one message: JSON, or one NUL byte, with the client's
descriptor (SCM_RIGHTS). The answer is a stream of server-sent events on that descriptor.

One process, or with --processes several that accept from one listener, since each process has a descriptor table, and
thus a limit of open files, of its own. Runs on uvloop where it can be imported. Python 3.11 or later; no other package.
"""

import argparse
import array
import asyncio
import contextlib
import gc
import json
import mmap
import os
import resource
import signal
import socket
import sys
import time

try:
    import uvloop
except ImportError:
    uvloop = None

MAX_PROCESSES = 64
MAX_MESSAGE = 212_992        # bytes of a handoff; above it the client gets a 413
MAX_DESCRIPTORS = 8          # that one message may bring; all but the first are closed
HANDOFF_WITHIN_S = 5         # from connecting to the handoff socket to the whole message
STALLED_WITHIN_S = 30        # for which a client may leave a full socket buffer unread
RESERVED_DESCRIPTORS = 32
ACCEPTED_AT_ONCE = 64        # before streams get their time again
DRAIN_WITHIN_S = 10
DRAIN_MARGIN_S = 2           # after which a worker that has not ended is killed
PROMPT_CHARACTERS = 50

HEAD = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: close\r\n"
        b"X-Accel-Buffering: no\r\n\r\n")
DONE = b"data: [DONE]\n\n"


def refusal(status, body, more=""):
    return (f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n{more}"
            f"Connection: close\r\n\r\n{body}").encode()


REJECTED = refusal("503 Service Unavailable", "too many connections\n", "Retry-After: 1\r\n")
TOO_LARGE = refusal("413 Content Too Large", "message is too long\n")
BAD_FORMAT = refusal("400 Bad Request", "message is not JSON\n")


class Counters:
    """Active connections and peak of streams of each process, in memory that all share. Each writes its own."""

    def __init__(self, processes):
        self.all = memoryview(mmap.mmap(-1, 16 * processes)).cast("q")
        self.index = 0

    def add_active(self, count):
        self.all[2 * self.index] += count

    def active(self):
        return sum(self.all[::2])

    def raise_peak(self, streams):
        if streams > self.all[2 * self.index + 1]:
            self.all[2 * self.index + 1] = streams

    def peak(self):
        """The sum of the processes' peaks, which can be of different moments."""
        return sum(self.all[1::2])


class Unacceptable(Exception):
    """A handoff that is not served; the client, if there is one, gets `response`."""

    def __init__(self, reason, client=None, response=b""):
        super().__init__(reason)
        self.client, self.response = client, response


def escaped(text):
    """The inside of a JSON string. Halves of surrogate pairs, which JSON can have, become question marks."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode(errors="replace")


def parse(message):
    """(prompt, user id) of a handoff message, both JSON's inside of a string; ValueError where it is no JSON object."""
    if message == b"\0":
        return b"", b"0"
    fields = json.loads(message.decode())
    if not isinstance(fields, dict):
        raise ValueError("no JSON object")
    prompt, user = fields.get("prompt"), fields.get("user_id")
    if isinstance(user, int) and not isinstance(user, bool):
        user = b"%d" % user
    else:
        user = escaped(user) if user and isinstance(user, str) else b"0"
    return escaped(prompt[:PROMPT_CHARACTERS]) if isinstance(prompt, str) else b"", user


class Daemon:
    """Accepts and streams in one process."""

    def __init__(self, listener, chosen, counters):
        self.loop = asyncio.get_running_loop()
        self.listener, self.counters = listener, counters
        self.is_seqpacket = listener.type == socket.SOCK_SEQPACKET
        self.is_accepting = False
        self.max_connections, self.messages, self.delay = chosen.max_connections, chosen.messages, chosen.delay / 1000
        self.buffer = bytearray(MAX_MESSAGE)
        self.tasks = set()
        self.streams = self.handoffs = self.clients = 0
        # A full table would make recvmsg() drop the client's descriptor (MSG_CTRUNC), so no connection is accepted
        # without room for two.
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.room = limit - len(os.listdir("/proc/self/fd")) - RESERVED_DESCRIPTORS
        if self.room < 2:
            raise OSError(f"{limit} open files are too few")
        # Events 3 to the last; the same in all streams.
        self.events = [self.event(number, b"This is message %d of %d." % (number, self.messages))
                       for number in range(3, self.messages + 1)]

    def event(self, number, content):
        """One server-sent event; the last of a stream has the mark of the end with it. `content` is JSON already."""
        return b'data: {"content":"%b"}\n\n%b' % (content, DONE if number == self.messages else b"")

    async def run(self, stopping):
        """Serves until the event `stopping`, then until the last stream has ended or the deadline."""
        self.update_accepting()
        await stopping.wait()
        # Queued messages were sent before the signal.
        while self.has_room() and self.accept_one():
            pass
        if self.is_accepting:
            self.loop.remove_reader(self.listener)
        self.is_accepting = None
        self.listener.close()
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=DRAIN_WITHIN_S)

    def has_room(self):
        return self.clients + 2 * self.handoffs + 2 <= self.room

    def update_accepting(self):
        """Accepts while there is room. Otherwise connections stay in the queue, or go to another process."""
        if self.is_accepting is not None and self.is_accepting != self.has_room():
            self.is_accepting = not self.is_accepting
            if self.is_accepting:
                self.loop.add_reader(self.listener, self.accept)
            else:
                self.loop.remove_reader(self.listener)

    def accept(self):
        for _ in range(ACCEPTED_AT_ONCE):
            if not self.has_room() or not self.accept_one():
                break
        self.update_accepting()

    def accept_one(self):
        try:
            connection, _ = self.listener.accept()
        except OSError as why:
            if not isinstance(why, BlockingIOError):
                print("streaming_daemon_async: accept:", why, file=sys.stderr, flush=True)
            return False
        connection.setblocking(False)
        self.handoffs += 1
        task = self.loop.create_task(self.serve(connection))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return True

    async def serve(self, connection):
        """The coroutine of one handoff and its stream."""
        client, response = None, b""
        try:
            client, prompt, user = await self.receive(connection)
        except Unacceptable as why:
            client, response = why.client, why.response
            if client is None:
                print("streaming_daemon_async: handoff without a client:", why, file=sys.stderr, flush=True)
        finally:
            connection.close()
            self.handoffs -= 1
            self.clients += client is not None
            self.update_accepting()
        if client is None:
            return
        self.counters.add_active(1)
        try:
            os.set_blocking(client, False)
            if not response and self.counters.active() > self.max_connections:
                response = REJECTED
            if response:
                await self.write(client, response)
            else:
                await self.stream(client, prompt, user)
        except (OSError, TimeoutError):
            pass  # the client has gone, or does not read
        finally:
            os.close(client)
            self.counters.add_active(-1)
            self.clients -= 1
            self.update_accepting()

    async def stream(self, client, prompt, user):
        """Writes all events at their times. A client that has gone fails the next write."""
        self.streams += 1
        self.counters.raise_peak(self.streams)
        try:
            await self.write(client, HEAD + self.event(1, b"Hello from Python! Prompt: " + prompt))
            due = self.loop.time()
            for number in range(2, self.messages + 1):
                due += self.delay
                await asyncio.sleep(due - self.loop.time())
                await self.write(client, self.events[number - 3] if number > 2
                                 else self.event(number, b"User ID: " + user))
        finally:
            self.streams -= 1

    async def write(self, client, data):
        while True:
            try:
                written = os.write(client, data)
            except BlockingIOError:
                written = 0
            if written == len(data):
                return
            data = data[written:]
            await self.ready(self.loop.add_writer, self.loop.remove_writer, client, STALLED_WITHIN_S)

    async def ready(self, add, remove, descriptor, within_s):
        """Waits until the descriptor can be read or written; TimeoutError after a time."""
        found = self.loop.create_future()
        add(descriptor, lambda: found.done() or found.set_result(None))
        try:
            async with asyncio.timeout(within_s):
                await found
        finally:
            remove(descriptor)

    async def receive(self, connection):
        """Receives a handoff: (client, prompt, user id), or Unacceptable.

        Over SOCK_STREAM a long message comes in pieces, until it is whole or the sender has closed.
        """
        client, message = None, b""
        end = self.loop.time() + HANDOFF_WITHIN_S
        is_retry = False
        while True:
            try:
                size, control, flags, _ = connection.recvmsg_into(
                    [self.buffer], socket.CMSG_SPACE(4 * MAX_DESCRIPTORS), socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                try:
                    await self.ready(self.loop.add_reader, self.loop.remove_reader, connection,
                                     max(0, end - self.loop.time()))
                except TimeoutError:
                    raise Unacceptable("timeout", client, BAD_FORMAT) from None
                continue
            except OSError as why:
                raise Unacceptable(str(why), client) from None
            client = first_descriptor(control) if client is None else client
            if client is None and flags & socket.MSG_CTRUNC:
                raise Unacceptable("the descriptor table was full")
            if not size:
                # A SOCK_SEQPACKET peer that sends and closes can be seen as closed before its message is: the next
                # call has the message.
                if self.is_seqpacket and client is None and not is_retry:
                    is_retry = True
                    continue
                raise Unacceptable("no descriptor", client, BAD_FORMAT)
            if flags & socket.MSG_TRUNC or len(message) + size > MAX_MESSAGE:
                raise Unacceptable("too large", client, TOO_LARGE)
            message += self.buffer[:size]
            try:
                found = parse(message)
            except (ValueError, RecursionError):
                if self.is_seqpacket:
                    raise Unacceptable("not JSON", client, BAD_FORMAT) from None
                continue
            if client is None:
                raise Unacceptable("no descriptor")
            return client, *found


def first_descriptor(control):
    """The first descriptor of control messages, or None; the others are closed."""
    found = array.array("i")
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[:len(data) - len(data) % found.itemsize])
    for other in found[1:]:
        os.close(other)
    return found[0] if found else None


def unlink(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


async def work(listener, chosen, counters, parent_end):
    """The whole life of a worker. `parent_end` can be read once the parent has ended; None without one."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop():
        if parent_end is None:
            unlink(chosen.socket)
        else:
            loop.remove_reader(parent_end)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if parent_end is not None:
        loop.add_reader(parent_end, stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SUPERVISED_SIGNALS)
    await Daemon(listener, chosen, counters).run(stopping)


def run_loop(*arguments):
    # Tasks and their futures make few cycles, and the collector would walk through all of them again and again.
    gc.set_threshold(100_000, 50, 1000)
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if uvloop else None) as runner:
        runner.run(work(*arguments))


SUPERVISED_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}


def supervise(listener, chosen, counters):
    """Forks the workers, passes a signal on to them and waits for their ends. True if all went well."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SUPERVISED_SIGNALS)
    read_end, write_end = os.pipe()
    running = set()
    for index in range(chosen.processes):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(write_end)
                counters.index = index
                run_loop(listener, chosen, counters, read_end)
                status = 0
            except BaseException as why:
                print("streaming_daemon_async:", why, file=sys.stderr, flush=True)
            finally:
                os._exit(status)
        running.add(pid)
    listener.close()
    went_well, end = True, None
    while running:
        with contextlib.suppress(ChildProcessError):
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                running.discard(pid)
                if status or end is None:
                    print("streaming_daemon_async: a worker has ended:", os.waitstatus_to_exitcode(status), file=sys.stderr)
                    went_well = False
                continue
        if not went_well or end is not None:
            found = True
        else:
            found = signal.sigwait(SUPERVISED_SIGNALS) != signal.SIGCHLD
        if found and end is None:
            end = time.monotonic() + DRAIN_WITHIN_S + DRAIN_MARGIN_S
            unlink(chosen.socket)
            for pid in running:
                os.kill(pid, signal.SIGTERM)
        elif found:
            if time.monotonic() > end:
                for pid in running:
                    os.kill(pid, signal.SIGKILL)
            signal.sigtimedwait({signal.SIGCHLD}, 0.1)
    return went_well


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-s", "--socket", metavar="PATH", default="/var/run/streaming-daemon-py.sock", help="Unix socket path")
    parser.add_argument("-m", "--mode", type=lambda text: int(text, 8), default=0o660, help="socket permissions (octal)")
    parser.add_argument("-w", "--workers", metavar="NUM", type=int, default=0,
                        help="accepted and unused: messages are received without blocking, so no threads are needed")
    parser.add_argument("-d", "--delay", metavar="MS", type=float, default=50, help="delay between events (%(default)s)")
    parser.add_argument("-b", "--backlog", metavar="NUM", type=int, default=1024, help="listen backlog (%(default)s)")
    parser.add_argument("-n", "--messages", metavar="NUM", type=int, default=18, help="events of a stream (%(default)s)")
    parser.add_argument("-c", "--max-connections", metavar="NUM", type=int, default=100_000,
                        help="concurrent connections, of all processes (%(default)s)")
    parser.add_argument("-t", "--socket-type", choices=("stream", "seqpacket"), default="stream", help="(%(default)s)")
    parser.add_argument("-p", "--processes", metavar="NUM", type=int, default=1,
                        help="processes, each with its own limit of open files (%(default)s)")
    chosen = parser.parse_args()
    if min(chosen.messages, chosen.max_connections, chosen.backlog) < 1 or not 0 <= chosen.delay or \
            not 1 <= chosen.processes <= MAX_PROCESSES:
        parser.error(f"numbers begin with 1, and there are at most {MAX_PROCESSES} processes")
    return chosen


def listen(chosen):
    kind = socket.SOCK_SEQPACKET if chosen.socket_type == "seqpacket" else socket.SOCK_STREAM
    listener = socket.socket(socket.AF_UNIX, kind)
    unlink(chosen.socket)
    listener.bind(chosen.socket)
    os.chmod(chosen.socket, chosen.mode)
    listener.listen(chosen.backlog)
    listener.setblocking(False)
    return listener


def main():
    chosen = parse_arguments()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    counters = Counters(chosen.processes)
    went_well = True
    try:
        listener = listen(chosen)
        if chosen.processes > 1:
            went_well = supervise(listener, chosen, counters)
        else:
            run_loop(listener, chosen, counters, None)
    except OSError as why:
        sys.exit(f"streaming_daemon_async: {why}")
    print(f"Peak concurrent streams: {counters.peak()}", file=sys.stderr, flush=True)
    return 0 if went_well else 1


if __name__ == "__main__":
    sys.exit(main())
