#!/usr/bin/env bash
# Test of Eddy on a machine with nothing on it: makes a minimal system with debootstrap, copies this checkout in, runs
# `./eddy-dev run` there and speaks to its demo.
#
# Usage: tools/fresh_machine.sh [--test|--quick|--bench=NAME] [--keep] [--package|--packages|--service=DEBS]
#                               [bookworm|trixie|noble]
#   --test      then run `./eddy-dev test` as well
#   --quick     then run `./eddy-dev test --quick`
#   --bench=NAME  instead run that benchmark, with the libraries of that system, and print its table
#   --package   instead make Eddy's own packages, remove the checkout and what it needed, install
#               the packages, and build a user's project and the examples with the system's g++
#               (14 on trixie, 13 on noble; that of bookworm is too old); then boot a second system with
#               systemd, and try the service there (tools/booted_machine.sh), if systemd-nspawn is here
#   --service=DEBS  only that, with the packages of the folder DEBS, which are for that release
#   --packages  install the packages of build and test only, to see that their names resolve
#   --keep      leave the systems behind to look around in
# The systems are Debian 12 and 13 and Ubuntu 24.04, from the mirror of this system's apt, or from those that
# EDDY_DEBIAN_MIRROR and EDDY_UBUNTU_MIRROR name.
# Needs root and the package debootstrap.

set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

# Run inside the new system: the first command of the README, tried as its text proposes, by a
# shell that has no redis-cli and no nc yet.
try_demo='
set -eu
coproc demo { exec ./eddy-dev run 2>&1; }
exec 4<&"${demo[0]}"
while IFS= read -r -u 4 line; do
    printf "%s\n" "$line"
    case $line in
        *"redis-cli -p "*" get "*) cache=${line#*-p }; cache=${cache%% *} ;;
        *"nc 127.0.0.1 "*) server=${line#*nc 127.0.0.1 }; server=${server%% *} ;;
        *"Ctrl-C stops it."*) break ;;
    esac
done
[[ -v cache && -v server ]] || exit 1
exec 5<>"/dev/tcp/127.0.0.1/$cache" 6<>"/dev/tcp/127.0.0.1/$server" 7<>"/dev/tcp/127.0.0.1/$server"
printf "SET greeting hello\r\nGET greeting\r\n" >&5
for expected in +OK "\$5" hello; do
    read -r -t 5 answer <&5
    [[ ${answer%$(printf "\r")} == "$expected" ]] || { echo "The cache said $answer, not $expected"; exit 1; }
done
# A line reaches those whose connection the server has taken by then.
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    echo "from one" >&6
    read -r -t 1 answer <&7 && break
done
[[ $answer == "from one" ]] || { echo "The server sent: $answer"; exit 1; }
echo "from two" >&7
read -r -t 5 answer <&6
[[ $answer == "from two" ]] || { echo "The server sent: $answer"; exit 1; }
# Not INT, which a command in the background ignores.
kill -TERM "$demo_PID"
grep -F "The daemon has stopped." <&4
echo "The demo works."
'

# The Debian packages, as their user has them: another compiler than ours, no checkout, and nothing
# that was installed to build them.
try_package='
set -eu
export DEBIAN_FRONTEND=noninteractive
dpkg-query -W -f "\${Package}\n" | sort >/tmp/before
./eddy-dev package
mkdir /tmp/user
cp build/package/*.deb tests/install/* /tmp/user
dpkg-query -W -f "\${Package}\n" | sort | comm -13 /tmp/before - | xargs apt-get purge -y >/dev/null
cd /tmp/user
mv /home/eddy /home/was-eddy

apt-get install -y --no-install-recommends ./eddy_*.deb >/dev/null
eddy version
eddy daemon 2>/tmp/daemon.log &
until eddy ls >/dev/null 2>&1; do kill -0 $!; sleep 0.1; done
eddy create cache db -p 16379 -s
exec 5<>/dev/tcp/127.0.0.1/16379
printf "PING\r\n" >&5
read -r -t 5 answer <&5
[[ $answer == "+PONG"* ]]
kill -TERM $!
wait $!
[[ -e /usr/share/man/man1/eddy-create.1.gz && -e /usr/share/bash-completion/completions/eddy ]]
[[ -e /usr/share/man/man1/eddy.1.gz && -e /usr/share/doc/eddy/copyright ]]
[[ -e /usr/share/doc/eddy/docs/cache.md && -e /usr/share/doc/eddy/docs/control-api.openapi.json ]]

# Without systemd: the user is there, and nothing was started.
[[ $(getent passwd eddy) == *:/var/lib/eddy:* ]]
apt-get purge -y eddy >/dev/null
[[ ! -e /var/lib/eddy && ! -e /etc/default/eddy ]]

apt-get install -y --no-install-recommends ./libeddy-dev_*.deb g++ >/dev/null
g++ --version | head -n 1
flags=$(pkg-config --cflags --libs eddy)
echo "pkg-config: $flags"
g++ -O2 -Wall -Wextra -Wconversion -Wshadow -Werror main.cpp -o by-pkg-config $flags
./by-pkg-config
apt-get install -y --no-install-recommends cmake ninja-build openssl >/dev/null
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release
cmake --build build
build/user
for example in /usr/share/doc/libeddy-dev/examples/*.cpp; do
    name=$(basename "$example" .cpp)
    g++ -O1 -Wall -Wextra -Werror "$example" -o "$name" $flags
    case $name in
        tour* | lifetimes) echo "$name"; "./$name" >/tmp/output || { cat /tmp/output; exit 1; } ;;
    esac
done
ls -l ./*.deb
dpkg-query -W -f "\${Package} \${Version} \${Installed-Size} KiB; depends on \${Depends}\n" libeddy-dev
echo "The packages work."
'

release=bookworm keep=0 script=() debs="" boots=0
command='bash -c "$TRY_DEMO"'
for argument in "$@"; do
    case $argument in
        --test) command+=' && ./eddy-dev test' ;;
        --quick) command+=' && ./eddy-dev test --quick' ;;
        --bench=*) command="./eddy-dev bench ${argument#--bench=}" ;;
        --package) command='bash -c "$TRY_PACKAGE"' boots=1 ;;
        --service=*) debs=$(readlink -f "${argument#--service=}") boots=1 ;;
        --packages) command='./eddy-dev install' ;;
        --keep) keep=1 ;;
        bookworm | trixie | noble) release=$argument ;;
        *) sed -n 's/^# \{0,1\}//; 2,20p' "$0" >&2; exit 2 ;;
    esac
done
options=() distribution=debian
if [[ $release == noble ]]; then
    distribution=ubuntu
    # As an installed Ubuntu has them.
    options=(--components=main,universe)
    # Debian has no package of Ubuntu's keys. What is tried here is a name of a package, not trust.
    [[ -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ]] || options+=(--no-check-gpg)
    # Nor does Debian's debootstrap know each Ubuntu by its name; they are all made alike.
    script=(/usr/share/debootstrap/scripts/gutsy)
fi
mirror=$(tools/archive_mirror.sh "$distribution")
[[ $EUID -eq 0 ]] || { echo "fresh_machine.sh: debootstrap and mount need root" >&2; exit 1; }

# A mount namespace of its own: whatever happens, no mount is left behind on this machine, and
# removing the system cannot reach through one into /dev.
if [[ -z ${EDDY_FRESH_NAMESPACE:-} ]]; then
    EDDY_FRESH_NAMESPACE=1 exec unshare --mount --pid --fork --kill-child --mount-proc "$PWD/tools/fresh_machine.sh" "$@"
fi

root=$(mktemp -d "/tmp/eddy-$release.XXXXXX")
second=""
chmod 755 "$root"  # as / is: other users go through it
finish() {
    # Tests of network namespaces leave /run/netns mounted.
    umount -R -l "$root/proc" "$root/dev" "$root/run/netns" 2>/dev/null || true
    if [[ $keep -eq 1 ]]; then
        echo "The systems are kept in $root $second"
    else
        rm -rf --one-file-system "$root" ${second:+"$second"}
    fi
}
trap finish EXIT

make_system() {  # FOLDER, and more options of debootstrap
    local folder=$1
    shift
    echo "Making a minimal $release in $folder"
    debootstrap --variant=minbase "${options[@]}" "$@" "$release" "$folder" "$mirror" "${script[@]}" \
        >"$folder.log" 2>&1 ||
        { tail -n 20 "$folder.log" >&2; exit 1; }
    rm -f "$folder.log"
    if [[ $release == noble ]]; then
        # As an installed Ubuntu has it: the compiler came with an update.
        echo "deb $mirror noble-updates main universe" >>"$folder/etc/apt/sources.list"
    fi
}

# The packages of a folder as a service, in a system that boots.
try_service() {
    if ! command -v systemd-nspawn >/dev/null; then
        echo "The service is not tried: there is no systemd-nspawn (apt install systemd-container)"
        return
    fi
    second=$(mktemp -d "/tmp/eddy-$release-booted.XXXXXX")
    chmod 755 "$second"
    make_system "$second" --include=systemd,systemd-sysv,dbus
    tools/booted_machine.sh "$second" "$1"
}
if [[ -n $debs ]]; then
    try_service "$debs"
    exit
fi

make_system "$root"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"

# What git would take, committed or not.
# Not in /eddy: include/eddy/io.hpp would be taken for a path that leads there.
mkdir "$root/home/eddy"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    # A file that is deleted but not yet committed as such is still listed.
    if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi
done | tar --null --files-from=- -cf - | tar -xf - -C "$root/home/eddy"

chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    EDDY_DEBIAN_MIRROR="${EDDY_DEBIAN_MIRROR:-}" EDDY_UBUNTU_MIRROR="${EDDY_UBUNTU_MIRROR:-}" \
    TRY_DEMO="$try_demo" TRY_PACKAGE="$try_package" sh -c "cd /home/eddy && $command"
if [[ $boots -eq 1 ]]; then try_service "$root/tmp/user"; fi
