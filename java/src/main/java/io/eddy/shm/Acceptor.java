// Listener: accepts connections and exchanges HELLOs with them, beside each other, on the watcher's thread.
package io.eddy.shm;

import java.io.IOException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/** A listening Unix socket. A peer that stalls holds up no other. Any thread. */
final class Acceptor implements Watcher.Watched, Watcher.Timed {
    /**
     * Connections whose handshake is under way, and those that wait for accept(), at most. At the limit no more are
     * accepted.
     */
    static final int MOST_WAITING = 128;
    private static final int BACKLOG = 1024;
    private static final Object CLOSED = new Object();
    /** stat(2): S_IFMT and S_IFSOCK. */
    private static final int TYPE_MASK = 0xf000;
    private static final int TYPE_SOCKET = 0xc000;

    final ShmSocketAddress address;
    private final ShmOptions options;
    private final int doorbell;
    private final int fd;
    private final long token;
    /** Identity of the socket's file; null for an abstract name. */
    private final Object fileKey;
    private final AtomicLong failures = new AtomicLong();
    /** Connections, or an IOException of accept(2), or CLOSED. */
    private final BlockingQueue<Object> accepted = new LinkedBlockingQueue<>();

    private final ReentrantLock lock = new ReentrantLock();
    /** By the time at which they came. */
    private final Set<Guest> guests = new LinkedHashSet<>();
    private boolean isPaused;
    private volatile boolean isClosed;

    /** A peer whose exchange is under way. */
    private final class Guest implements Watcher.Watched {
        private final Handshake with;
        private final long deadline;
        private long its;

        Guest(Handshake with) {
            this.with = with;
            deadline = System.nanoTime() + options.handshakeTimeout.toNanos();
        }

        @Override
        public void onReady(int events) {
            lock.lock();
            try {
                if (guests.contains(this)) {
                    step();
                    resume();
                }
            } finally {
                lock.unlock();
            }
        }

        void begin() throws IOException {
            its = Watcher.handshakes().add(with.fd, Watcher.READABLE, this);
            guests.add(this);
            step();
        }

        private void step() {
            try {
                Handshake.Next next = with.step();
                if (next != Handshake.Next.DONE) {
                    int events = next == Handshake.Next.READABLE ? Watcher.READABLE : Watcher.WRITABLE;
                    Watcher.handshakes().change(with.fd, events, its);
                    return;
                }
                guests.remove(this);
                Watcher.handshakes().remove(with.fd, its);
                accepted.add(with.connection());
            } catch (IOException error) {
                drop();
            }
        }

        private void drop() {
            guests.remove(this);
            Watcher.handshakes().remove(with.fd, its);
            with.discard();
            Native.close(with.fd);
            failures.incrementAndGet();
        }
    }

    Acceptor(ShmSocketAddress address, ShmOptions options) throws IOException {
        Connector.checkSystem();
        this.address = address;
        this.options = options;
        doorbell = options.doorbellNumber();
        int made = Native.socket();
        if (made < 0) {
            throw Errors.of("socket", made);
        }
        fd = made;
        Object key = null;
        long added;
        try {
            bind();
            if (!address.isAbstract()) {
                Path file = Path.of(address.path());
                // Nothing connects before listen().
                Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
                key = keyOf(file);
            }
            int listening = Native.listen(fd, BACKLOG);
            if (listening < 0) {
                throw Errors.binding(address, listening);
            }
            added = Watcher.handshakes().add(fd, Watcher.READABLE, this);
        } catch (IOException | RuntimeException | Error error) {
            Native.close(fd);
            throw error;
        }
        fileKey = key;
        token = added;
        Watcher.handshakes().addTimed(this);
    }

    private void bind() throws IOException {
        int bound = Native.bind(fd, address.name());
        if (bound == -Errors.EADDRINUSE && !address.isAbstract() && isAbandoned()) {
            Files.deleteIfExists(Path.of(address.path()));
            bound = Native.bind(fd, address.name());
        }
        if (bound < 0) {
            throw Errors.binding(address, bound);
        }
    }

    /** Whether the file is the socket of a listener that has ended. */
    private boolean isAbandoned() {
        int probe = Native.socket();
        if (probe < 0) {
            return false;
        }
        int connected = Native.connect(probe, address.name());
        Native.close(probe);
        return connected == -Errors.ECONNREFUSED && isSocket(Path.of(address.path()));
    }

    /** Files of every other kind refuse connections, too. */
    private static boolean isSocket(Path file) {
        try {
            int mode = (int) Files.getAttribute(file, "unix:mode", LinkOption.NOFOLLOW_LINKS);
            return (mode & TYPE_MASK) == TYPE_SOCKET;
        } catch (IOException gone) {
            return false;
        }
    }

    private static Object keyOf(Path file) throws IOException {
        return Files.readAttributes(file, BasicFileAttributes.class).fileKey();
    }

    @Override
    public void onReady(int events) {
        lock.lock();
        try {
            takeWaiting();
        } finally {
            lock.unlock();
        }
    }

    private boolean isFull() {
        return guests.size() + accepted.size() >= MOST_WAITING;
    }

    private void takeWaiting() {
        while (!isClosed) {
            if (isFull()) {
                pause();
                return;
            }
            int peer = Native.accept(fd);
            if (peer == -Errors.EAGAIN) {
                return;
            }
            if (peer == -Errors.EINTR || peer == -Errors.ECONNABORTED) {
                continue;
            }
            if (peer < 0) {
                fail(Errors.of("accept", peer));
                return;
            }
            begin(peer);
        }
    }

    /** Such errors concern no connection: there may be no descriptors left. It is tried again with the next tick. */
    private void fail(IOException error) {
        pause();
        accepted.add(error);
    }

    private void begin(int peer) {
        if (!PeerUser.isAllowed(peer, options.allowedUsers)) {
            Native.close(peer);
            failures.incrementAndGet();
            return;
        }
        Handshake with = null;
        try {
            with = new Handshake(peer, options, doorbell);
            new Guest(with).begin();
        } catch (IOException error) {
            if (with != null) {
                with.discard();
            }
            Native.close(peer);
            fail(error);
        }
    }

    private void pause() {
        if (!isPaused) {
            isPaused = true;
            Watcher.handshakes().change(fd, 0, token);
        }
    }

    private void resume() {
        if (isPaused && !isClosed && !isFull()) {
            isPaused = false;
            Watcher.handshakes().change(fd, Watcher.READABLE, token);
        }
    }

    @Override
    public long expire(long now) {
        lock.lock();
        try {
            while (!guests.isEmpty()) {
                Guest first = guests.iterator().next();
                if (first.deadline - now > 0) {
                    break;
                }
                first.drop();
            }
            resume();
            return guests.isEmpty() ? Long.MAX_VALUE : guests.iterator().next().deadline;
        } finally {
            lock.unlock();
        }
    }

    /** Waits for a connection; {@code nanos}: a limit, or Connection.NEVER. */
    Connection accept(long nanos) throws IOException {
        long deadline = Deadlines.of(nanos);
        boolean wasInterrupted = false;
        try {
            for (;;) {
                try {
                    return accept(deadline == Connection.NEVER ? accepted.take()
                            : accepted.poll(Math.max(deadline - System.nanoTime(), 0), TimeUnit.NANOSECONDS));
                } catch (InterruptedException interrupt) {
                    wasInterrupted = true;
                    if (Threads.isVirtual()) {
                        close();
                        throw new SocketException("Closed by interrupt");
                    }
                }
            }
        } finally {
            if (wasInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private Connection accept(Object found) throws IOException {
        if (found == null) {
            throw new SocketTimeoutException("Accept timed out");
        }
        if (found == CLOSED) {
            // For the next one that waits.
            accepted.add(CLOSED);
            throw new SocketException("Socket closed");
        }
        lock.lock();
        try {
            resume();
        } finally {
            lock.unlock();
        }
        if (found instanceof IOException) {
            throw (IOException) found;
        }
        return (Connection) found;
    }

    boolean isOpen() {
        return !isClosed;
    }

    boolean hasSocketDoorbell() {
        return doorbell == Layout.DOORBELL_SOCKET;
    }

    /** Connections that never came about. */
    long failures() {
        return failures.get();
    }

    void close() {
        lock.lock();
        try {
            if (isClosed) {
                return;
            }
            isClosed = true;
            Watcher.handshakes().removeTimed(this);
            Watcher.handshakes().remove(fd, token);
            for (Guest each : guests.toArray(new Guest[0])) {
                each.drop();
            }
            removeFile();
            Native.close(fd);
        } finally {
            lock.unlock();
        }
        for (Object each; (each = accepted.poll()) != null;) {
            if (each instanceof Connection) {
                ((Connection) each).close();
            }
        }
        accepted.add(CLOSED);
    }

    /** Unless another listener has taken its place. */
    private void removeFile() {
        try {
            Path file = fileKey == null ? null : Path.of(address.path());
            if (file != null && fileKey.equals(keyOf(file))) {
                Files.delete(file);
            }
        } catch (IOException gone) {
            // Nothing to remove.
        }
    }
}
