"""Proxies of run_proxy.py: nginx, haproxy and h2o as apt installs them, and Eddy's daemon; each on one core and in one
thread, with kept connections to the backend and X-Forwarded-For. One that cannot be had is left out, with the reason."""

import contextlib
import os

import harness
import rivals

# haproxy wants two descriptors for each.
MOST_CLIENTS = (min(harness.raise_descriptor_limit(), 32768) - 500) // 2
STREAM_MODULE = "/usr/lib/nginx/modules/ngx_stream_module.so"


class Backends:
    """Beside the load: nginx with the files of a Site, and an echo of WebSockets."""

    def __init__(self, core, site):
        self.core, self.site = core, site

    def __enter__(self):
        with contextlib.ExitStack() as begun:
            self.files = begun.enter_context(rivals.Nginx(self.core, "backend", rivals.program("nginx"), self.site, False)).port
            self.sockets = begun.enter_context(
                rivals.Web(self.core, "WebSocket backend", harness.built("http_eddy"), self.site, False)).port
            self.all = begun.pop_all()
        return self

    def __exit__(self, *failure):
        return self.all.__exit__(*failure)

    def of(self, kind):
        return self.sockets if kind == "ws" else self.files


class Proxy(harness.Server):
    """A proxy of a kind of load before its backend."""

    kinds = ("http", "ws", "tls")

    def __init__(self, core, kind, backends):
        super().__init__(core, self.side, [])
        self.kind, self.backend, self.site = kind, backends.of(kind), backends.site


class Nginx(Proxy):
    side = "nginx"
    kinds = ("http", "ws", "tls", "tcp") if os.path.exists(STREAM_MODULE) else Proxy.kinds

    @staticmethod
    def check():
        rivals.program("nginx")

    def arguments(self):
        serves = self.stream if self.kind == "tcp" else self.http
        return [rivals.program("nginx"), "-p", self.folder, "-c", self.written("nginx.conf", f"""
{f"load_module {STREAM_MODULE};" if self.kind == "tcp" else ""}
daemon off; master_process off; worker_processes 1; pid {self.folder}/pid; error_log stderr crit;
events {{ worker_connections {2 * MOST_CLIENTS}; multi_accept on; }}
{serves()}
""")]

    def stream(self):
        return f"""stream {{ server {{ listen 127.0.0.1:{self.port} backlog=4096;
            proxy_pass 127.0.0.1:{self.backend}; }} }}"""

    def http(self):
        folders = "\n".join(f"{kind}_temp_path {self.folder}/{kind};"
                            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        tls = f"ssl_certificate {self.site.cert}; ssl_certificate_key {self.site.key};" if self.kind == "tls" else ""
        upgrade = "$http_upgrade" if self.kind == "ws" else '""'
        connection = "upgrade" if self.kind == "ws" else '""'
        return f"""http {{
    {folders}
    access_log off; keepalive_requests 1000000000; keepalive_timeout 1h;
    upstream to {{ server 127.0.0.1:{self.backend}; keepalive 1024; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{self.port} {"ssl" if tls else ""} backlog=4096; {tls}
        location / {{
            proxy_pass http://to; proxy_http_version 1.1; proxy_set_header Host $host;
            proxy_set_header Upgrade {upgrade}; proxy_set_header Connection {connection};
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }}
    }}
}}"""


class Haproxy(Proxy):
    side = "haproxy"
    kinds = ("http", "ws", "tls", "tcp")

    @staticmethod
    def check():
        rivals.program("haproxy")

    def arguments(self):
        tls = ""
        if self.kind == "tls":
            with open(self.site.cert) as cert, open(self.site.key) as key:
                tls = "ssl crt " + self.written("both.pem", cert.read() + key.read())
        mode = "mode tcp" if self.kind == "tcp" else "mode http\n    http-reuse always\n    option forwardfor"
        return [rivals.program("haproxy"), "-db", "-f", self.written("haproxy.cfg", f"""
global
    nbthread 1
    maxconn {MOST_CLIENTS}
defaults
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    timeout tunnel 1h
    {mode}
listen one
    bind 127.0.0.1:{self.port} backlog 4096 {tls}
    server backend 127.0.0.1:{self.backend}
""")]


class H2o(Proxy):
    side = "h2o"
    kinds = ("http", "tls")

    @staticmethod
    def check():
        rivals.program("h2o")

    def arguments(self):
        tls = f"\n  ssl:\n    certificate-file: {self.site.cert}\n    key-file: {self.site.key}" if self.kind == "tls" else ""
        return [rivals.program("h2o"), "-c", self.written("h2o.conf", f"""
user: {"root" if os.geteuid() == 0 else "nobody"}
num-threads: 1
max-connections: {MOST_CLIENTS}
http1-request-timeout: 3600
proxy.timeout.keepalive: 60000
listen:
  host: 127.0.0.1
  port: {self.port}{tls}
hosts:
  default:
    paths:
      /:
        proxy.reverse.url: http://127.0.0.1:{self.backend}/
""")]


class Eddy(harness.Eddy):
    """As created, but for limits that a load of this size meets."""

    side = "eddy"
    kinds = ("http", "ws", "tls", "tcp")

    def __init__(self, core, kind, backends):
        site = backends.site
        tls = ["--tls", "--cert", site.cert, "--key", site.key] if kind == "tls" else []
        super().__init__(core, "--backend", f":{backends.of(kind)}", "--protocol", "tcp" if kind == "tcp" else "http",
                         "--max-connections", str(MOST_CLIENTS), "--client-timeout" if kind != "tcp" else "--idle-timeout",
                         "1h", *tls, runtime="proxy")

    @staticmethod
    def check():
        harness.eddy()


def find(chosen):
    """The sides that are here, by name. The others are noted in chosen.skipped."""
    found = {}
    for kind in (Nginx, Haproxy, H2o, Eddy):
        try:
            kind.check()
            found[kind.side] = kind
        except rivals.Missing as why:
            chosen.skipped[kind.side] = str(why)
            harness.warn(f"{why}: it is left out")
    return found
