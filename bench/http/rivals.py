"""Servers of run_http.py: nginx and h2o as apt installs them, hyper, fasthttp and Bun, which are fetched and built below
build/rivals by their own tools. One that cannot be had is left out, with the reason."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

import harness

sys.path.insert(0, os.path.join(harness.ROOT, "tools"))
from dev.rivals import LIBRARY, nginx_lua as unpacked_nginx_lua

HERE = os.path.dirname(os.path.abspath(__file__))
RIVALS = os.path.join(harness.ROOT, "build/rivals/http")
BUN = "@oven/bun-linux-x64@1.4.5"
BUILD_WITHIN_S = 900


class Missing(Exception):
    """A server cannot be had; the text says why."""


class Site:
    """Content of the servers: a folder with the files small (1 KB) and large (100 KB), and a certificate."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "root")
        os.mkdir(self.root)
        for name, size in (("small", 1024), ("large", 100_000)):
            with open(os.path.join(self.root, name), "w") as file:
                file.write(("the file %s " % name * size)[:size])
        self.cert, self.key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", self.key, "-out", self.cert], check=True, capture_output=True)


def run(what, argv, folder):
    """Runs a tool that fetches or builds; Missing when that fails."""
    if not shutil.which(argv[0]):
        raise Missing(f"{what}: there is no {argv[0]}")
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=BUILD_WITHIN_S)
    except subprocess.TimeoutExpired:
        raise Missing(f"{what}: {argv[0]} took more than {BUILD_WITHIN_S} s") from None
    if done.returncode != 0:
        raise Missing(f"{what}: {argv[0]} failed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")


def copied(name):
    """The sources of a rival in a folder below build/, where its tools may write."""
    folder = os.path.join(RIVALS, name)
    shutil.copytree(os.path.join(HERE, name), folder, dirs_exist_ok=True)
    return folder


def program(name):
    """A program of the system."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not path:
        raise Missing(f"{name} is not installed")
    return path


def hyper():
    folder = copied("hyper")
    run("hyper", ["cargo", "build", "--release", "--quiet"], folder)
    return os.path.join(folder, "target/release/http_hyper")


def fasthttp():
    folder = copied("fasthttp")
    run("fasthttp", ["go", "build", "-o", "http_fasthttp", "."], folder)
    return os.path.join(folder, "http_fasthttp")


def bun():
    folder = copied("bun")
    found = glob.glob(os.path.join(folder, "node_modules/@oven/bun-linux-x64/bin/bun"))
    if not found:
        run("bun", ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel", "error",
                    "--prefix", folder, BUN], folder)
        found = glob.glob(os.path.join(folder, "node_modules/@oven/bun-linux-x64/bin/bun"))
    if not found:
        raise Missing("bun: its package has no program")
    return found[0]


class Web(harness.Server):
    """A server of a Site, with TLS or without, on one core and in one thread."""

    def __init__(self, core, name, path, site, is_tls):
        super().__init__(core, name, [])
        self.path, self.site, self.is_tls = path, site, is_tls

    def common(self):
        more = ["--cert", self.site.cert, "--key", self.site.key] if self.is_tls else []
        return ["--port", str(self.port), "--root", self.site.root, *more]

    def arguments(self):
        return [self.path, *self.common()]


class Bun(Web):
    def arguments(self):
        return [self.path, os.path.join(HERE, "bun/server.js"), *self.common()]


class Nginx(Web):
    """In the foreground and in one process; it keeps connections for ever, and open files in mind."""

    def folders(self):
        return "\n".join(f"{kind}_temp_path {self.folder}/{kind};"
                         for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))

    def arguments(self):
        tls = f"ssl_certificate {self.site.cert}; ssl_certificate_key {self.site.key};" if self.is_tls else ""
        return [self.path, "-p", self.folder, "-c", self.written("nginx.conf", f"""
daemon off; master_process off; worker_processes 1; pid {self.folder}/pid; error_log stderr crit;
events {{ worker_connections 16384; multi_accept on; }}
http {{
    {self.folders()}
    access_log off; keepalive_requests 1000000000; keepalive_timeout 1h; default_type text/plain;
    sendfile on; tcp_nopush on; open_file_cache max=100;
    server {{
        listen 127.0.0.1:{self.port} {"ssl" if self.is_tls else ""} backlog=4096; root {self.site.root}; {tls}
        location = /echo {{ default_type application/json; return 200 '{{"hello":"$arg_hello"}}'; }}
    }}
}}
""")]


class NginxLua(Nginx):
    """The same with Debian's module of Lua, which is unpacked below `lua`, since it replaces the LuaJIT of Eddy."""

    def __init__(self, *its):
        super().__init__(*its)
        self.path, self.lua = self.path
        self.env["LD_LIBRARY_PATH"] = libraries(self.lua)

    def arguments(self):
        return [self.path, "-p", self.folder, "-c", self.written("nginx.conf", f"""
{load_modules(self.lua)}
daemon off; master_process off; worker_processes 1; pid {self.folder}/pid; error_log stderr crit;
events {{ worker_connections 16384; multi_accept on; }}
http {{
    {self.folders()}
    access_log off; keepalive_requests 1000000000; keepalive_timeout 1h;
    lua_package_path '{self.lua}/usr/share/lua/5.1/?.lua;;';
    init_by_lua_block {{ names = {{ "name", "count", "tags", "nested", "is_small", "ratio" }} }}
    lua_package_cpath '{self.lua}/{LIBRARY}/lua/5.1/?.so;;';
    server {{
        listen 127.0.0.1:{self.port} backlog=4096;
        location = /json {{
            default_type application/json; client_body_buffer_size 64k;
            content_by_lua_file {HERE}/json_nginx.lua;
        }}
    }}
}}
""")]


class EddyLua(harness.Eddy):
    """A site of the daemon, with a script and without files."""

    def __init__(self, core, name, _path, _site, _is_tls):
        super().__init__(core, "--lua", os.path.join(HERE, "json_eddy.lua"), runtime="http")
        self.name = name


class H2o(Web):
    def arguments(self):
        tls = f"\n  ssl:\n    certificate-file: {self.site.cert}\n    key-file: {self.site.key}" if self.is_tls else ""
        return [self.path, "-c", self.written("h2o.conf", f"""
user: {"root" if os.geteuid() == 0 else "nobody"}
num-threads: 1
max-connections: 16384
http1-request-timeout: 3600
listen:
  host: 127.0.0.1
  port: {self.port}{tls}
hosts:
  default:
    paths:
      /:
        file.dir: {self.site.root}
""")]


def libraries(folder):
    """The folders of libraries of unpacked packages."""
    return ":".join(os.path.join(folder, each) for each in (LIBRARY, LIBRARY.removeprefix("usr/")))


def load_modules(folder):
    return "".join(f"load_module {folder}/usr/lib/nginx/modules/{name}_module.so;\n" for name in ("ndk_http", "ngx_http_lua"))


def nginx_lua():
    folder = unpacked_nginx_lua()
    if not folder:
        raise Missing("nginx's module of Lua cannot be fetched")
    path = program("nginx")
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(load_modules(folder) + "events {}\n")
        file.flush()
        tried = subprocess.run([path, "-t", "-c", file.name], capture_output=True, text=True,
                               env={**os.environ, "LD_LIBRARY_PATH": libraries(folder)})
    if tried.returncode != 0:
        raise Missing(f"nginx with Lua: {tried.stderr.strip().splitlines()[:1]}")
    return path, folder


# Sides by name: how to find the program, and the class of its server.
SIDES = {
    "nginx": (lambda: program("nginx"), Nginx),
    "h2o": (lambda: program("h2o"), H2o),
    "hyper": (hyper, Web),
    "fasthttp": (fasthttp, Web),
    "bun": (bun, Bun),
    "eddy": (lambda: harness.built("http_eddy"), Web),
    "nginx with Lua": (nginx_lua, NginxLua),
    "eddy with Lua": (harness.eddy, EddyLua),
}


def find(chosen):
    """The sides that are here, by name: how each is started, as start(core, site, is_tls). The others are noted in
    chosen.skipped."""
    found = {}
    for name, (where, kind) in SIDES.items():
        try:
            path = where()
        except Missing as why:
            chosen.skipped[name] = str(why)
            harness.warn(f"{why}: it is left out")
            continue
        found[name] = lambda core, site, is_tls, name=name, path=path, kind=kind: kind(core, name, path, site, is_tls)
    return found
