"""Tests of java.py with the JDKs that are here."""

import os
import subprocess
import tempfile
import unittest
import zipfile

from dev import java

# Two ends in one process say a word to each other.
PROGRAM = """
import io.eddy.shm.*;
public class Pair {
    public static void main(String[] arguments) throws Exception {
        try (var server = new ShmServerSocket(arguments[0]); var client = new ShmSocket(arguments[0]); var peer = server.accept()) {
            client.getOutputStream().write("hello".getBytes());
            client.shutdownOutput();
            System.out.println(new String(peer.getInputStream().readAllBytes()));
        }
    }
}
"""


@unittest.skipUnless(java.homes(), "no JDK is here")
class Jar(unittest.TestCase):
    def test_it_works_with_each_jdk(self):
        with tempfile.TemporaryDirectory() as folder:
            jar = java.make_jar(folder)
            with zipfile.ZipFile(jar) as content:
                names = content.namelist()
                self.assertIn("Multi-Release: true", content.read("META-INF/MANIFEST.MF").decode())
            self.assertIn("io/eddy/shm/ShmSocket.class", names)
            self.assertTrue(any(name.startswith("io/eddy/shm/native/libeddy_shm-") for name in names), names)
            self.assertFalse(any("example" in name or "Test" in name for name in names), names)
            source = os.path.join(folder, "Pair.java")
            with open(source, "w", encoding="ascii") as file:
                file.write(PROGRAM)
            for home in java.homes():
                done = subprocess.run([f"{home}/bin/java", "-cp", jar, source, os.path.join(folder, "s")], capture_output=True,
                                      text=True, check=False, timeout=120)
                self.assertEqual(done.stdout, "hello\n", (home, done.stderr))

    def test_the_same_sources_give_the_same_jar(self):
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            jars = []
            for folder in (first, second):
                with open(java.make_jar(folder), "rb") as file:
                    jars.append(file.read())
            self.assertEqual(jars[0], jars[1])


if __name__ == "__main__":
    unittest.main()
