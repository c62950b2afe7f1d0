"""Tests of apt.py and packages.py, with stand-ins for dpkg and apt."""

import os
from unittest import mock

from dev import apt, packages
from dev.output import Failure
from dev.testing_folder import FolderTest

KNOWS_THREE = 'case "$4" in a | b | c) printf "install ok installed" ;; *) exit 1 ;; esac'


class Need(FolderTest):
    def setUp(self):
        super().setUp()
        self.stand_in("dpkg-query", KNOWS_THREE)
        self.stand_in("apt-cache", "exit 1")
        self.stand_in("apt-get")
        self.stand_in("sudo", 'exec "$@"')
        for name in ("POLICY", "SYSTEMD", "POSTGRESQL"):
            patch = mock.patch.object(apt, name, f"{self.folder}/{name.lower()}")
            patch.start()
            self.addCleanup(patch.stop)

    def apt_calls(self):
        return [call for call in self.calls() if not call.startswith(("dpkg-query", "apt-cache"))]

    def test_installs_nothing_where_all_is_there(self):
        self.assertEqual(self.said(apt.need, "a", "b")[1], "")
        self.assertEqual(self.apt_calls(), [])

    def test_installs_each_missing_package_once(self):
        self.assertEqual(self.said(apt.need, "x", "a", "y", "x")[1], "Installing x y\n")
        calls = [call for call in self.apt_calls() if call.startswith("apt-get")]
        self.assertEqual(calls, ["apt-get update", "apt-get install -y --no-install-recommends "
                                 "-o DPkg::Lock::Timeout=300 x y"])

    def test_packages_start_no_server_meanwhile(self):
        self.stand_in("apt-get", f"[ $1 = update ] || cp '{self.folder}/policy' kept")
        self.said(apt.need, "x")
        with open("kept", "rb") as file:
            self.assertEqual(file.read(), apt.POLICY_TEXT)
        self.assertFalse(os.path.exists("policy"))

    def test_a_policy_of_the_machine_stays(self):
        self.write("policy", "mine")
        self.said(apt.need, "x")
        self.assertEqual(self.read("policy"), "mine")

    def test_the_policy_is_removed_after_a_failure(self):
        self.stand_in("apt-get", "[ $1 = update ]")
        self.assertRaises(Failure, self.said, apt.need, "x")
        self.assertFalse(os.path.exists("policy"))

    def test_new_servers_do_not_start_at_the_next_boot(self):
        os.mkdir("systemd")
        self.stand_in("systemctl")
        self.stand_in("apt-get", f"mkdir -p '{self.folder}/postgresql'")
        self.said(apt.need, "x")
        self.assertIn("systemctl disable --now postgresql", " ".join(self.apt_calls()))

    def test_a_failure_shows_the_end_of_the_log(self):
        self.stand_in("apt-get", "seq 1 30; exit 100")
        with self.assertRaisesRegex(Failure, "apt-get failed; the whole log is build/apt.log"):
            self.said(apt.need, "x")

    def test_a_user_without_sudo_reads_the_command(self):
        os.remove("bin/sudo")
        os.environ["PATH"] = f"{self.folder}/bin"
        reason = "as root run: apt-get install -y --no-install-recommends x"
        with mock.patch("os.geteuid", return_value=1000):
            with self.assertRaisesRegex(Failure, reason):
                self.said(apt.need, "x")

    def test_a_user_installs_with_sudo(self):
        with mock.patch("os.geteuid", return_value=1000):
            self.said(apt.need, "x")
        self.assertEqual(self.apt_calls()[0],
                         "sudo env DEBIAN_FRONTEND=noninteractive apt-get update")

    def test_another_system_reads_the_names(self):
        os.environ["PATH"] = "/nonexistent"
        self.assertIn("install the counterparts of these yourself: x y",
                      self.said(apt.need, "x", "y")[1])


class Packages(FolderTest):
    def test_an_optional_package_is_needed_where_apt_has_it(self):
        self.stand_in("apt-cache", '[ "$2" = chromium ]')
        self.assertIn("chromium", packages.test())
        self.assertNotIn("goaccess", packages.test())

    def test_the_newest_known_compiler(self):
        self.stand_in("apt-cache", "exit 1")
        self.assertIsNone(packages.compiler())
        self.stand_in("apt-cache", r"""[ "$2" = '^g\+\+-13$' ]""")
        self.assertEqual(packages.compiler(), "g++-13")

    def test_java_versions(self):
        self.write("jdk/bin/javac")
        self.write("jdk/release", 'IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n')
        self.assertEqual(packages.java_version("jdk"), 0)
        os.chmod("jdk/bin/javac", 0o755)
        self.assertEqual(packages.java_version("jdk"), 21)
        self.assertEqual(packages.java_version(""), 0)

    def test_java_is_needed_where_it_is_not_there(self):
        self.write("jdk/bin/javac")
        os.chmod("jdk/bin/javac", 0o755)
        self.write("jdk/release", 'JAVA_VERSION="17"\n')
        self.stand_in("mvn")
        with mock.patch("glob.glob", return_value=[]):
            self.assertEqual(packages.java(), ["default-jdk-headless"])
            os.environ["JAVA_HOME"] = f"{self.folder}/jdk"
            self.assertEqual(packages.java(), [])
