"""The Java module's jar, compiled without Maven: for the package, which needs no tests and no downloads."""

import glob
import os
import shutil
import subprocess

from dev import packages
from dev.output import Failure

FIRST_FOREIGN = 22  # whose java.lang.foreign takes the place of the JNI library


def homes():
    """Folders of JDKs that can compile the module, the newest first."""
    found = {os.path.realpath(home) for home in glob.glob("/usr/lib/jvm/*")}
    usable = [home for home in found if packages.java_version(home) >= packages.LEAST_JAVA
              and os.path.exists(f"{home}/include/jni.h")]
    return sorted(usable, key=packages.java_version, reverse=True)


def make_jar(folder):
    """Compiles the jar into the folder; returns its path, or None without a JDK."""
    home = next(iter(homes()), None)
    if home is None or not shutil.which("cc") and not shutil.which(f"clang-{packages.CLANG}"):
        return None
    classes = os.path.abspath(f"{folder}/java")
    shutil.rmtree(classes, ignore_errors=True)
    os.makedirs(f"{classes}/io/eddy/shm/native")
    sources = sorted([*glob.glob("java/src/main/java/*.java"), *glob.glob("java/src/main/java/io/eddy/shm/*.java")])
    run(f"{home}/bin/javac", "-proc:none", "--release", str(packages.LEAST_JAVA), "-d", classes, *sources)
    compiler = "cc" if shutil.which("cc") else f"clang-{packages.CLANG}"
    arch = {"x86_64": "amd64"}.get(os.uname().machine, os.uname().machine)  # as Java's os.arch
    run(compiler, "-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-s", f"-I{home}/include",
        f"-I{home}/include/linux", "-o", f"{classes}/io/eddy/shm/native/libeddy_shm-{arch}.so",
        "java/src/main/native/eddy_shm.c")
    if packages.java_version(home) >= FIRST_FOREIGN:
        run(f"{home}/bin/javac", "-proc:none", "--release", str(FIRST_FOREIGN), "-cp", classes,
            "-d", f"{classes}/META-INF/versions/{FIRST_FOREIGN}", *sorted(glob.glob("java/src/main/java22/io/eddy/shm/*.java")))
    manifest = f"{folder}/manifest"
    with open(manifest, "w", encoding="ascii") as file:
        file.write("Multi-Release: true\nEnable-Native-Access: ALL-UNNAMED\n"
                   "Main-Class: io.eddy.shm.Bench\n")
    jar = os.path.abspath(f"{folder}/eddy-shm.jar")
    run(f"{home}/bin/jar", "--create", "--file", jar, "--manifest", manifest, "--date=2026-01-01T00:00:00Z",
        "-C", classes, ".")
    return jar


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"the jar could not be made: {command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
