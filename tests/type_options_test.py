#!/usr/bin/env python3
"""Each option of each runtime type through the whole program: it reaches `eddy show` by `eddy create` and by `eddy edit`,
and survives a restart of the daemon. The daemon describes the options; src/runtime tests their effects.
"""

import contextlib
import os
import re
import shutil
import socket
import unittest

import harness
from flag_effects import flags_in
from harness import free_port

SECRET = "sesame"


def words_of(options):
    """Flags that give these options; a None resets its option."""
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        for each in value if isinstance(value, list) else [value]:
            words += ["--unset", flag[2:]] if each is None else [flag] if each is True else [flag, str(each)]
    return words


def usual_value(option):
    """A valid value other than the default, of an option that is no text."""
    kind, default = option["kind"], option["default"]
    if kind == "integer":
        return int(default or 6) + 1
    if kind == "choice":
        return next((each for each in option["choices"] if each != default), default)
    return {"flag": True, "size": "100k", "duration": "9s"}[kind]


class Change:
    """Change of one option, and the options without which it would be refused. None stands for an absent option."""

    def __init__(self, change, before=()):
        self.change, self.before = change, dict(before)


class Values:
    """Files for values, and the changes of options that have a form of their own or need others."""

    def __init__(self, folder):
        self.folder = folder
        self.servers = []
        self.certificates = None
        with contextlib.suppress(unittest.SkipTest):  # there is no openssl
            if "tls" in harness.parts():
                self.certificates = harness.Certificates(folder)
                self.other_cert, self.other_key = self.certificates.named("other.example")
        self.empty = self.file("empty", "")
        self.hooks = self.file("hooks.lua", "function on_miss(key) return nil end\n")
        self.lua = self.file("server.lua", "function on_tick() eddy.log(\"tick\") end\n")
        self.script = self.file("answer.lua", "function handle(request) send('x') end\n")

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def needed(self, kind, at):
        """Options without which a runtime of the type does not start. `at` is the start of paths of its own."""
        return {"client": {"target": ":1"}, "http": {"port": 0, "root": self.folder}, "proxy": {"port": 0, "backend": ":1"},
                "stream": {"handoff": f"unix://{at}.handoff"}, "program": {"command": "/bin/sleep", "arg": ["1000"]},
                "external": {"port": self.served_port()}}.get(kind, {"port": 0})

    def served_port(self):
        """A port that this test listens on."""
        self.servers.append(socket.create_server(("127.0.0.1", 0)))
        return self.servers[-1].getsockname()[1]

    def is_left_out(self, name):
        """True for an option that cannot be given here."""
        of_tls = name.startswith("tls") or name in ("cert", "key", "ca", "client_auth")
        # Its start waits for a word of the program; a daemon of another user than root may choose none.
        if name == "notify" or (name == "user" and os.geteuid() != 0):
            return True
        of_scripts = name.startswith(("hook", "lua"))
        return (of_tls and not self.certificates) or (of_scripts and "scripts" not in harness.parts())

    def changes(self, kind, at):
        made = getattr(self, "of_" + kind)(at)
        return made if kind in ("client", "stream", "program", "external") else {**self.of_listeners(at), **made}

    def of_listeners(self, at):
        at_path = {"port": None, "unix": at + ".sock"}
        made = {"port": Change({"port": free_port()}), "bind": Change({"bind": "127.0.0.2"}), "unix": Change(at_path),
                "listen": Change({"port": None, "listen": f"unix://{at}.sock"}),
                "allow_users": Change({"allow_users": str(os.getuid())}, at_path),
                "shm_path": Change({"shm_path": at + ".shm"}, {"shm": True})}
        if self.certificates:
            tls = {"tls": True, "cert": self.certificates.cert, "key": self.certificates.key}
            ca = {"ca": self.certificates.ca}
            made.update(tls=Change(tls), cert=Change({"cert": self.other_cert, "key": self.other_key}, tls),
                        key=Change({"key": shutil.copy(self.certificates.key, at + ".key")}, tls), ca=Change(ca, tls),
                        client_auth=Change({"client_auth": "optional"}, {**tls, **ca}))
        return made

    def of_scripts(self, before=(), script=None):
        scripted = {"lua": script or self.lua, **dict(before)}
        return {"lua": Change({"lua": self.lua}, before), "lua_path": Change({"lua_path": [self.folder]}, scripted), "lua_memory": Change({"lua_memory": "8M"}, scripted),
                "lua_unsafe": Change({"lua_unsafe": True}, scripted),
                "lua_slice": Change({"lua_slice": "2ms"}, scripted), "lua_time": Change({"lua_time": "9s"}, scripted),
                **{each: Change({each: 9}, scripted) for each in ("lua_max_timers", "lua_max_sockets", "lua_max_queue")},
                "lua_admin": Change({"lua_admin": True}, scripted)}

    def of_client(self, _at):
        return {"target": Change({"target": ":2"}), **self.of_scripts()}

    def of_server(self, at):
        master = {"mode": "master", "master_password": SECRET}
        return {**self.of_scripts(), "lua_body": Change({"lua_body": "2M"}, {"lua": self.lua}),
                "accept_proxy": Change({"accept_proxy": "10.0.0.1,unix"}), "http": Change({"http": self.folder}),
                "master_password": Change(master), "master_forward": Change({**master, "master_forward": True}),
                "master_password_file": Change({"mode": "master", "master_password_file": self.file("password", "open\n")}),
                "cache": Change({"cache": "db"}), "upstream": Change({"upstream": [":2", ":3"]}),
                "http_inject": Change({"http_inject": True}, {"http": self.folder}),
                "http_cache": Change({"http_cache": True}, {"http": self.folder}),
                "origins": Change({"origins": "https://a.example"}),
                "max_queue": Change({"max_queue": "2M"}), "log": Change({"log": at + ".log"})}

    def of_cache(self, at):
        os.mkdir(at)
        kept = {"dir": at}
        followed = {"replicate": "127.0.0.1:1"}
        hooked = {"hooks": self.hooks}
        made = {"accept_proxy": Change({"accept_proxy": "10.0.0.1"}), "eviction": Change({"eviction": "allkeys-lru"}, {"maxmemory": "64M"}), "dir": Change(kept),
                "dbfilename": Change({"dbfilename": "other.rdb"}, kept), "save": Change({"save": "60 1"}, kept),
                "appendonly": Change({"appendonly": "yes"}, kept),
                "appendfsync": Change({"appendfsync": "always"}, {**kept, "appendonly": "yes"}),
                "replicate": Change(followed), "replicate_password": Change({"replicate_password": SECRET}, followed),
                "replicate_user": Change({"replicate_user": "me"}, {**followed, "replicate_password": SECRET}),
                "aclfile": Change({"aclfile": self.empty}), "config": Change({"config": "slowlog-max-len 7"}),
                "maxmemory_clients": Change({"maxmemory_clients": "64M"}),
                "rename_command": Change({"rename_command": "FLUSHALL=wipe"}),
                "redis_version": Change({"redis_version": "7.2.9"}), "hooks": Change(hooked)}
        for name, value in (("threads", 3), ("deadline", "9s"), ("fallback", "nil"), ("stale_for", "9s"),
                            ("stale_memory", "1M"), ("negative_ttl", "9s"), ("max_misses", 7), ("queue", "1M"),
                            ("full", "refuse"), ("retries", 7), ("flush", "9s"), ("memory", "8M"), ("time", "9s")):
            made["hook_" + name] = Change({"hook_" + name: value}, hooked)
        if self.certificates:
            made.update(self.of_secure_port(at))
        return made

    def of_secure_port(self, at):
        ca = {"tls_ca_cert_file": self.certificates.ca}
        tls = {"tls_port": free_port(), "tls_cert_file": self.certificates.cert, "tls_key_file": self.certificates.key, **ca}
        made = {"tls_port": Change(tls),
                "tls_cert_file": Change({"tls_cert_file": self.other_cert, "tls_key_file": self.other_key}, tls),
                "tls_key_file": Change({"tls_key_file": shutil.copy(self.certificates.key, at + ".key")}, tls),
                "tls_ca_cert_file": Change({"tls_ca_cert_file": shutil.copy(self.certificates.ca, at + ".ca")}, tls),
                "tls_ca_cert_dir": Change({"tls_ca_cert_file": None, "tls_ca_cert_dir": self.folder}, tls),
                "tls_replication": Change({"tls_replication": "yes", **ca})}
        for name, value in (("auth_clients", "no"), ("protocols", "TLSv1.3"), ("prefer_server_ciphers", "no"),
                            ("ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384"), ("ciphersuites", "TLS_AES_256_GCM_SHA384")):
            made["tls_" + name] = Change({"tls_" + name: value}, tls)
        return made

    def of_http(self, at):
        log = {"access_log": at + ".log"}
        os.mkdir(at)
        return {**self.of_scripts(), "lua_body": Change({"lua_body": "2M"}, {"lua": self.lua}),
                "accept_proxy": Change({"accept_proxy": "::1"}), "root": Change({"root": at}),
                "index": Change({"index": "other.html"}), "spa": Change({"spa": "all.html"}),
                "cache_control": Change({"cache_control": "no-cache"}), "access_log": Change(log),
                "access_format": Change({"access_format": "json"}, log)}

    def of_proxy(self, at):
        http = {"protocol": "http"}
        checked = {"health_check": "http"}
        log = {"access_log": at + ".log"}
        followed = {"backend": "@x-master", "sentinel": ":1"}
        made = {"access_log": log, "access_format": {"access_format": "json", **log}, "host": {"host": "inner"},
                "error_page": {"error_page": [f"502,503={self.file('down.html', 'down')}"]},
                "https_redirect": {"https_redirect": True}, "allow_connect": {"allow_connect": True}, "redirect": {"redirect": ["/old=https://a.example"]},
                "request_field": {"request_field": ["X-A: b", "X-B:"]}, "response_field": {"response_field": ["X-A: b"]},
                "route": {"route": ["/api>/=:2", "a.example=:3"]}, "sticky": {"sticky": "at"}, "trust": {"trust": "::1,unix"},
                "via": {"via": "gate"}, "forwarded": {"forwarded": "none"}, "tries": {"tries": 2}, "eject_slow": {"eject_slow": 3}, "queue": {"queue": 7},
                "queue_timeout": {"queue_timeout": "9s"}, "max_backend_connections": {"max_backend_connections": 7},
                "keep_timeout": {"keep_timeout": "9s"}, "buffer_requests": {"buffer_requests": "100k"},
                "buffer_responses": {"buffer_responses": "100k"}, "max_header": {"max_header": "100k"}, "max_fields": {"max_fields": 101}, "max_body": {"max_body": "100k"}}
        for name in ("response", "read", "request", "client", "write", "total"):
            made[name + "_timeout"] = {name + "_timeout": "9s"}
        return {"accept_proxy": Change({"accept_proxy": "10.0.0.0/8"}), "backend": Change({"backend": ":2,:3"}), "backup": Change({"backup": ":2"}),
                "drain_backend": Change({"drain_backend": "tcp://127.0.0.1:1"}), "resolver": Change({"resolver": "10.0.0.1"}),
                "sentinel": Change({"sentinel": ":1,tls://s.example:26380"}, followed),
                "sentinel_password": Change({"sentinel_password": SECRET}, followed), "hash_by": Change({"hash_by": "path"}, {**http, "strategy": "hash"}),
                "health_path": Change({"health_path": "/live"}, checked), "health_status": Change({"health_status": "204"}, checked),
                "health_host": Change({"health_host": "a.example"}, checked), "health_interval": Change({"health_interval": "9s"}, checked),
                "health_timeout": Change({"health_timeout": "9s"}, checked), "health_fall": Change({"health_fall": 7}, checked),
                "health_rise": Change({"health_rise": 7}, checked), **self.of_scripts(http), **{name: Change(change, http) for name, change in made.items()}}

    def of_program(self, at):
        again, checked = {"restart": "always"}, {"health_check": "tcp:1"}
        made = {"command": Change({"command": shutil.which("sleep"), "arg": ["1001"]}), "arg": Change({"arg": ["1001"]}),
                "directory": Change({"directory": self.folder}), "env": Change({"env": ["A=b", "C=d e"]}),
                "env_file": Change({"env_file": self.empty}), "restart": Change({"restart": "on-failure:3"}),
                "stop_signal": Change({"stop_signal": "INT"}), "reload_signal": Change({"reload_signal": "HUP"}),
                "log": Change({"log": at + ".log"}), "health_check": Change({"health_check": "exec:true"}),
                "limit_memory": Change({"limit_memory": "100M"}), "limit_processes": Change({"limit_processes": 4000}),
                "listen": Change({"listen": [f"unix://{at}.sock"]}), "user": Change({"user": "0"})}
        for name in ("restart_delay", "restart_max_delay", "restart_reset"):
            made[name] = Change({name: "9s"}, again)
        for name, value in (("interval", "9s"), ("timeout", "9s"), ("start", "9s"), ("fall", 7)):
            made["health_" + name] = Change({"health_" + name: value}, checked)
        return made

    def of_external(self, _at):
        port, own = self.served_port(), os.getpid()
        with open(f"/proc/{own}/stat", encoding="ascii") as file:
            began = int(file.read().rsplit(")", 1)[1].split()[19])
        return {"kind": Change({"kind": "cache"}), "port": Change({"port": port}), "pid": Change({"pid": own}),
                "pid_start": Change({"pid": own, "pid_start": began})}

    def of_stream(self, at):
        openai = {"source": "openai"}
        return {"handoff": Change({"handoff": f"unix://{at}.other"}), "mode": Change({"mode": "0640"}),
                "allow_users": Change({"allow_users": str(os.getuid())}),
                "socket_owner": Change({"socket_owner": str(os.getuid())}), "socket_group": Change({"socket_group": str(os.getgid())}),
                **self.of_scripts({"source": "lua"}, self.script),
                "lua": Change({"source": "lua", "lua": self.script}),
                "exec": Change({"source": "exec", "exec": "true"}),
                "source_url": Change({"source_url": "http://127.0.0.1:1/v1"}, openai),
                "source_socket": Change({"source_socket": at + ".api"}, openai),
                "access_log": Change({"access_log": at + ".log"}),
                "key_file": Change({"key_file": self.file("key", "sk-1\n")}, openai),
                "key_field": Change({"key_field": "api-key"}, openai), "handoff_key": Change({"handoff_key": True}, openai),
                "source_backend": Change({"source_backend": ["b=http://127.0.0.1:1/v1", "c=http://127.0.0.1:2 model=large"]}, openai),
                "source_header": Change({"source_header": ["X-Title: a", "X-B: b"]}, openai),
                "source_ca": Change({"source_ca": self.empty}, openai),
                "model": Change({"model": "small"}, openai), "events": Change({"events": "chunks"}, openai),
                "replay_time": Change({"replay_time": "9s"}, {"replay_memory": "1M"})}


class TypeOptions(harness.EddyTest):
    def setUp(self):
        self.running = self.daemon()
        self.values = Values(self.folder())

    def change_of(self, kind, option, name):
        """For a runtime of that name: the options before the change, and the change."""
        at = os.path.join(self.values.folder, name)
        change = self.values.changes(kind, at).get(option["name"])
        if change is None:
            self.assertNotEqual(option["kind"], "text", f"give {option['name']} of {kind} a value, in Values")
            change = Change({option["name"]: usual_value(option)})
        before = {**self.values.needed(kind, at), **change.before}
        return {key: value for key, value in before.items() if value is not None}, change.change

    def create(self, kind, name, options):
        self.running.must("create", kind, name, *words_of(options), "-s")

    def assert_shown(self, expected):
        """The runtimes run, and show these options by their names."""
        shown = {each["name"]: each for each in self.running.json("show", "*")}
        for name, options in expected.items():
            with self.subTest(name):
                self.assertEqual(shown[name]["status"], "running")
                # A secret is not shown.
                wanted = {key: "***" if value == SECRET else value for key, value in options.items()}
                if wanted.get("source_header"):
                    wanted["source_header"] = [each.split(":")[0] + ": ***" for each in wanted["source_header"]]
                self.assertEqual({key: shown[name]["options"].get(key) for key in options}, wanted)

    def edit(self, name, change, live):
        said = self.running.must("edit", name, *words_of(change))
        self.assertIn("changed while running" if live else "changed and restarted", said)

    def test_each_is_shown_kept_and_edited(self):
        for each in self.running.request("GET", "/v1/types")[1]["types"]:
            with self.subTest(each["name"]):
                self.assert_each_is_kept(each["name"], each["options"])
            self.running.run("remove", "-f", "*")

    def assert_each_is_kept(self, kind, options):
        live = {option["name"] for option in options if option["live"]}
        expected, alone = {}, {}
        for option in options:
            name = option["name"]
            if self.values.is_left_out(name):
                continue
            with self.subTest(f"{kind} {name}"):
                before, change = self.change_of(kind, option, f"{kind}-{name}-created")
                given = {key: value for key, value in {**before, **change}.items() if value is not None}
                self.create(kind, f"{kind}-{name}-created", given)
                expected[f"{kind}-{name}-created"] = change
                before, change = self.change_of(kind, option, f"{kind}-{name}-edited")
                self.create(kind, f"{kind}-{name}-edited", before)
                self.edit(f"{kind}-{name}-edited", change, set(change) <= live)
                expected[f"{kind}-{name}-edited"] = change
                if list(change) == [name] and name not in before:
                    alone[f"{kind}-{name}-edited"] = name
        self.assert_shown(expected)
        self.assertEqual(self.running.stop(), 0)
        self.running.start()
        self.assert_shown(expected)
        for runtime, name in alone.items():
            with self.subTest(f"{runtime}, reset"):
                self.edit(runtime, {name: None}, name in live)
        self.assert_shown({runtime: {name: None} for runtime, name in alone.items()})

    def test_help_shows_each(self):
        for each in self.running.request("GET", "/v1/types")[1]["types"]:
            text = self.running.must("help", "create", each["name"])
            self.assertEqual({option["name"].replace("_", "-") for option in each["options"]},
                             flags_in(text.split(f"Flags of {each['name']}:")[1]))

    def test_help_of_listen_names_each_scheme(self):
        for kind in ("server", "cache", "http", "proxy"):
            with self.subTest(kind):
                text = " ".join(self.running.must("help", "create", kind).split())
                shown = re.search(r"--listen URI (.*?) --", text).group(1)
                for scheme in ("tcp", "unix", "shm", "handoff"):
                    self.assertIn(f"{scheme}://", shown)


if __name__ == "__main__":
    harness.main()
