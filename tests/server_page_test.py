#!/usr/bin/env python3
"""The commands of docs/server.md about modes and caches: each as it stands there, but for ports, prints what the page
says.
"""

import harness
from proxy_page_test import Page, commands


class Modes(Page):
    def test_every_command_prints_what_the_page_says(self):
        modes, cache = commands("server.md", "Modes"), commands("server.md", "Commands to a cache")
        fed = commands("server.md", "Servers that feed a server")
        self.assertGreater(len(modes), 8)
        self.assertGreater(len(cache), 6)
        self.assertGreater(len(fed), 3)
        self.run_each(modes + cache + fed)


if __name__ == "__main__":
    harness.main()
