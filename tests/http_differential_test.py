#!/usr/bin/env python3
"""HTTP proxies beside HAProxy and nginx: what reaches a backend, and a client, for the same bytes.

A backend must get from Eddy's proxy what it gets from one of the other two, and never more requests than from either; so
must a client with responses. Tables have the differences that are choices, with their reasons. Inputs that one of
the others should refuse, and does not, are not here: they show nothing about Eddy.
"""

import collections
import re
import socket
import sys
import threading

from harness import DEADLINE_S, all_of, connect, free_port
from other_proxies import OtherProxiesTest, installed
import harness

PEERS = [name for name in ("haproxy", "nginx") if installed(name)]
for missing in {"haproxy", "nginx"} - set(PEERS):
    print(f"skipped: there is no {missing} (apt: {missing})", file=sys.stderr)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

# Fields are those of the test alone, whose names begin with X-T.
Request = collections.namedtuple("Request", "method target host fields content trailers")
Response = collections.namedtuple("Response", "status fields content is_whole")


class Malformed(Exception):
    pass


class Ended(Exception):
    """The connection ended within a message."""


def expect(condition, text):
    if not condition:
        raise Malformed(text)


class Reader:
    """A strict reader of messages from a socket: what two recipients might read differently is malformed (RFC 9112)."""

    def __init__(self, peer):
        self.peer, self.text, self.trailers = peer, b"", []

    def more(self):
        try:
            piece = self.peer.recv(65536)
        except OSError:
            piece = b""
        if not piece:
            raise Ended
        self.text += piece

    def until(self, last):
        while last not in self.text:
            self.more()
        found, _, self.text = self.text.partition(last)
        return found

    def bytes(self, size):
        while len(self.text) < size:
            self.more()
        found, self.text = self.text[:size], self.text[size:]
        return found

    def head(self):
        """The first line and the fields; None at an orderly end."""
        try:
            text = self.until(b"\r\n\r\n")
        except Ended:
            if self.text:
                raise
            return None, None
        first, *lines = text.split(b"\r\n")
        expect(not re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", b"".join([first, *lines])), text)
        fields = []
        for line in lines:
            found = re.fullmatch(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*", line)
            expect(found, line)
            fields.append((found[1].lower(), found[2]))
        return first, fields

    def chunks(self):
        content = b""
        while True:
            size = self.until(b"\r\n")
            expect(re.fullmatch(rb"[0-9A-Fa-f]{1,16}", size), size)
            if int(size, 16) == 0:
                break
            content += self.bytes(int(size, 16))
            expect(self.bytes(2) == b"\r\n", "no end of a chunk")
        while line := self.until(b"\r\n"):
            self.trailers.append(line.lower())
        return content

    def framed(self, fields):
        """The content by its framing; None where there is none."""
        sizes = [value for name, value in fields if name == b"content-length"]
        codings = [value for name, value in fields if name == b"transfer-encoding"]
        expect(len(sizes) + len(codings) <= 1, fields)
        if codings:
            expect(codings[0].lower() == b"chunked", codings)
            return self.chunks()
        if sizes:
            expect(re.fullmatch(rb"[0-9]{1,18}", sizes[0]), sizes)
            return self.bytes(int(sizes[0]))
        return None

    def request(self):
        """The next one; None at the end."""
        first, fields = self.head()
        if first is None:
            return None
        line = re.fullmatch(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (?:http://([^/]+))?(/[!-~]*|\*|) HTTP/1\.([01])", first)
        expect(line and (line[2] or line[3]), first)
        hosts = [value for name, value in fields if name == b"host"]
        expect(len(hosts) == 1 or line[4] == b"0", fields)
        self.trailers = []
        content = self.framed(fields) or b""
        return Request(line[1], line[3] or b"/", line[2] or b"".join(hosts), own(fields), content, tuple(self.trailers))

    def response(self, to=b"GET"):
        """The next final one, and the interim ones before it; None at the end."""
        first, fields = self.head()
        if first is None:
            return None
        line = re.fullmatch(rb"HTTP/1\.[01] ([1-5][0-9][0-9])( [\t -~]*)?", first)
        expect(line, first)
        status = int(line[1])
        if status < 200 or status in (204, 304) or to == b"HEAD":
            return Response(status, own(fields), b"", True)
        try:
            content = self.framed(fields)
        except Ended:
            return Response(status, own(fields), b"", False)
        if content is None:
            content, self.text = self.text + all_of(self.peer), b""
        return Response(status, own(fields), content, True)


def own(fields):
    return tuple((name, value) for name, value in fields if name.startswith(b"x-t"))


class Backend:
    """Answers each request it reads: what it reads is in `seen`, and what is malformed as a text."""

    def __init__(self):
        self.seen = []
        # The response to the first request, and whether the connection ends behind it; others get OK.
        self.script, self.closes = OK, False
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer = self.listening.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        with peer:
            peer.settimeout(DEADLINE_S)
            reader = Reader(peer)
            try:
                while got := reader.request():
                    self.seen.append(got)
                    is_scripted = got.target == b"/scripted"
                    peer.sendall(self.script if is_scripted else OK)
                    if is_scripted and self.closes:
                        return
            except Malformed as why:
                self.seen.append(f"malformed: {why}")
            except (Ended, OSError):
                pass

    def take(self):
        seen, self.seen = self.seen, []
        return seen


def chunked(text, more=b""):
    return b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" + more + b"\r\n" + text


def sized(size, text, more=b""):
    return b"POST /s HTTP/1.1\r\nHost: x\r\nContent-Length: " + size + b"\r\n" + more + b"\r\n" + text


def get(line=b"GET /g HTTP/1.1", fields=b"Host: x\r\n"):
    return line + b"\r\n" + fields + b"\r\n"


INNER = get(b"GET /inner HTTP/1.1")
# Behind each case, so that its end is found, or mistaken.
PROBE = get(b"GET /probe HTTP/1.1", b"Host: x\r\nConnection: close\r\n")

REQUESTS = {
    "plain": get(),
    "a query": get(b"GET /g?a=b&c HTTP/1.1"),
    "percent-encoding": get(b"GET /%7Ea%2fb HTTP/1.1"),
    "an asterisk": get(b"OPTIONS * HTTP/1.1"),
    "HEAD": get(b"HEAD /g HTTP/1.1"),
    "DELETE": get(b"DELETE /g HTTP/1.1"),
    "an unknown method": get(b"BREW /g HTTP/1.1"),
    "a method in lower case": get(b"get /g HTTP/1.1"),
    "a method that is no token": get(b"G(T /g HTTP/1.1"),
    "TRACE": get(b"TRACE /g HTTP/1.1"),
    "two blanks in the first line": get(b"GET  /g HTTP/1.1"),
    "a blank behind the version": get(b"GET /g HTTP/1.1 "),
    "version 1.2": get(b"GET /g HTTP/1.2"),
    "http in lower case": get(b"GET /g http/1.1"),
    "an empty line before": b"\r\n" + get(),
    "bare line feeds": get().replace(b"\r\n", b"\n"),
    "a bare line feed in the head": get(fields=b"Host: x\r\nX-T: a\nX-Two: b\r\n"),
    "a bare carriage return in a field": get(fields=b"Host: x\r\nX-T: a\rb\r\n"),
    "a tab in a field": get(fields=b"Host: x\r\nX-T: a\tb\r\n"),
    "bytes beyond ASCII in a field": get(fields=b"Host: x\r\nX-T: \xc3\xa4\r\n"),
    "blanks around a value": get(fields=b"Host: x\r\nX-T: \t a \t\r\n"),
    "a folded line": get(fields=b"Host: x\r\nX-T: a\r\n b\r\n"),
    "a folded first line": get(fields=b" X-T: a\r\nHost: x\r\n"),
    "a blank before the colon": get(fields=b"Host: x\r\nX-T : a\r\n"),
    "a name that is no token": get(fields=b"Host: x\r\nX-T(): a\r\n"),
    "an empty name": get(fields=b"Host: x\r\n: a\r\n"),
    "an empty value": get(fields=b"Host: x\r\nX-T:\r\n"),
    "a field twice": get(fields=b"Host: x\r\nX-T: a\r\nX-T: b\r\n"),
    "two hosts": get(fields=b"Host: x\r\nHost: y\r\n"),
    "an empty host": get(fields=b"Host:\r\n"),
    "absolute form": get(b"GET http://x/g HTTP/1.1"),
    "absolute form without a path": get(b"GET http://x HTTP/1.1"),
    "absolute form of another host": get(b"GET http://y/g HTTP/1.1"),
    "HTTP/1.0": get(b"GET /g HTTP/1.0"),
    "HTTP/1.0 without a host": get(b"GET /g HTTP/1.0", b""),
    "HTTP/1.0 that is kept": get(b"GET /g HTTP/1.0", b"Host: x\r\nConnection: keep-alive\r\n"),
    "HTTP/1.0 with content": sized(b"2", b"ab").replace(b"1.1", b"1.0"),
    "HTTP/1.0 with chunks": chunked(b"0\r\n\r\n").replace(b"1.1", b"1.0"),
    "a length": sized(b"2", b"ab"),
    "a length of 0": sized(b"0", b""),
    "a length with zeros before": sized(b"002", b"ab"),
    "a length that covers a request": sized(b"%d" % len(INNER), INNER),
    "a length of GET": get(b"GET /g HTTP/1.1", b"Host: x\r\nContent-Length: 2\r\n") + b"ab",
    "a signed length": sized(b"+2", b"ab"),
    "a negative length": sized(b"-2", b"ab"),
    "a hexadecimal length": sized(b"0x2", b"ab"),
    "two numbers as a length": sized(b"2 2", b"ab"),
    "a length beyond all numbers": sized(b"9" * 30, b"ab"),
    "two equal lengths": sized(b"2", b"ab", b"Content-Length: 2\r\n"),
    "two lengths": sized(b"2", b"ab", b"Content-Length: 0\r\n"),
    "a list of equal lengths": sized(b"2, 2", b"ab"),
    "a list of lengths": sized(b"2, 0", b"ab"),
    "content that is cut": sized(b"100", b"ab"),
    "chunks": chunked(b"2\r\nab\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"),
    "no chunks": chunked(b"0\r\n\r\n"),
    "chunks of GET": get(fields=b"Host: x\r\nTransfer-Encoding: chunked\r\n") + b"2\r\nab\r\n0\r\n\r\n",
    "a chunk that is a request": chunked(b"%x\r\n" % len(INNER) + INNER + b"\r\n0\r\n\r\n"),
    "a chunk with a request behind": chunked(b"0\r\n\r\n" + INNER),
    "a chunk's size with zeros before": chunked(b"0002\r\nab\r\n000\r\n\r\n"),
    "a chunk's size in upper case": chunked(b"A\r\n0123456789\r\n0\r\n\r\n"),
    "a chunk's size with 0x": chunked(b"0x2\r\nab\r\n0\r\n\r\n"),
    "a chunk's signed size": chunked(b"+2\r\nab\r\n0\r\n\r\n"),
    "a chunk's size of nothing": chunked(b"\r\nab\r\n0\r\n\r\n"),
    "a chunk's size beyond all numbers": chunked(b"1" + b"0" * 16 + b"\r\nab\r\n0\r\n\r\n"),
    "a chunk's size that is none": chunked(b"xy\r\nab\r\n0\r\n\r\n"),
    "a chunk that is too long": chunked(b"2\r\nabc\r\n0\r\n\r\n"),
    "a chunk's extension": chunked(b"2;a\r\nab\r\n0\r\n\r\n"),
    "a chunk's extension with a value": chunked(b"2;a=b\r\nab\r\n0;c\r\n\r\n"),
    "a chunk's quoted extension": chunked(b'2;a="b;c"\r\nab\r\n0\r\n\r\n'),
    "chunks that are cut": chunked(b"2\r\nab\r\n"),
    "a trailer": chunked(b"2\r\nab\r\n0\r\nX-T: a\r\n\r\n"),
    "chunks in upper case": chunked(b"0\r\n\r\n").replace(b": chunked", b": CHUNKED"),
    "both framings": chunked(b"0\r\n\r\n", b"Content-Length: 4\r\n"),
    "both framings, length first": sized(b"5", b"0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"),
    "chunked twice": chunked(b"0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"),
    "a list of chunked twice": chunked(b"0\r\n\r\n").replace(b": chunked", b": chunked, chunked"),
    "gzip before chunked": chunked(b"0\r\n\r\n").replace(b": chunked", b": gzip, chunked"),
    "gzip behind chunked": chunked(b"0\r\n\r\n").replace(b": chunked", b": chunked, gzip"),
    "identity": chunked(b"").replace(b": chunked", b": identity"),
    "identity before chunked": chunked(b"0\r\n\r\n").replace(b": chunked", b": identity, chunked"),
    "chunked with a parameter": chunked(b"0\r\n\r\n").replace(b": chunked", b": chunked;a=b"),
    "an unknown coding": chunked(b"0\r\n\r\n").replace(b": chunked", b": xchunked"),
    "chunked in quotes": chunked(b"0\r\n\r\n").replace(b": chunked", b': "chunked"'),
    "a blank before the coding's colon": chunked(b"0\r\n\r\n").replace(b": chunked", b" : chunked"),
    "a folded coding": chunked(b"0\r\n\r\n").replace(b": chunked", b":\r\n chunked"),
    "a coding named by Connection": chunked(b"0\r\n\r\n", b"Connection: transfer-encoding\r\n"),
    "a length named by Connection": sized(b"2", b"ab", b"Connection: content-length\r\n"),
    "a field named by Connection": get(fields=b"Host: x\r\nX-T: a\r\nConnection: x-t\r\n"),
    "a host named by Connection": get(fields=b"Host: x\r\nConnection: host\r\n"),
    "three in a row": get() + get(b"GET /two HTTP/1.1") + sized(b"2", b"ab"),
    "one that expects": sized(b"2", b"ab", b"Expect: 100-continue\r\n"),
    "three that expect": sized(b"2", b"ab", b"Expect: 100-continue\r\n") * 3,
    "chunks that are expected": chunked(b"2\r\nab\r\n0\r\n\r\n", b"Expect: 100-continue\r\n") + get(),
    "an unknown expectation": sized(b"2", b"ab", b"Expect: tea\r\n"),
    "one that closes, and one behind": get(fields=b"Host: x\r\nConnection: close\r\n") + INNER,
    "an upgrade": get(fields=b"Host: x\r\nConnection: upgrade\r\nUpgrade: x-t\r\n"),
    "an upgrade to HTTP/2": get(fields=b"Host: x\r\nConnection: upgrade, http2-settings\r\nUpgrade: h2c\r\n"
                                       b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n"),
    "a long target": get(b"GET /" + b"a" * 3000 + b" HTTP/1.1"),
    "a target of 60 kB": get(b"GET /" + b"a" * 60_000 + b" HTTP/1.1"),
    "a long field": get(fields=b"Host: x\r\nX-T: " + b"a" * 3000 + b"\r\n"),
    "a field of 60 kB": get(fields=b"Host: x\r\nX-T: " + b"a" * 60_000 + b"\r\n"),
    "50 fields": get(fields=b"Host: x\r\n" + b"X-T: a\r\n" * 50),
    "2,000 fields": get(fields=b"Host: x\r\n" + b"X-T: a\r\n" * 2000),
    "bytes that are no request": b"\x16\x03\x01\x00\xa5\x01\r\n\r\n",
}


def answer(text, line=b"HTTP/1.1 200 OK", fields=b""):
    return line + b"\r\n" + fields + b"\r\n" + text


def in_chunks(text, fields=b""):
    return answer(text, fields=b"Transfer-Encoding: chunked\r\n" + fields)


def of_size(size, text, fields=b""):
    return answer(text, fields=b"Content-Length: " + size + b"\r\n" + fields)


ALIEN = b"HTTP/1.1 201 Alien\r\nContent-Length: 5\r\n\r\nalien"

# Responses of a backend, and whether it closes then.
RESPONSES = {
    "plain": (of_size(b"2", b"ab"), False),
    "no content": (of_size(b"0", b""), False),
    "content until the end": (answer(b"ab"), True),
    "HTTP/1.0": (answer(b"ab", b"HTTP/1.0 200 OK"), True),
    "HTTP/1.0 with a length": (of_size(b"2", b"ab").replace(b"1.1", b"1.0"), True),
    "chunks": (in_chunks(b"2\r\nab\r\n0\r\n\r\n"), False),
    "an extension": (in_chunks(b"2;a=b\r\nab\r\n0\r\n\r\n"), False),
    "a trailer": (in_chunks(b"2\r\nab\r\n0\r\nX-T: a\r\n\r\n"), False),
    "chunks in HTTP/1.0": (in_chunks(b"2\r\nab\r\n0\r\n\r\n").replace(b"1.1", b"1.0"), True),
    "no reason": (of_size(b"2", b"ab").replace(b" OK", b""), False),
    "204": (answer(b"", b"HTTP/1.1 204 No Content"), False),
    "204 with content": (answer(b"ab", b"HTTP/1.1 204 No Content"), True),
    "204 and another response": (answer(ALIEN, b"HTTP/1.1 204 No Content"), False),
    "304 with a length": (answer(b"", b"HTTP/1.1 304 Not Modified", b"Content-Length: 5\r\n"), False),
    "two responses": (of_size(b"2", b"ab") + ALIEN, False),
    "two responses, the first in chunks": (in_chunks(b"2\r\nab\r\n0\r\n\r\n") + ALIEN, False),
    "more than its length": (of_size(b"2", b"abcd"), False),
    "less than its length": (of_size(b"4", b"ab"), True),
    "chunks that break off": (in_chunks(b"4\r\nab"), True),
    "no last chunk": (in_chunks(b"2\r\nab\r\n"), True),
    "an end at once": (b"", True),
    "an end in the head": (b"HTTP/1.1 200 OK\r\nX-T: a", True),
    "an end behind the first line": (b"HTTP/1.1 200 OK\r\n", True),
    "a chunk's size that is none": (in_chunks(b"xy\r\nab\r\n0\r\n\r\n"), True),
    "a chunk's signed size": (in_chunks(b"-2\r\nab\r\n0\r\n\r\n"), True),
    "a chunk's size beyond all numbers": (in_chunks(b"1" + b"0" * 16 + b"\r\nab\r\n0\r\n\r\n"), True),
    "a chunk that is too long": (in_chunks(b"2\r\nabc\r\n0\r\n\r\n"), True),
    "both framings": (in_chunks(b"2\r\nab\r\n0\r\n\r\n", b"Content-Length: 3\r\n"), True),
    "two equal lengths": (of_size(b"2", b"ab", b"Content-Length: 2\r\n"), True),
    "100 before": (b"HTTP/1.1 100 Continue\r\n\r\n" + of_size(b"2", b"ab"), True),
    "103 before": (b"HTTP/1.1 103 Early Hints\r\nX-T: a\r\n\r\n" + of_size(b"2", b"ab"), True),
    "three before": (b"HTTP/1.1 102 Processing\r\n\r\n" * 3 + of_size(b"2", b"ab"), True),
    "a bare line feed in a field": (of_size(b"2", b"ab", b"X-T: a\nX-Two: b\r\n"), False),
    "a bare carriage return in a field": (of_size(b"2", b"ab", b"X-T: a\rX-Two: b\r\n"), False),
    "a folded line": (of_size(b"2", b"ab", b"X-T: a\r\n b\r\n"), False),
    "a response in a field": (of_size(b"2", b"ab", b"X-T: a\r\n\r\n" + ALIEN + b"\r\n"), False),
    "a blank before the colon": (of_size(b"2", b"ab", b"X-T : a\r\n"), False),
    "a blank before the length's colon": (of_size(b"2", b"ab").replace(b"Length:", b"Length :"), False),
    "bytes beyond ASCII in a field": (of_size(b"2", b"ab", b"X-T: \xc3\xa4\r\n"), False),
    "a head of 60 kB": (of_size(b"2", b"ab", b"X-T: " + b"a" * 60_000 + b"\r\n"), False),
}

# Differences from both others that are choices, and why: the requests that reach the backend.
PROBED = Request(b"GET", b"/probe", b"x", (), b"", ())
PLAIN = Request(b"GET", b"/g", b"x", (), b"", ())
REQUEST_CHOICES = {
    "two blanks in the first line": ([], "one blank separates (RFC 9112, 3); lenient readers cut the line differently"),
    "bare line feeds": ([], "lenient readers find other lines than strict ones (RFC 9112, 2.2 allows both)"),
    "a bare line feed in the head": ([], "the same"),
    "an empty host": ([PLAIN._replace(host=b"BACKEND"), PROBED],
                      "a host is missing, so the backend gets its own, as many servers refuse none"),
    "HTTP/1.0 without a host": ([PLAIN._replace(host=b"BACKEND")], "the same"),
    "a field named by Connection": ([PLAIN, PROBED], "it is of this connection alone (RFC 9110, 7.6.1)"),
}
# The responses that the client gets.
REFUSED = [Response(502, (), b"", True), Response(200, (), b"ok", True)]
RESPONSE_CHOICES = {
    "chunks in HTTP/1.0": (REFUSED, "the framing is faulty (RFC 9112, 6.1)"),
    "both framings": (REFUSED, "it may be an attempt to split responses (RFC 9112, 6.3), as newer versions of nginx refuse it"),
    "a bare line feed in a field": (REFUSED, "lenient readers find other fields than strict ones"),
    "a chunk that is too long": ([Response(200, (), b"", False)], "the head was passed on, so the response is cut"),
}


class Differential(OtherProxiesTest):
    def setUp(self):
        if not PEERS:
            self.skipTest("there is neither haproxy nor nginx")
        # By name: the port of the proxy, and its backend.
        self.proxies = {name: (free_port(), Backend()) for name in ["eddy", *PEERS]}
        for _, backend in self.proxies.values():
            self.addCleanup(backend.listening.close)
        for name, (port, backend) in self.proxies.items():
            getattr(self, f"start_{name}")(port, backend.port)

    def start_eddy(self, port, to):
        # Only what a proxy takes for unfinished waits for these times.
        self.daemon().must("create", "proxy", "gw", "-p", str(port), "--protocol", "http", "--backend", f":{to}",
                           "--request-timeout", "20s", "--read-timeout", "20s", "--response-timeout", "20s",
                           "-s")

    def start_haproxy(self, port, to):
        self.haproxy(port, "listen all", "  mode http", "  timeout http-request 20s", "  timeout server 20s",
                     f"  bind 127.0.0.1:{port}", f"  server s 127.0.0.1:{to}")

    def start_nginx(self, port, to):
        self.nginx(port, f"upstream u {{ server 127.0.0.1:{to} max_fails=0; keepalive 8; }}",
                   f"server {{ listen 127.0.0.1:{port}; server_name x; proxy_ignore_client_abort on;",
                   "client_header_timeout 20s; client_body_timeout 20s; proxy_read_timeout 20s;",
                   'location / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection "";',
                   "proxy_set_header Host $host; } }")

    def of_each(self, action):
        """By name what the action has returned for the proxy, each in a thread of its own."""
        found = {}

        def run(name):
            found[name] = action(*self.proxies[name])
        threads = [threading.Thread(target=run, args=(name,)) for name in self.proxies]
        for each in threads:
            each.start()
        for each in threads:
            each.join(DEADLINE_S)
        self.assertEqual(found.keys(), self.proxies.keys())
        return found.pop("eddy"), found

    def check(self, name, own_ones, others, choices):
        chosen = choices.get(name)
        if chosen:
            self.assertEqual(own_ones, chosen[0], chosen[1])
        elif own_ones not in others.values():
            self.fail(f"{own_ones} is none of {others}")

    def test_a_backend_gets_the_same_requests(self):
        for name, text in REQUESTS.items():
            def requests(port, backend, name=name, text=text):
                with connect(port) as client:
                    try:
                        client.sendall(text + PROBE)
                        if "cut" in name:
                            client.shutdown(socket.SHUT_WR)
                    except OSError:  # it is refused already
                        pass
                    all_of(client)
                return [each if isinstance(each, str) else
                        each._replace(host=each.host.replace(b"127.0.0.1:%d" % backend.port, b"BACKEND"))
                        for each in backend.take()]
            with self.subTest(name):
                own_ones, others = self.of_each(requests)
                self.assertFalse([each for each in own_ones if isinstance(each, str)])
                for peer, seen in others.items():
                    if seen:
                        self.assertLessEqual(len(own_ones), len(seen), f"{peer}: {seen}")
                self.check(name, own_ones, others, REQUEST_CHOICES)

    def test_a_client_gets_the_same_responses(self):
        for name, (text, closes) in RESPONSES.items():
            def responses(port, backend, text=text, closes=closes):
                backend.script, backend.closes = text, closes
                got = []
                with connect(port) as client:
                    client.sendall(get(b"GET /scripted HTTP/1.1") + PROBE)
                    reader = Reader(client)
                    try:
                        while each := reader.response():
                            got.append(each._replace(content=b"") if each.status == 502 else each)
                    except (Malformed, Ended) as why:
                        got.append(f"{type(why).__name__} {why}")
                return got
            with self.subTest(name):
                own_ones, others = self.of_each(responses)
                finals = [each for each in own_ones if isinstance(each, str) or each.status >= 200]
                self.assertLessEqual(len(finals), 2)
                self.check(name, own_ones, others, RESPONSE_CHOICES)


if __name__ == "__main__":
    harness.main()
