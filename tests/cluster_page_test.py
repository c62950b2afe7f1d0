#!/usr/bin/env python3
"""The tutorial of docs/cluster.md: each command as it stands there, but for ports, prints what the page says."""

import harness
from proxy_page_test import Page, commands


class Tutorial(Page):
    tools = ("bash", "curl")

    def test_every_command_prints_what_the_page_says(self):
        all_of_them = commands("cluster.md", "Three daemons on one machine")
        self.assertGreater(len(all_of_them), 20)
        self.run_each(all_of_them)


class Etcd(Page):
    tools = ("bash", "curl", "etcd")

    def test_every_command_prints_what_the_page_says(self):
        all_of_them = commands("cluster.md", "The same by etcd")
        self.assertGreater(len(all_of_them), 10)
        self.run_each(all_of_them)


if __name__ == "__main__":
    harness.main()
