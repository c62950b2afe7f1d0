// Client side of a connection: the Unix socket, and the exchange over it.
package io.eddy.shm;

import java.io.IOException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Connects, and makes pairs. */
final class Connector {
    private static final long BACKLOG_RETRY_NS = 1_000_000;
    /** Longest wait before it is checked whether the socket was closed. */
    private static final int LONGEST_POLL_MS = 50;

    /** A client's connection, and the name of its listener. */
    record Made(Connection connection, ShmSocketAddress at) {}

    private static volatile boolean areClassesInitialized;
    /** By {@code --illegal-native-access=deny}; null otherwise. */
    private static volatile String denial;

    private Connector() {}

    static void checkSystem() throws IOException {
        String refusal = denial;
        if (refusal == null) {
            refusal = refusal();
        }
        if (refusal != null) {
            throw new IOException(refusal);
        }
    }

    private static String refusal() {
        try {
            return Native.refusal();
        } catch (ExceptionInInitializerError error) {
            if (!(error.getCause() instanceof IllegalCallerException)) {
                throw error;
            }
            // Later uses of the class do not have the reason.
            denial = "native access is denied; shared-memory sockets need --enable-native-access=ALL-UNNAMED, or the name of "
                    + "their module: " + error.getCause().getMessage();
            return denial;
        }
    }

    /**
     * A connection within this process, once, before a listener has clients: it initializes the classes that a connection
     * needs, the JDK's among them. An OutOfMemoryError in the initialization of a class is one for good; here it is the
     * program's, on a listener's thread it would end all listeners.
     */
    static void initializeClasses() {
        if (areClassesInitialized) {
            return;
        }
        try {
            ShmSocket[] both = ShmSocket.pair(ShmOptions.DEFAULT.withRingSize(ShmOptions.MIN_RING_SIZE));
            try (ShmSocket one = both[0]; ShmSocket other = both[1]) {
                one.getOutputStream().write(0);
                other.getInputStream().read();
                // Of a call that sleeps.
                other.setSoTimeout(1);
                other.getInputStream().read();
            }
        } catch (SocketTimeoutException end) {
            areClassesInitialized = true;
        } catch (IOException noRoom) {
            // There is none for a connection; the next listener tries again.
        }
    }

    /**
     * {@code nanos}: a limit for all of it, beside that of the options for the exchange, or Connection.NEVER. Ends with a
     * SocketException soon after {@code isClosed}.
     */
    static Made connect(ShmSocketAddress given, ShmOptions options, long nanos, BooleanSupplier isClosed)
            throws IOException {
        checkSystem();
        List<ShmSocketAddress> names = given.names(options.serverUsers);
        ShmSocketAddress to = names.get(0);
        long deadline = Deadlines.of(Math.min(nanos, Deadlines.limit(options.handshakeTimeout)));
        int fd = Native.socket();
        if (fd < 0) {
            throw Errors.of("socket", fd);
        }
        Handshake with = null;
        try {
            int connected = -Errors.ECONNREFUSED;
            // The first one that has a listener.
            for (int i = 0; i < names.size() && connected == -Errors.ECONNREFUSED; ++i) {
                to = names.get(i);
                while ((connected = Native.connect(fd, to.name())) == -Errors.EAGAIN) {
                    // The listener's queue is full.
                    checkGoesOn(deadline, isClosed);
                    LockSupport.parkNanos(BACKLOG_RETRY_NS);
                }
            }
            if (connected < 0) {
                throw Errors.connecting(given, connected);
            }
            if (!PeerUser.isAllowed(fd, options.serverUsers)) {
                throw Errors.ofServersUser(to);
            }
            with = new Handshake(Handshake.Side.CLIENT, fd, options, options.doorbellNumber());
            for (Handshake.Next next; (next = with.step()) != Handshake.Next.DONE;) {
                waitFor(fd, next == Handshake.Next.READABLE ? Watcher.READABLE : Watcher.WRITABLE, checkGoesOn(deadline, isClosed));
            }
            return new Made(with.connection(), to);
        } catch (IOException | RuntimeException | Error error) {
            if (with != null) {
                with.discard();
            }
            Descriptors.refuseAndClose(fd);
            throw error;
        }
    }

    /** Nanoseconds that are left. */
    private static long checkGoesOn(long deadline, BooleanSupplier isClosed) throws IOException {
        if (isClosed.getAsBoolean()) {
            throw new SocketException("Socket closed");
        }
        long left = deadline == Connection.NEVER ? Connection.NEVER : deadline - System.nanoTime();
        if (left <= 0) {
            throw new SocketTimeoutException("Connect timed out");
        }
        return left;
    }

    private static void waitFor(int fd, int events, long left) throws IOException {
        if (!Threads.isVirtual()) {
            Native.poll(fd, events, (int) Math.min(left / 1_000_000 + 1, LONGEST_POLL_MS));
            return;
        }
        Thread waiting = Thread.currentThread();
        long token = Watcher.connections().add(fd, events | Watcher.ONCE, ready -> LockSupport.unpark(waiting));
        try {
            LockSupport.parkNanos(Connector.class, Math.min(left, LONGEST_POLL_MS * 1_000_000L));
            if (waiting.isInterrupted()) {
                throw new SocketException("Closed by interrupt");
            }
        } finally {
            Watcher.connections().remove(fd, token);
        }
    }

    /** Both ends of a connection within this process. */
    static Connection[] pair(ShmOptions options) throws IOException {
        checkSystem();
        int[] fds = new int[2];
        int made = Native.socketPair(fds);
        if (made < 0) {
            throw Errors.of("socketpair", made);
        }
        Handshake[] with = new Handshake[2];
        Connection first = null;
        try {
            with[0] = new Handshake(Handshake.Side.CLIENT, fds[0], options, options.doorbellNumber());
            with[1] = new Handshake(Handshake.Side.SERVER, fds[1], options, options.doorbellNumber());
            // The client sends; the server has both messages; then so has the client.
            with[0].step();
            with[1].step();
            with[0].step();
            first = with[0].connection();
            return new Connection[] {first, with[1].connection()};
        } catch (IOException | RuntimeException | Error error) {
            for (int i = first == null ? 0 : 1; i < 2; ++i) {
                if (with[i] != null) {
                    with[i].discard();
                }
                Native.close(fds[i]);
            }
            if (first != null) {
                first.close();
            }
            throw error;
        }
    }
}
