#!/usr/bin/env python3
"""The container of the Dockerfile, without a container runtime: the same files in a folder, the daemon there as the same
user and with a filter that refuses io_uring, as those of container runtimes do. Builds the image, too, where buildah is."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1])
MOST_BYTES = 60_000_000
IO_URING = ("io_uring_setup", "io_uring_enter", "io_uring_register")

if os.geteuid() != 0:
    print("skipped: chroot and mount need root")
    sys.exit(77)
if os.environ.get("EDDY_CONTAINER_NAMESPACE") is None:
    os.execvpe("unshare", ["unshare", "--mount", sys.executable, "-B", __file__, BUILD],
               dict(os.environ, EDDY_CONTAINER_NAMESPACE="1"))


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, **more)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def refuse_io_uring():
    """For this process and all that it starts."""
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(0x7FFF0000))  # SCMP_ACT_ALLOW
    for name in IO_URING:
        library.seccomp_rule_add_array(context, 0x00050001, library.seccomp_syscall_resolve_name(name.encode()), 0, None)
    if library.seccomp_load(context) != 0:
        os._exit(99)


def check_dockerfile():
    with open(os.path.join(ROOT, "Dockerfile"), encoding="utf-8") as file:
        text = re.sub(r"\\\n", " ", file.read())
    assert len(re.findall(r"(?m)^FROM ", text)) == 2, "two stages"
    user = re.search(r"(?m)^USER (\d+):(\d+)$", text)
    assert user and user[1] != "0", "a user other than root, by number"
    for sources in re.findall(r"(?m)^COPY (?!--)(.*) \S+$", text):
        for source in sources.split():
            assert os.path.exists(os.path.join(ROOT, source)), f"COPY {source}: it is not there"
    for made in re.findall(r"(?m)^COPY --from=build .*?(/out/\w+) /$", text):
        assert made in ("/out/root", "/out/own"), made
    assert "packaging/container/root.sh /out " in text
    return int(user[1])


def await_true(condition, what):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def main(work):
    user = check_dockerfile()
    assert os.path.exists(f"{BUILD}/eddy_static"), f"build it: cmake --build {BUILD} --target eddy_static"
    run("strip", "-o", f"{work}/eddy", f"{BUILD}/eddy_static")
    os.chmod(f"{work}/eddy", 0o755)
    run(f"{ROOT}/packaging/container/root.sh", f"{work}/out", f"{work}/eddy")
    size = sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(f"{work}/out") for name in names)
    print(f"{size} bytes")
    assert size < MOST_BYTES, size
    build_image(work)

    root = f"{work}/out/root"
    shutil.copytree(f"{work}/out/own", root, dirs_exist_ok=True)
    for folder in ("var/lib/eddy", "run/eddy", "tmp"):
        os.chown(f"{root}/{folder}", user, user)
    for folder in ("proc", "dev"):
        os.mkdir(f"{root}/{folder}")
    run("mount", "-t", "proc", "proc", f"{root}/proc")
    run("mount", "--rbind", "/dev", f"{root}/dev")
    environment = {"PATH": "/usr/bin", "EDDY_SOCKET": "/run/eddy/eddy.sock", "EDDY_STATE_DIR": "/var/lib/eddy",
                   "HOME": "/var/lib/eddy"}
    chroot = [shutil.which("chroot"), f"--userspec={user}:{user}", root, "/usr/bin/eddy"]
    with open(f"{work}/log", "wb") as log:
        daemon = subprocess.Popen([*chroot, "daemon"], env=environment, stdout=log, stderr=log, preexec_fn=refuse_io_uring)
    try:
        def inside(*words):
            return run(*chroot, *words, env=environment)

        def read_log():
            with open(f"{work}/log", encoding="utf-8") as file:
                return file.read()
        await_true(lambda: "ready" in read_log() or daemon.poll() is not None, "the daemon is ready")
        assert daemon.poll() is None, read_log()
        sys.path.insert(0, os.path.join(ROOT, "tests"))
        import harness
        inside("create", "cache", "db", "-p", str(harness.free_port()), "--dir", "/var/lib/eddy", "-s")
        assert inside("db", "db", "SET", "a", "b") == "OK\n"
        assert inside("db", "db", "EVAL", "return redis.call('GET', 'a')", "0") in ("b\n", '"b"\n')
        inside("create", "server", "chat", "-p", str(harness.free_port()), "-s")
        assert len(inside("ls", "-q").split()) == 2
        assert "io-backend epoll" in inside("version")
        said = [line for line in read_log().splitlines() if "io_uring cannot be used here" in line]
        assert len(said) == 1, read_log()
        daemon.terminate()
        assert daemon.wait(60) == 0, read_log()
    finally:
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()
        run("umount", "--recursive", "--lazy", f"{root}/dev", f"{root}/proc")


def build_image(work):
    """The second stage of the Dockerfile, with the files at hand in place of the first."""
    if not shutil.which("buildah"):
        print("the image is not built: there is no buildah")
        return
    stores = ["buildah", "--root", f"{work}/images", "--runroot", f"{work}/run", "--storage-driver", "vfs"]
    built = subprocess.run([*stores, "build", "--isolation", "chroot", "--format", "docker", "--build-context",
                            f"build={work}", "-t", "eddy-test", ROOT], capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    shown = run(*stores, "inspect", "--type", "image", "--format", "{{.Docker.Config}}", "eddy-test")
    assert "65532:65532" in shown and "/usr/bin/eddy" in shown, shown
    print("the image is built by buildah")


def seccomp_is_here():
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return False
    return True


if not seccomp_is_here():
    print("skipped: there is no libseccomp.so.2 (apt install libseccomp2)")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="eddy-container-") as folder:
    os.chmod(folder, 0o755)
    main(folder)
print("1 passed, 0 failed")
