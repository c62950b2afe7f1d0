#!/usr/bin/env bash
# Test of the package as a service: boots the system in ROOT, a tree with systemd, and does there what a user does: installs
# the package of the folder DEBS, asks a first cache, reboots, upgrades, removes and purges. Prints the commands and the
# seconds to the first answer, the exposure of the service, and what is left.
#
# Usage: tools/booted_machine.sh ROOT DEBS|ARCHIVE.tar.gz
# With the archive for other systems, install.sh and uninstall.sh take the place of apt.
# Needs root and systemd-nspawn (the package systemd-container). The tree is changed.

set -euo pipefail
root=$1 debs=$2
[[ $EUID -eq 0 ]] || { echo "booted_machine.sh: systemd-nspawn needs root" >&2; exit 1; }
command -v systemd-nspawn >/dev/null || { echo "booted_machine.sh: there is no systemd-nspawn: apt install systemd-container" >&2; exit 1; }

mkdir -p "$root/root/debs"
if [[ -d $debs ]]; then
    cp "$debs"/eddy_*.deb "$root/root/debs/"
    first="cd /root/debs && apt-get -qq install -y --no-install-recommends ./eddy_*.deb"
    again="cd /root/debs && apt-get -qq install -y --reinstall ./eddy_*.deb"
    remove="apt-get -qq remove -y eddy" purge="apt-get -qq purge -y eddy"
else
    tar -xzf "$debs" -C "$root/root/debs" --strip-components=1
    first=/root/debs/install.sh again=/root/debs/install.sh
    remove=/usr/local/share/eddy/uninstall.sh purge="/usr/local/share/eddy/uninstall.sh --purge"
fi
log=$(mktemp)
# Not registered with the host's systemd, which need not run; the host's network, since apt needs one.
boot() {
    systemd-nspawn --quiet --directory="$root" --register=no --keep-unit --kill-signal=SIGRTMIN+3 --boot \
        --resolv-conf=copy-host --console=pipe </dev/null >"$log" 2>&1 &
    machine=$!
    await 'systemctl is-system-running | grep -qE "running|degraded"' "the machine has booted"
}
finish() {
    rm -f "${going:-}" "${served:-}" "${faults:-}"  # which ends the clients
    kill -TERM "$machine" 2>/dev/null || true
    wait "$machine" 2>/dev/null || true
    rm -f "$log"
}
trap finish EXIT

fail() {
    echo "booted_machine.sh: $*" >&2
    tail -n 30 "$log" >&2
    inside "journalctl --no-pager -u eddy -n 40; systemctl --no-pager status eddy" >&2 || true
    exit 1
}

# The first process of the machine: another one after a reboot.
leader() { cat "/proc/$machine/task/$machine/children" 2>/dev/null | tr ' ' '\n' | grep -m1 .; }
inside() {
    local first
    first=$(leader) || return 1
    nsenter --target "$first" --mount --uts --ipc --pid --root --wd -- /usr/bin/env -i HOME=/root USER=root \
        PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -c "$1"
}
await() {  # CONDITION WHAT
    local attempt
    for ((attempt = 0; attempt < 600; ++attempt)); do
        if inside "$1" >/dev/null 2>&1; then return; fi
        kill -0 "$machine" 2>/dev/null || fail "the machine ended"
        sleep 0.1
    done
    fail "this did not come true in a minute: $2"
}
must() { inside "$1" || fail "this failed: $1"; }

port=16379
boot
if [[ -d $debs ]]; then must "apt-get -qq update"; fi

began=$(date +%s%N)
must "$first >/dev/null 2>&1"
must "eddy create cache db -p $port -s >/dev/null"
answer=$(must "eddy db db PING")
ended=$(date +%s%N)
[[ $answer == PONG ]] || fail "the cache answered $answer"
printf 'first answer: 3 commands, %d.%d s\n' $(((ended - began) / 1000000000)) $(((ended - began) / 100000000 % 10))

must "systemctl is-active --quiet eddy && systemctl is-enabled --quiet eddy"
must "systemctl show -P User,Type,WatchdogUSec eddy >/dev/null; [ \$(stat -c %U:%G:%a /run/eddy/eddy.sock) = eddy:eddy:660 ]"
must "[ \$(ps -o user= -C eddy 2>/dev/null || stat -c %U /proc/\$(systemctl show -P MainPID eddy)) = eddy ]"
inside "systemd-analyze security --no-pager eddy" | tail -n 1
echo "$(inside "systemctl show -P StatusText eddy"), io-backend $(inside "eddy version" | sed -n 's/.*io-backend \([a-z]*\).*/\1/p')"
# A port below 1024, members of the group, a stranger.
must "eddy create cache low -p 983 -s >/dev/null && [ \$(eddy db low PING) = PONG ]"
must "useradd member && usermod -aG eddy member && useradd stranger"
must "[ \$(setpriv --reuid=member --init-groups eddy ls -q | wc -l) = 2 ]"
if inside "setpriv --reuid=stranger --init-groups eddy ls" >/dev/null 2>&1; then fail "a stranger controls the daemon"; fi
# A script, which LuaJIT compiles, and a reload.
must "[ \$(eddy db db EVAL 'local n = 0 for i = 1, 100000 do n = n + i end return n' 0) = 5000050000 ]"
must "systemctl reload eddy && systemctl is-active --quiet eddy && eddy db db SET kept yes >/dev/null"
# The journal has the levels of the log.
must "journalctl -q -o cat -u eddy PRIORITY=6 | grep -q '^info  db  created'"
# The state is read again by a signal.
must "systemctl kill -s HUP --kill-whom=main eddy"
await "journalctl -q -o cat -u eddy | grep -q 'reading the state again'" "SIGHUP has the state read again"
# A hang, of a process that has taken another one's place: the watchdog ends it, and systemd starts it again.
must "mkdir -p /run/systemd/system/eddy.service.d
      printf '[Service]\nWatchdogSec=2\n' >/run/systemd/system/eddy.service.d/watchdog.conf
      systemctl daemon-reload && systemctl restart eddy && systemctl reload eddy"
hung=$(inside "systemctl show -P MainPID eddy")
must "kill -STOP $hung"
await "[ \$(systemctl show -P MainPID eddy) != $hung ] && eddy db db PING" "the watchdog has restarted the daemon"
must "rm -r /run/systemd/system/eddy.service.d && systemctl daemon-reload && systemctl restart eddy"
echo "the watchdog restarts a daemon that hangs"

# Upgrades under load, by `systemctl reload` and by a newer version of the package: one connection to a cache, and one to a
# site for each request. The machine has this one's network.
clients() {
    local line
    exec 5<>"/dev/tcp/127.0.0.1/$port"
    while [[ -e $going ]]; do
        printf 'INCR hits\r\n' >&5
        IFS= read -r -t 30 line <&5 && [[ $line == :* ]] || { echo "the cache answered \"$line\""; return; }
        exec 6<>"/dev/tcp/127.0.0.1/$((port + 1))" || { echo "the site refused a connection"; return; }
        printf 'GET / HTTP/1.0\r\n\r\n' >&6
        IFS= read -r -t 30 line <&6 && [[ $line == *" 200 "* ]] || { echo "the site answered \"$line\""; return; }
        exec 6>&-
        echo >>"$served"
    done
}
main_process() { inside "systemctl show -P MainPID eddy"; }
# User, capabilities, filter and limits of the main process.
confinement() {
    inside "pid=\$(systemctl show -P MainPID eddy)
            grep -E '^(Uid|Gid|Groups|Cap.*|NoNewPrivs|Seccomp):' /proc/\$pid/status; grep '^Max' /proc/\$pid/limits"
}
# WHAT COMMAND: by COMMAND another process takes the service over, confined as the one before.
upgrade_by() {
    local before=$upgraded count
    count=$(wc -l <"$served")
    must "$2 >/dev/null 2>&1"
    upgraded=$(main_process)
    [[ $upgraded != "$before" && $upgraded != 0 ]] || fail "$1 has left the process $before in place"
    must "systemctl is-active --quiet eddy && systemctl status --no-pager eddy | grep -q 'Main PID: $upgraded (eddy)'"
    [[ $(confinement) == "$confined" ]] || fail "after $1 the process is confined otherwise: $(confinement)"
    await "! [ -e /proc/$before ]" "the process before has ended"
    for ((attempt = 0; attempt < 600 && $(wc -l <"$served") < count + 20; ++attempt)); do sleep 0.1; done
    [[ ! -s $faults ]] || fail "$1: $(cat "$faults")"
}
must "mkdir -p /srv/site && echo hello >/srv/site/index.html && eddy create http site -p $((port + 1)) --root /srv/site -s"
# Programs within the sandbox, which the new process starts again.
must "eddy add sleep --name job -s -- 1000 >/dev/null"
going=$(mktemp) served=$(mktemp) faults=$(mktemp)
clients >"$faults" 2>&1 &
loader=$!
confined=$(confinement)
upgraded=$(main_process)
upgrade_by "systemctl reload" "systemctl reload eddy"
if [[ -d $debs ]]; then
    must "cd /root && dpkg-deb -R debs/eddy_*.deb newer && sed -i 's/^Version: .*/&+1/' newer/DEBIAN/control &&
          dpkg-deb -b newer newer.deb >/dev/null"
    upgrade_by "the newer package" "apt-get -qq install -y /root/newer.deb"
    must "dpkg-query -W -f '\${Version}' eddy | grep -q '+1$'"
    # The version of the folder again.
    again="cd /root/debs && apt-get -qq install -y --allow-downgrades ./eddy_*.deb"
fi
upgrade_by "a new installation" "$again"
upgrade_by "eddy daemon --upgrade" "eddy daemon --upgrade"
must "[ \$(eddy ls -q --filter status=running | wc -l) = 4 ] && [ \$(ls -l /proc/[0-9]*/exe 2>/dev/null | grep -c 'bin/sleep$') = 1 ]"
total=$(wc -l <"$served")
rm "$going"
wait "$loader" || true
[[ ! -s $faults ]] || fail "$(cat "$faults")"
if inside "journalctl -q -o cat | grep -m 3 'Got notification message from PID'" >&2; then
    fail "the service manager got reports of processes that are not the service's"
fi
rm -f "$served" "$faults"
must "eddy remove -f site job >/dev/null"
echo "systemctl reload and newer packages drop nobody: $total requests of each client"

# The drop-in of docs/operations.md.
if [[ -d $debs ]]; then
    must "set -e; groupadd ops; groupadd -f ssl-cert; useradd -m --groups ops keeper
          mkdir -p /data/eddy /home/keeper/site /run/systemd/system/eddy.service.d
          chown eddy /data/eddy && chmod 755 /home/keeper && echo hello >/home/keeper/site/index.html
          echo secret >/etc/site.key && chmod 600 /etc/site.key"
    sed -n '/^    \[Service\]/,/^$/s/^    //p' docs/operations.md | inside "cat >/run/systemd/system/eddy.service.d/page.conf"
    must "echo 'LoadCredential=site.key:/etc/site.key' >>/run/systemd/system/eddy.service.d/page.conf
          systemctl daemon-reload && systemctl restart eddy && eddy create cache other -p 984 --dir /data/eddy/other -s
          eddy create http site -p 985 --root /home/keeper/site -s"
    must "setpriv --reuid=keeper --init-groups eddy ls -q >/dev/null && [ \$(stat -c %G /run/eddy/eddy.sock) = ops ]"
    if inside "setpriv --reuid=member --init-groups eddy ls" >/dev/null 2>&1; then fail "the group eddy still controls the daemon"; fi
    must "setpriv --reuid=eddy --regid=ops --clear-groups cat /run/credentials/eddy.service/site.key | grep -q secret"
    must "eddy remove -f other site && rm -r /run/systemd/system/eddy.service.d && systemctl daemon-reload && systemctl restart eddy"
    must "setpriv --reuid=member --init-groups eddy ls -q >/dev/null"
    echo "the drop-in of docs/operations.md works"
fi

inside "systemctl poweroff" || true
wait "$machine" || true
boot
await "[ \$(eddy db db PING) = PONG ]" "the cache is there after a reboot"
echo "a reboot keeps the runtimes: $(inside "eddy ls -q" | tr '\n' ' ')"

must "$again >/dev/null 2>&1"
await "[ \$(eddy db db PING) = PONG ]" "the cache is there after an upgrade"
must "$remove >/dev/null 2>&1"
must "[ -e /var/lib/eddy/runtimes/db.json ] && ! systemctl is-active --quiet eddy"
must "$first >/dev/null 2>&1"
await "[ \$(eddy db db PING) = PONG ]" "the state is there after a removal and a new installation"
must "$purge >/dev/null 2>&1"
left=$(inside "ls -d /var/lib/eddy /var/log/eddy /run/eddy /etc/default/eddy /etc/logrotate.d/eddy /etc/systemd/system/*/eddy.service 2>/dev/null" || true)
[[ -z $left ]] || fail "a purge leaves $left"
echo "an upgrade and a removal keep the state, a purge removes it"
