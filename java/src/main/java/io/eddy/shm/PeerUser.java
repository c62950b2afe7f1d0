// User of the process at the other end of a Unix socket, and whether it is allowed.
package io.eddy.shm;

import java.util.Set;

/** SO_PEERCRED of unix(7): of the process that connected, or that listens. Any thread. */
final class PeerUser {
    private static final int ROOT = 0;

    private PeerUser() {}

    /** Whether the peer's effective user is one of {@code allowed}, or, where that is empty, this process's or root. */
    static boolean isAllowed(int fd, Set<Integer> allowed) {
        int[] user = new int[1];
        if (Native.peerUser(fd, user) < 0) {
            return false;
        }
        return allowed.isEmpty() ? user[0] == ROOT || user[0] == Native.user() : allowed.contains(user[0]);
    }
}
