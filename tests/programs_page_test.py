#!/usr/bin/env python3
"""The commands of docs/programs.md: each as it stands there, but for ports, prints what the page says."""

import harness
from proxy_page_test import Page, commands


class Programs(Page):
    tools = ("bash", "curl", "python3")

    def test_every_command_prints_what_the_page_says(self):
        everything = [command for part in ("In five minutes", "Sockets that stay open", "Health", "Processes of others")
                      for command in commands("programs.md", part)]
        self.assertGreater(len(everything), 20)
        self.run_each(everything)


if __name__ == "__main__":
    harness.main()
