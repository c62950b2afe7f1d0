#!/usr/bin/env python3
"""The PROXY protocol with real peers: HAProxy and nginx before and behind a proxy and a site."""

import glob
import json
import os
import socket
import ssl

import harness
from harness import DEADLINE_S, all_of, connect, eventually, free_port
from other_proxies import OtherProxiesTest

# Address of this machine that only clients have.
CLIENT = "127.0.0.77"


def from_client(port, host="127.0.0.1"):
    return socket.create_connection((host, port), timeout=DEADLINE_S, source_address=(CLIENT, 0))


def get(over):
    """The content of the response to a request on the connection, which it ends."""
    over.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    head, _, content = all_of(over).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    return content.decode()


def nginx_module(name):
    """The file of a dynamic module of nginx, or None."""
    found = glob.glob(f"/usr/lib*/nginx/modules/{name}") + glob.glob(f"/usr/share/nginx/modules/{name}")
    return found[0] if found else None


class ProxyProtocolTest(OtherProxiesTest):
    def setUp(self):
        self.running = self.daemon()

    def site(self, *flags):
        """A site that takes headers from 127.0.0.1, and its access log."""
        folder = self.folder()
        with open(os.path.join(folder, "index.html"), "w", encoding="ascii") as file:
            file.write("a page")
        port, self.log = free_port(), os.path.join(self.folder(), "log")
        self.running.must("create", "http", "web", "-p", str(port), "--root", folder, "--access-log", self.log,
                          "--accept-proxy", "127.0.0.1", "-s", *flags)
        return port

    def logged(self):
        """The client of the only line of the access log."""
        def lines():
            with open(self.log, encoding="ascii") as file:
                return file.read().splitlines()
        eventually(lines, "the request is logged")
        self.assertEqual(len(lines()), 1)
        return lines()[0].split()[0]

    def proxy(self, *flags):
        port = free_port()
        self.running.must("create", "proxy", "gw", "-p", str(port), "-s", *flags)
        return port


@harness.on_each_backend
class BehindHAProxy(ProxyProtocolTest):
    def before(self, site, options):
        port = free_port()
        self.haproxy(port, "listen all", "  mode tcp", f"  bind 127.0.0.1:{port}",
                     f"  server s 127.0.0.1:{site} {options}")
        return port

    def assert_announced(self, options, *flags):
        port = self.before(self.site(*flags), options)
        with from_client(port) as client:
            self.assertEqual(get(client), "a page")
        self.assertEqual(self.logged(), CLIENT)

    def test_version_1(self):
        self.assert_announced("send-proxy")

    def test_version_2(self):
        self.assert_announced("send-proxy-v2", "--threads", "2")

    def test_version_2_with_a_checksum_and_more(self):
        self.assert_announced("send-proxy-v2 proxy-v2-options crc32c,unique-id")

    def test_additional_values_are_logged(self):
        site = self.site("--access-format", "json")
        made = harness.Certificates(self.folder())
        pem = os.path.join(self.folder(), "both.pem")
        with open(pem, "w", encoding="ascii") as file:
            for part in (made.cert, made.key):
                with open(part, encoding="ascii") as source:
                    file.write(source.read())
        port = free_port()
        self.haproxy(port, "listen all", "  mode tcp", "  unique-id-format id-%pid", f"  bind 127.0.0.1:{port} ssl crt {pem}",
                     f"  server s 127.0.0.1:{site} send-proxy-v2-ssl-cn proxy-v2-options unique-id,ssl-cipher,authority")
        with from_client(port) as client, made.context().wrap_socket(client, server_hostname="localhost") as secure:
            self.assertEqual(get(secure), "a page")

        def line():
            with open(self.log, encoding="ascii") as file:
                return file.read()
        said = json.loads(eventually(line, "the request is logged"))["announced"]
        self.assertTrue(said["unique_id"].startswith("id-"))
        self.assertTrue(said["tls"]["version"].startswith("TLSv1."))
        self.assertEqual((said["authority"], said["tls"]["verified"]), ("localhost", False))

    def test_a_cache_shows_the_client(self):
        cache = free_port()
        self.running.must("create", "cache", "db", "-p", str(cache), "--accept-proxy", "127.0.0.1", "-s")
        port = self.before(cache, "send-proxy-v2")
        with from_client(port) as client:
            client.sendall(b"CLIENT LIST\r\n")
            self.assertIn(f" addr={CLIENT}:{client.getsockname()[1]} ".encode(), client.recv(65536))

    def test_before_tls(self):
        made = harness.Certificates(self.folder())
        self.assert_announced("send-proxy-v2 ssl verify none", "--tls", "--cert", made.cert, "--key", made.key)

    def test_its_checks_are_no_failures(self):
        site = self.site()
        port = free_port()
        self.haproxy(port, "listen all", "  mode tcp", f"  bind 127.0.0.1:{port}",
                     f"  server bare 127.0.0.1:{site} check inter 20",
                     f"  server local 127.0.0.1:{site} check inter 20 send-proxy-v2 check-send-proxy")
        # Checks with a header count as connections.
        eventually(lambda: self.running.json("stats", "web")["connections_total"] >= 5, "it has checked")
        self.assertEqual(self.running.json("stats", "web")["errors"], 0)

    def test_a_tunnel_passes_the_client_on(self):
        behind = self.site()
        port = self.before(self.proxy("--backend", f"127.0.0.1:{behind}", "--accept-proxy", "127.0.0.1",
                                      "--send-proxy", "v2"), "send-proxy")
        with from_client(port) as client:
            self.assertEqual(get(client), "a page")
        self.assertEqual(self.logged(), CLIENT)

    def test_an_http_proxy_has_the_client_in_its_fields(self):
        with socket.create_server(("127.0.0.1", 0)) as backend:
            backend.settimeout(DEADLINE_S)
            port = self.before(self.proxy("--backend", f"127.0.0.1:{backend.getsockname()[1]}", "--protocol", "http",
                                          "--accept-proxy", "127.0.0.1"), "send-proxy-v2")
            with from_client(port) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                with backend.accept()[0] as to:
                    to.settimeout(DEADLINE_S)
                    self.assertIn(f"X-Forwarded-For: {CLIENT}\r\n".encode(), to.recv(10_000))


@harness.on_each_backend
class BeforeHAProxy(ProxyProtocolTest):
    def assert_announced(self, version):
        port = free_port()
        self.haproxy(port, "frontend web", "  mode http", f"  bind 127.0.0.1:{port} accept-proxy",
                     '  http-request return status 200 content-type text/plain lf-string "%[src]"')
        gate = self.proxy("--backend", f"127.0.0.1:{port}", "--send-proxy", version)
        with from_client(gate) as client:
            self.assertEqual(get(client), CLIENT)

    def test_version_1(self):
        self.assert_announced("v1")

    def test_version_2(self):
        self.assert_announced("v2")

    def test_a_client_of_a_unix_socket_has_no_address(self):
        for version in ("v1", "v2"):
            port = free_port()
            self.haproxy(port, "frontend web", "  mode http", f"  bind 127.0.0.1:{port} accept-proxy",
                         '  http-request return status 200 content-type text/plain lf-string "%[src]"')
            path = os.path.join(self.folder(), "s")
            self.running.must("create", "proxy", version, "--unix", path, "--backend", f"127.0.0.1:{port}",
                              "--send-proxy", version, "-s")
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(DEADLINE_S)
                client.connect(path)
                self.assertEqual(get(client), "127.0.0.1")


@harness.on_each_backend
class WithNginx(ProxyProtocolTest):
    def test_it_takes_both_versions(self):
        port = free_port()
        self.nginx(port, f"server {{ listen 127.0.0.1:{port} proxy_protocol; "
                         'location / { default_type text/plain; return 200 "$proxy_protocol_addr"; } }')
        for version in ("v1", "v2"):
            gate = free_port()
            self.running.must("create", "proxy", version, "-p", str(gate), "--backend", f"127.0.0.1:{port}",
                              "--send-proxy", version, "-s")
            with from_client(gate) as client:
                self.assertEqual(get(client), CLIENT)

    def test_its_streams_announce_clients(self):
        module = nginx_module("ngx_stream_module.so")
        if not module:
            self.skipTest("nginx has no module for streams (libnginx-mod-stream)")
        port, site = free_port(), self.site()
        self.nginx(port, f"stream {{ server {{ listen 127.0.0.1:{port}; proxy_pass 127.0.0.1:{site}; "
                         "proxy_protocol on; } }", before=(f"load_module {module};",))
        with from_client(port) as client:
            self.assertEqual(get(client), "a page")
        self.assertEqual(self.logged(), CLIENT)


@harness.on_each_backend
class Strangers(ProxyProtocolTest):
    """Connections that claim an address without a right to."""

    HEADER = b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 80\r\n"

    def test_are_not_read_as_proxies(self):
        site = self.site()
        with from_client(site) as client:
            self.assertEqual(get(client), "a page")
        self.assertEqual(self.logged(), CLIENT)
        with from_client(site) as client:
            client.sendall(self.HEADER)
            self.assertIn(b" 400 ", all_of(client))

    def test_proxies_without_a_header_are_closed(self):
        site = self.site()
        with connect(site) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(all_of(client), b"")
        self.assertIn("a connection without a valid PROXY header was closed: from 127.0.0.1:",
                      self.running.must("logs", "web"))
        made = harness.Certificates(self.folder())
        port = free_port()
        self.running.must("create", "http", "secure", "-p", str(port), "--root", self.folder(), "--accept-proxy",
                          "127.0.0.1", "--tls", "--cert", made.cert, "--key", made.key, "-s")
        with connect(port) as client, self.assertRaises((ssl.SSLError, OSError)):
            made.context().wrap_socket(client, server_hostname="127.0.0.1")
        with connect(port) as client:
            client.sendall(self.HEADER)
            with made.context().wrap_socket(client, server_hostname="127.0.0.1") as secure:
                secure.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertTrue(all_of(secure).startswith(b"HTTP/1.1 "))


if __name__ == "__main__":
    harness.main()
