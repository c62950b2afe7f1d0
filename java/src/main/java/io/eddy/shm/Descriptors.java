// Descriptors of other processes: sockets among them that linger would block the thread that drops them.
package io.eddy.shm;

/** Refusing, and dropping, what a peer passes with SCM_RIGHTS. */
final class Descriptors {
    private static final int SO_OOBINLINE = 10;
    private static final int SO_PEEK_OFF = 42;
    /** Linux 6.16; 0 has the peer's sendmsg(2) fail with EPERM. */
    private static final int SO_PASSRIGHTS = 83;
    /** Chunks of a queue that refuse() goes through, at most: more than a socket's buffer holds by the kernel's default. */
    private static final int MOST_QUEUED = 1024;
    private static final int CHUNK = 2048;

    /** False once the kernel has turned out to lack SO_PASSRIGHTS. */
    static volatile boolean canRefuse = true;

    private Descriptors() {}

    /** Before the handshake. Out-of-band bytes would be skipped, and their descriptors dropped, without being received. */
    static void receiveAll(int fd) {
        Native.setOption(fd, SO_OOBINLINE, 1);
    }

    /**
     * From now on no descriptor can be sent to the socket. Those that are queued linger no more. No bytes are consumed. Any
     * thread, one at a time for a socket.
     */
    static void refuse(int fd) {
        if (canRefuse && Native.setOption(fd, SO_PASSRIGHTS, 0) == -Errors.ENOPROTOOPT) {
            canRefuse = false;
        }
        // Peeking installs copies, whose options are those of the queued sockets themselves. Unlike FIONREAD, it takes the lock
        // under which a send that was allowed just before queues its descriptors.
        int[] found = new int[2];
        if (receive(fd, new byte[1], found, true) <= 0) {
            return;
        }
        Native.setOption(fd, SO_PEEK_OFF, 0);
        byte[] room = new byte[CHUNK];
        for (int i = 0; i < MOST_QUEUED; ++i) {
            if (receive(fd, room, found, true) <= 0) {
                break;
            }
        }
        Native.setOption(fd, SO_PEEK_OFF, -1);
    }

    /** Before the handshake is over, whatever ends it. */
    static void refuseAndClose(int fd) {
        try {
            refuse(fd);
        } catch (RuntimeException | Error error) {
            // As of memory: the descriptor is closed all the same.
        } finally {
            Native.close(fd);
        }
    }

    /** receive() of bytes that may have descriptors where the kernel cannot refuse them; they are closed. */
    static int receive(int fd, byte[] into, int size) {
        return canRefuse ? Native.receive(fd, into, 0, size) : receive(fd, into, new int[2], false);
    }

    private static int receive(int fd, byte[] into, int[] found, boolean peeks) {
        int size = Native.receiveMessage(fd, into, 0, found, peeks);
        if (size >= 0 && found[0] >= 0) {
            Native.close(found[0]);
        }
        return size;
    }
}
