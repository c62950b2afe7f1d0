#!/usr/bin/env python3
"""Test of the site of templates and files: gets its pages and files, and changes a template while it serves.

Usage: static_site_test.py PROGRAM
"""

import http.client
import os
import shutil
import subprocess
import tempfile

import programs

SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")


class StaticSite(programs.ServerTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.site = shutil.copytree(SITE, os.path.join(self.folder, "site"))
        self.port = programs.free_port()
        self.server = subprocess.Popen([self.program, str(self.port), self.site], env=dict(os.environ, SITE_RELOAD="1"),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.stop)
        self.client().close()

    def get(self, path):
        over = http.client.HTTPConnection("127.0.0.1", self.port, timeout=programs.DEADLINE_S)
        self.addCleanup(over.close)
        over.request("GET", path)
        got = over.getresponse()
        return got.status, got.getheader("Content-Type"), got.read().decode()

    def test_pages(self):
        status, kind, page = self.get("/")
        self.assertEqual((status, kind), (200, "text/html; charset=utf-8"))
        self.assertIn("<title>Menu</title>", page)
        self.assertIn("<ul>\n  <li>Soup: 6.5</li>\n  <li>Fish &amp; chips: 12 <b>new</b></li>\n</ul>", page)

    def test_what_a_client_sends_is_escaped(self):
        status, _, page = self.get("/hello/%3Cscript%3E")
        self.assertEqual(status, 200)
        self.assertIn("<p>Hello, &lt;script&gt;!</p>", page)

    def test_files(self):
        status, kind, text = self.get("/style.css")
        self.assertEqual((status, kind.split(";")[0]), (200, "text/css"))
        self.assertIn("sans-serif", text)
        self.assertEqual(self.get("/..%2Fpages%2Fhome.mustache")[0], 404)
        self.assertEqual(self.get("/none.css")[0], 404)

    def test_templates_are_read_again(self):
        with open(os.path.join(self.site, "pages", "hello.mustache"), "w") as page:
            page.write("Bye, {{name}}")
        self.assertEqual(self.get("/hello/you")[2], "Bye, you")
        with open(os.path.join(self.site, "pages", "hello.mustache"), "w") as page:
            page.write("{{#name}}")
        status, _, text = self.get("/hello/you")
        self.assertEqual(status, 500)
        self.assertIn("hello.mustache:1: ", text)

    def test_says_what_is_wrong_with_its_folder(self):
        done = subprocess.run([self.program, str(programs.free_port()), "/nowhere"], capture_output=True,
                              timeout=programs.DEADLINE_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"/nowhere/pages: ", done.stderr)


if __name__ == "__main__":
    programs.main(StaticSite)
