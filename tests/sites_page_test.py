#!/usr/bin/env python3
"""The tutorial of docs/sites.md: each command as it stands there, but for ports, prints what the page says."""

import harness
from proxy_page_test import Page, commands


class Tutorial(Page):
    tools = ("bash", "curl", "gzip", "openssl")

    def test_every_command_prints_what_the_page_says(self):
        if "tls" not in harness.parts():
            self.skipTest("this build has no TLS")
        all_of_them = commands("sites.md", "A site in ten minutes")
        self.assertGreater(len(all_of_them), 18)
        self.run_each(all_of_them)


if __name__ == "__main__":
    harness.main()
