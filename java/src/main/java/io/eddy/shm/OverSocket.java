// Bytes of a connection without shared memory: the stream of its Unix socket.
package io.eddy.shm;

import java.io.IOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;

/** Calls over the socket, each within a guard of the connection: one thread that reads, and one that writes. */
final class OverSocket {
    /** Bytes that are copied between a buffer and the socket at once. */
    static final int PART = 65536;

    private final Connection its;
    private final Wire wire;
    private final Waiters waiters;
    private final Sleeper sleeper;

    OverSocket(Connection its, Wire wire, Waiters waiters, Sleeper sleeper) {
        this.its = its;
        this.wire = wire;
        this.waiters = waiters;
        this.sleeper = sleeper;
    }

    /** Waits until it is ready, or the connection is closed. */
    void await(boolean forReading, long deadline, String late) throws IOException {
        if (Deadlines.isLate(deadline, System.nanoTime())) {
            throw new SocketTimeoutException(late);
        }
        if (forReading) {
            waiters.reader = Thread.currentThread();
        } else {
            waiters.writer = Thread.currentThread();
        }
        try {
            its.checkOpen();
            if (forReading ? its.isInputShut() : its.isOutputShut()) {
                return;
            }
            wire.await(its);
            sleeper.park(deadline);
        } finally {
            if (forReading) {
                waiters.reader = null;
            } else {
                waiters.writer = null;
            }
        }
    }

    /** 0 while there is nothing, -1 at the end. */
    int receive(byte[] into, int from, int size) throws IOException {
        its.checkOpen();
        if (its.isInputShut()) {
            return -1;
        }
        int got = wire.receive(its, into, from, size);
        if (got > 0) {
            return got;
        }
        if (got == 0) {
            // The own close() ends the socket, too.
            its.checkOpen();
            return -1;
        }
        if (got == -Errors.EAGAIN || got == -Errors.EINTR) {
            return 0;
        }
        throw Errors.of("recv", got);
    }

    void write(byte[] bytes, int from, int size, long deadline) throws IOException {
        try {
            for (int done = 0; done < size;) {
                int sent = send(bytes, from + done, size - done);
                if (sent == 0) {
                    await(false, deadline, "Write timed out");
                }
                done += sent;
            }
        } finally {
            sleeper.restoreInterrupt();
        }
    }

    /** As much as there is room for: 0 when full. */
    int send(byte[] bytes, int from, int size) throws IOException {
        int sent = wire.send(its, bytes, from, size);
        if (sent >= 0) {
            return sent;
        }
        if (sent == -Errors.EAGAIN || sent == -Errors.EINTR) {
            return 0;
        }
        throw its.isOpen() ? Errors.of("send", sent) : Connection.closed();
    }

    /** The same from a buffer, whose position advances. */
    int send(ByteBuffer bytes) throws IOException {
        byte[] copy = new byte[Math.min(bytes.remaining(), PART)];
        bytes.get(bytes.position(), copy);
        int sent = send(copy, 0, copy.length);
        bytes.position(bytes.position() + sent);
        return sent;
    }
}
