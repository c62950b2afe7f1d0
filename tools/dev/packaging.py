"""Packages of Eddy in build/package: Debian's for this system, and an archive for other ones."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile

from dev import apt, building, java, packages
from dev.output import Failure, say, show_tail
from dev.processes import foreground, is_installed
from dev.steps import log_of, logged

FOLDER = "build/package"


PROGRAM = f"{FOLDER}/eddy_static"
# Libraries of the system that the program of the archive may use: glibc's, whose names (NSS) are loaded as it runs.
OF_SYSTEM = {"libc.so.6", "libm.so.6", "linux-vdso.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def package(*arguments):
    if arguments not in ((), ("--tar",)):
        raise Failure("package has one flag: --tar")
    apt.need(*packages.BUILD, *packages.PACKAGING)
    is_tar = bool(arguments)
    if not is_tar and not is_installed("dpkg-deb"):
        raise Failure("these are packages for Debian and Ubuntu, and dpkg-deb is not here; --tar makes an archive")
    if status := configure():
        return status
    return make_archive() if is_tar else make_debs()


def configure():
    options = ["-DEDDY_TESTS=OFF", "-DEDDY_CHECK_HEADERS=OFF", "-DEDDY_BENCH=OFF",
               "-DEDDY_PRECOMPILE=OFF", "-DCMAKE_INSTALL_PREFIX=/usr"]
    # Debian's own variables for the maker of a package.
    if email := os.environ.get("DEBEMAIL"):
        name = os.environ.get("DEBFULLNAME") or "The Eddy authors"
        options.append(f"-DEDDY_PACKAGE_CONTACT={name} <{email}>")
    say("Building the packages")
    building.check_place(FOLDER)
    os.makedirs(FOLDER, exist_ok=True)
    jar = java.make_jar(FOLDER)
    options.append(f"-DEDDY_JAR={jar or ''}")
    if jar is None:
        say("There is no JDK (default-jdk-headless): the Java module is left out")
    if logged("package-configure", ["cmake", "--preset", "release", "-B", FOLDER, *options]) != 0:
        building.show_failure("package-configure")
        return 1
    return 0


def make_debs():
    for old in glob.glob(f"{FOLDER}/*.deb"):
        os.remove(old)
    building.require(building.compile_targets("package"))
    if logged("package", ["cpack", "--config", f"{FOLDER}/CPackConfig.cmake", "-B", FOLDER]) != 0:
        show_tail(log_of("package"), 40, file=sys.stderr)
        return 1
    shutil.rmtree(f"{FOLDER}/_CPack_Packages", ignore_errors=True)
    made = sorted(glob.glob(f"{FOLDER}/*.deb")) or [f"{FOLDER}/*.deb"]
    foreground(["ls", "-sh1", *made])
    say(f"Install them with: sudo apt-get install ./{FOLDER}/*.deb")
    return 0


def make_archive():
    building.require(building.compile_targets("package", "eddy", "eddy_static"))
    path = pack(FOLDER, PROGRAM, FOLDER)
    foreground(["ls", "-sh1", path])
    say(f"Unpack it on the other machine, and run there: sudo ./{name_of()}/install.sh")
    return 0


def version():
    with open("CMakeLists.txt", encoding="utf-8") as file:
        return re.search(r"project\(eddy VERSION ([0-9.]+)", file.read())[1]


def name_of():
    return f"eddy-{version()}-linux-{os.uname().machine}"


def pack(build, program, to):
    """The archive of that build's pages and that program; returns its path."""
    check_libraries(program)
    root = os.path.abspath(f"{to}/{name_of()}")
    shutil.rmtree(root, ignore_errors=True)
    for component in ("program", "java"):
        subprocess.run(["cmake", "--install", build, "--prefix", root, "--component", component], check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["strip", "-o", f"{root}/bin/eddy", program], check=True)
    for script in ("install.sh", "uninstall.sh"):
        shutil.copy(f"packaging/{script}", root)
    shutil.copy("LICENSE", root)
    os.makedirs(f"{root}/share/eddy", exist_ok=True)
    shutil.copy("packaging/eddy.logrotate", f"{root}/share/eddy/logrotate")
    with open(f"{root}/NEEDS", "w", encoding="ascii") as file:
        file.write(f"Linux on {os.uname().machine} with glibc {least_glibc(program)} or newer\n")
    path = f"{to}/{name_of()}.tar.gz"

    def plain(entry):
        # As root's and without this machine's umask, so that the same files give the same archive.
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = "root"
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with tarfile.open(path, "w:gz") as archive:
        archive.add(root, arcname=name_of(), filter=plain)
    shutil.rmtree(root)
    return path


def check_libraries(program):
    """Fails if the program uses more of the system than glibc."""
    used = subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout
    others = set(re.findall(r"NEEDED.*\[(.*)\]", used)) - OF_SYSTEM
    if others:
        raise Failure(f"{program} still needs {', '.join(sorted(others))}")


def least_glibc(program):
    """The newest version of glibc that the program asks for."""
    symbols = subprocess.run(["readelf", "--version-info", program], check=True, capture_output=True, text=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", symbols)}
    return ".".join(map(str, max(versions)))
