#!/usr/bin/env python3
"""Each option of each runtime type through the whole program: it reaches `eddy show` by `eddy create` and by `eddy edit`,
and survives a restart of the daemon. The daemon describes the options; src/runtime tests their effects.
"""

import contextlib
import os
import shutil
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
        words += ["--unset", flag[2:]] if value is None else [flag] if value is True else [flag, str(value)]
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
        self.certificates = None
        with contextlib.suppress(unittest.SkipTest):  # there is no openssl
            if "tls" in harness.parts():
                self.certificates = harness.Certificates(folder)
                self.other_cert, self.other_key = self.certificates.named("other.example")
        self.empty = self.file("empty", "")
        self.hooks = self.file("hooks.lua", "function on_miss(key) return nil end\n")
        self.script = self.file("answer.lua", "function handle(request) send('x') end\n")

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def needed(self, kind, at):
        """Options without which a runtime of the type does not start. `at` is the start of paths of its own."""
        return {"client": {"target": ":1"}, "http": {"port": 0, "root": self.folder}, "proxy": {"port": 0, "backend": ":1"},
                "stream": {"handoff": f"unix://{at}.handoff"}}.get(kind, {"port": 0})

    def is_left_out(self, name):
        """True for an option that cannot be given here."""
        of_tls = name.startswith("tls") or name in ("cert", "key", "ca", "client_auth")
        of_scripts = name.startswith("hook") or name == "script"
        return (of_tls and not self.certificates) or (of_scripts and "scripts" not in harness.parts())

    def changes(self, kind, at):
        made = {"client": {"target": Change({"target": ":2"})}}.get(kind) or getattr(self, "of_" + kind)(at)
        return made if kind in ("client", "stream") else {**self.of_listeners(at), **made}

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

    def of_server(self, at):
        return {"http": Change({"http": self.folder}), "origins": Change({"origins": "https://a.example"}),
                "max_queue": Change({"max_queue": "2M"}), "log": Change({"log": at + ".log"})}

    def of_cache(self, at):
        os.mkdir(at)
        kept = {"dir": at}
        followed = {"replicate": "127.0.0.1:1"}
        hooked = {"hooks": self.hooks}
        made = {"eviction": Change({"eviction": "allkeys-lru"}, {"maxmemory": "64M"}), "dir": Change(kept),
                "dbfilename": Change({"dbfilename": "other.rdb"}, kept), "save": Change({"save": "60 1"}, kept),
                "appendonly": Change({"appendonly": "yes"}, kept),
                "appendfsync": Change({"appendfsync": "always"}, {**kept, "appendonly": "yes"}),
                "replicate": Change(followed), "replicate_password": Change({"replicate_password": SECRET}, followed),
                "replicate_user": Change({"replicate_user": "me"}, {**followed, "replicate_password": SECRET}),
                "aclfile": Change({"aclfile": self.empty}), "config": Change({"config": "slowlog-max-len 7"}),
                "maxmemory_clients": Change({"maxmemory_clients": "64M"}),
                "rename_command": Change({"rename_command": "FLUSHALL=wipe"}), "hooks": Change(hooked)}
        for name, value in (("threads", 3), ("deadline", "9s"), ("fallback", "nil"), ("stale_for", "9s"),
                            ("stale_memory", "1M"), ("negative_ttl", "9s"), ("max_misses", 7), ("queue", "1M"),
                            ("full", "refuse"), ("retries", 7), ("flush", "9s")):
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
        return {"root": Change({"root": at}), "index": Change({"index": "other.html"}), "spa": Change({"spa": "all.html"}),
                "cache_control": Change({"cache_control": "no-cache"}), "access_log": Change(log),
                "access_format": Change({"access_format": "json"}, log)}

    def of_proxy(self, _):
        return {"backend": Change({"backend": ":2,:3"})}

    def of_stream(self, at):
        openai = {"source": "openai"}
        return {"handoff": Change({"handoff": f"unix://{at}.other"}), "mode": Change({"mode": "0640"}),
                "allow_users": Change({"allow_users": str(os.getuid())}),
                "script": Change({"source": "lua", "script": self.script}),
                "exec": Change({"source": "exec", "exec": "true"}),
                "source_url": Change({"source_url": "http://127.0.0.1:1/v1"}, openai),
                "source_socket": Change({"source_socket": at + ".api"}, openai),
                "key_file": Change({"key_file": self.file("key", "sk-1\n")}, openai),
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


if __name__ == "__main__":
    harness.main()
