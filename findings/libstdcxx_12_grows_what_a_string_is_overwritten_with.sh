#!/usr/bin/env bash
# std::string::resize_and_overwrite() of libstdc++ 12.2.0 (Debian 12) calls its operation with a larger size than was asked for.
#
# A good guess: the operation gets the size of the call, as [string.capacity] of C++23 has it, so what it writes may be
#   computed from that argument, and returned to say that all of it is written.
# Behaviour: where the string has to grow, the argument is its new capacity, which is rounded up to twice the old one. An
#   operation that returns its argument makes a longer string than was asked for, and what it did not write is indeterminate.
#   Where the string has room the argument is right, so short tests do not show it.
# Output seen (2026-12-01, compiled by clang 19):
#   asked for 16, with room for 64: 16
#   asked for 16, with room for 15: 30
#
# Fails if that changes. Needs Debian 12's apt with the package lists, dpkg and a clang++ with C++23 (CXX, else clang++-19).

set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -q 'libstdc++-12-dev=12.2.0-14+deb12u1' >/dev/null 2>&1
dpkg -x ./*.deb root
cat >asked.cpp <<'END'
#include <cstddef>
#include <cstdio>
#include <string>

static std::size_t asked(std::size_t room) {
    std::string text;
    text.reserve(room);
    std::size_t argument = 0;
    text.resize_and_overwrite(16, [&](char* to, std::size_t size) {
        argument = size;
        for (std::size_t i = 0; i < 16; ++i) to[i] = 'x';
        return std::size_t{16};
    });
    return argument;
}

int main() {
    std::printf("asked for 16, with room for 64: %zu\n", asked(64));
    std::printf("asked for 16, with room for 15: %zu\n", asked(15));
}
END
headers=root/usr/include
"${CXX:-clang++-19}" -std=c++23 -nostdinc++ -isystem "$headers/c++/12" -isystem "$headers/x86_64-linux-gnu/c++/12" \
    asked.cpp -o asked
./asked | tee output
grep -qxF 'asked for 16, with room for 64: 16' output
grep -qxF 'asked for 16, with room for 15: 30' output
