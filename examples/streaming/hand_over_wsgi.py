"""Application of WSGI under gunicorn that hands its clients over to a stream runtime.

    eddy create stream llm --handoff unix:///tmp/llm.sock --delay 300ms -s
    HANDOFF=/tmp/llm.sock gunicorn --bind 127.0.0.1:8000 hand_over_wsgi:application
    curl -N 'http://127.0.0.1:8000/?prompt=hello&user=7'

hand_over() works in a view of Django, too: there `environ` is `request.META`.
"""

import json
import os
import socket
from urllib.parse import parse_qsl


def hand_over(path, environ, request):
    """Passes the client of a request to the stream runtime at `path`. The content must have been read."""
    client = environ["gunicorn.socket"]
    message = {"http_version": environ["SERVER_PROTOCOL"], "request_method": environ["REQUEST_METHOD"], **request}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
        sender.settimeout(5)
        sender.connect(path)
        socket.send_fds(sender, [json.dumps(message).encode()], [client.fileno()])
    # gunicorn still writes a response, and newer versions call shutdown(2): both go to a socket without a peer, under
    # the client's number.
    placeholder, peer = socket.socketpair()
    with placeholder, peer:
        os.dup2(placeholder.fileno(), client.fileno(), inheritable=False)


def application(environ, start_response):
    query = dict(parse_qsl(environ["QUERY_STRING"]))
    if "user" not in query:
        start_response("401 Unauthorized", [("Content-Length", "0")])
        return []
    # A real application limits it.
    environ["wsgi.input"].read()
    try:
        hand_over(os.environ["HANDOFF"], environ, {
            "user_id": query["user"], "prompt": query.get("prompt", ""),
            # For replay: the number of the user's answer, and the browser's last event.
            "request_id": query.get("request", ""), "last_event_id": environ.get("HTTP_LAST_EVENT_ID", "")})
    except OSError:
        start_response("503 Service Unavailable", [("Content-Length", "0")])
        return []
    # The client does not see it.
    start_response("200 OK", [("Content-Length", "0")])
    return []
