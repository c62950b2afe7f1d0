#!/usr/bin/env python3
"""The tutorial of docs/cache-failover.md: each command as it stands there, but for ports, prints what the page says."""

import harness
from proxy_page_test import Page, commands


class CacheFailover(Page):
    tools = ("bash", "redis-server", "redis-cli")

    def test_every_command_prints_what_the_page_says(self):
        all_of_them = commands("cache-failover.md", "Three caches, three Sentinels, one proxy")
        self.assertGreater(len(all_of_them), 25)
        self.run_each(all_of_them)


if __name__ == "__main__":
    harness.main()
