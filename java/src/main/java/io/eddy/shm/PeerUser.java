// User of the process at the other end of a Unix socket, and whether it is allowed.
package io.eddy.shm;

import java.util.Set;

/** SO_PEERCRED of unix(7): of the process that connected, or that listens. Any thread. */
final class PeerUser {
    private static final int ROOT = 0;
    /** No process has a negative number. */
    private static final long UNKNOWN = -1;

    private PeerUser() {}

    /** Whether the peer's effective user is one of {@code allowed}, or, where that is empty, this process's or root. */
    static boolean isAllowed(int fd, Set<Integer> allowed) {
        return isAllowed(processOf(fd), allowed);
    }

    /** The same of a peer's processOf(). */
    static boolean isAllowed(long process, Set<Integer> allowed) {
        if (process == UNKNOWN) {
            return false;
        }
        int user = (int) (process >>> 32);
        return allowed.isEmpty() ? user == ROOT || user == Native.user() : allowed.contains(user);
    }

    /** The peer's user, above 32 bits, and its process, which is 0 in a namespace that this one does not see; or UNKNOWN. */
    static long processOf(int fd) {
        int[] peer = new int[2];
        return Native.peer(fd, peer) < 0 ? UNKNOWN : (long) peer[0] << 32 | peer[1];
    }
}
