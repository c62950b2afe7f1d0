#!/usr/bin/env python3
"""Web server that authenticates requests and hands their clients over to a stream runtime.

    eddy create stream llm --handoff unix:///tmp/llm.sock --delay 300ms -s
    python3 hand_over.py 8000 /tmp/llm.sock
    curl -N 'http://127.0.0.1:8000/?prompt=hello&user=7'
"""

import json
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


def hand_over(path, client, request):
    """Passes a client's socket and a request to the stream runtime at `path`. The caller may close its own."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
        sender.settimeout(5)
        sender.connect(path)
        socket.send_fds(sender, [json.dumps(request).encode()], [client.fileno()])


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        query = dict(parse_qsl(urlsplit(self.path).query))
        if "user" not in query:
            self.send_error(401)
            return
        try:
            hand_over(sys.argv[2], self.connection, {
                "user_id": query["user"], "prompt": query.get("prompt", ""),
                # For the response's framing, and for HEAD, which has no content.
                "http_version": self.request_version, "request_method": self.command,
                # For replay: the number of the user's answer, and the browser's last event.
                "request_id": query.get("request", ""), "last_event_id": self.headers.get("Last-Event-ID", "")})
        except OSError as error:
            self.send_error(503, str(error))
        # This server is done with the client: its copy of the socket is closed, the runtime's stays open.
        self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def shutdown_request(self, request):
        """Closes without shutdown(2), which would end the connection for the runtime, too."""
        request.close()


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
