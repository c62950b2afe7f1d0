// Listener: accepts connections and exchanges HELLOs with them, beside each other, on the watcher's thread.
package io.eddy.shm;

import java.io.EOFException;
import java.io.IOException;
import java.net.ProtocolException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/** A listening Unix socket. A peer that stalls holds up no other. Any thread. */
final class Acceptor implements Watcher.Watched, Watcher.Timed {
    /**
     * Connections whose handshake is under way, and those that wait for accept(), at most. At the limit one more ends the
     * oldest handshake of the process that has most of them under way; no more are accepted while all wait for accept().
     */
    static final int MOST_WAITING = 128;
    /** Connections that are accepted at once, before those of other listeners. */
    private static final int BATCH = 64;
    /** As many as the kernel allows by default. */
    private static final int BACKLOG = 4096;
    /** Pause after an error of accept(2). */
    private static final long TICK_NS = 50_000_000;
    private static final Object CLOSED = new Object();
    /** stat(2): S_IFMT and S_IFSOCK. */
    private static final int TYPE_MASK = 0xf000;
    private static final int TYPE_SOCKET = 0xc000;

    final ShmSocketAddress address;
    private final System.Logger logger = System.getLogger("io.eddy.shm");
    private final ShmOptions options;
    private final int doorbell;
    private final int fd;
    private final long token;
    /** Identity of the socket's file; null for an abstract name. */
    private final Object fileKey;
    private final AtomicLong failures = new AtomicLong();
    /** Connections, or an IOException of accept(2), or CLOSED. With room for all there can be, so that adding never fails. */
    private final BlockingQueue<Object> accepted = new ArrayBlockingQueue<>(MOST_WAITING + 2);

    private final ReentrantLock lock = new ReentrantLock();
    /** By the time at which they came. */
    private final Set<Guest> guests = new LinkedHashSet<>();
    private boolean isPaused;
    /** Until when it stays so after an error; System.nanoTime(). */
    private long pausedUntil = System.nanoTime();
    /** The error that waits for accept(), or null: the next one is of the same kind, as a rule. */
    private IOException waitingError;
    private boolean hasLogged;
    /** The last OutOfMemoryError, until there is memory for its message. */
    private Throwable unlogged;
    private volatile boolean isClosed;

    /** A peer whose exchange is under way. */
    private final class Guest implements Watcher.Watched {
        private final Handshake with;
        private final long process;
        private final long deadline;
        private long its;
        private boolean isWatched;

        Guest(Handshake with, long process) {
            this.with = with;
            this.process = process;
            deadline = Deadlines.of(Deadlines.limit(options.handshakeTimeout));
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

        @Override
        public void onFailure(Throwable error) {
            lock.lock();
            try {
                drop();
                log(error);
                resume();
            } finally {
                lock.unlock();
            }
        }

        /** On failure the socket, and the handshake, are the caller's. */
        void begin() {
            guests.add(this);
            step();
        }

        /** A failure of any kind is the end of this peer's handshake, and of nothing else. */
        private void step() {
            try {
                Faults.at("step");
                Handshake.Next next = with.step();
                if (next != Handshake.Next.DONE) {
                    watch(next == Handshake.Next.READABLE ? Watcher.READABLE : Watcher.WRITABLE);
                    return;
                }
                unwatch();
                // The last that can fail: the descriptor is the connection's then.
                Connection made = with.connection();
                guests.remove(this);
                accepted.add(made);
                logLate();
            } catch (EOFException | ProtocolException error) {
                drop();
            } catch (IOException | RuntimeException | Error error) {
                drop();
                log(error);
            }
        }

        /** Not before the first step, which as a rule finds all that is to come, or the end. */
        private void watch(int events) throws IOException {
            if (isWatched) {
                Watcher.handshakes().change(with.fd, events, its);
                return;
            }
            try {
                Faults.at("watch");
                its = Watcher.handshakes().add(with.fd, events, this);
                isWatched = true;
            } catch (IOException error) {
                // It concerns the next one, too.
                fail(error);
                throw error;
            }
        }

        private void unwatch() {
            if (isWatched) {
                isWatched = false;
                Watcher.handshakes().remove(with.fd, its);
            }
        }

        private void drop() {
            if (!guests.remove(this)) {
                return;
            }
            unwatch();
            // Before the peer sees it.
            failures.incrementAndGet();
            discard(with, with.fd);
        }
    }

    Acceptor(ShmSocketAddress address, ShmOptions options) throws IOException {
        Connector.checkSystem();
        Connector.initializeClasses();
        // The JDK's classes of loggers, too: within an OutOfMemoryError they would be lost to the whole program.
        logger.isLoggable(System.Logger.Level.WARNING);
        this.address = address;
        this.options = options;
        doorbell = options.doorbellNumber();
        int made = Native.socket();
        if (made < 0) {
            throw Errors.of("socket", made);
        }
        fd = made;
        Object key = null;
        boolean isWatched = false;
        // The first client may come before there is a token.
        lock.lock();
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
            fileKey = key;
            Watcher.handshakes().addTimed(this);
            token = Watcher.handshakes().add(fd, Watcher.READABLE, this);
            isWatched = true;
        } finally {
            if (!isWatched) {
                Watcher.handshakes().removeTimed(this);
                Native.close(fd);
            }
            lock.unlock();
        }
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

    /** Connections wait in the listener's queue meanwhile. */
    @Override
    public void onFailure(Throwable error) {
        lock.lock();
        try {
            pauseForATick();
            log(error);
        } finally {
            lock.unlock();
        }
    }

    /** Errors that are no peer's fault: the first one of a listener is a warning. */
    private void log(Throwable error) {
        if (error instanceof OutOfMemoryError) {
            // Classes of the JDK's that the message is the first to initialize would be lost to the whole program.
            unlogged = error;
            return;
        }
        try {
            logger.log(hasLogged ? System.Logger.Level.DEBUG : System.Logger.Level.WARNING,
                    "a connection to " + address + " was dropped in its handshake", error);
            hasLogged = true;
        } catch (RuntimeException | Error again) {
            // As of memory, for the message.
        }
    }

    /** After a handshake for which there was memory. */
    private void logLate() {
        Throwable error = unlogged;
        unlogged = null;
        if (error != null) {
            log(new IOException("out of memory", error));
        }
    }

    private boolean isFull() {
        return accepted.size() >= MOST_WAITING;
    }

    /** Gives up a handshake: clients that stall cannot keep others out. */
    private void endOne() {
        Guest chosen = null;
        int most = 0;
        for (Guest each : guests) {
            int count = 0;
            for (Guest other : guests) {
                count += other.process == each.process ? 1 : 0;
            }
            if (count > most) {
                most = count;
                chosen = each;
            }
        }
        if (chosen != null) {
            chosen.drop();
        }
    }

    private void takeWaiting() {
        for (int i = 0; i < BATCH && !isClosed; ++i) {
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
            if (guests.size() + accepted.size() > MOST_WAITING) {
                endOne();
            }
        }
    }

    /** Such errors concern no connection: there may be no descriptors left. It is tried again with the next tick. */
    private void fail(IOException error) {
        pauseForATick();
        if (waitingError == null) {
            waitingError = error;
            accepted.add(error);
        }
    }

    /** The shortage is over: an accept() that comes later is not concerned by it. */
    private void forgetError() {
        if (waitingError != null) {
            accepted.remove(waitingError);
            waitingError = null;
        }
    }

    private void pauseForATick() {
        pausedUntil = System.nanoTime() + TICK_NS;
        pause();
    }

    private void begin(int peer) {
        Handshake with = null;
        try {
            long process = PeerUser.processOf(peer);
            if (!PeerUser.isAllowed(process, options.allowedUsers)) {
                failures.incrementAndGet();
                Descriptors.refuseAndClose(peer);
                return;
            }
            Faults.at("begin");
            with = new Handshake(Handshake.Side.SERVER, peer, options, doorbell);
            // Before the peer sees that it is connected.
            forgetError();
            new Guest(with, process).begin();
        } catch (RuntimeException | Error error) {
            failures.incrementAndGet();
            discard(with, peer);
            log(error);
        }
    }

    private static void discard(Handshake with, int peer) {
        if (with != null) {
            with.discard();
        }
        if (with != null && with.isAtEnd()) {
            Native.close(peer);
        } else {
            Descriptors.refuseAndClose(peer);
        }
    }

    private void pause() {
        if (!isPaused) {
            Watcher.handshakes().change(fd, 0, token);
            isPaused = true;
        }
    }

    private void resume() {
        if (isPaused && !isClosed && !isFull() && System.nanoTime() - pausedUntil >= 0) {
            Watcher.handshakes().change(fd, Watcher.READABLE, token);
            isPaused = false;
        }
    }

    @Override
    public long expire(long now) {
        lock.lock();
        try {
            while (!guests.isEmpty()) {
                Guest first = guests.iterator().next();
                if (!Deadlines.isLate(first.deadline, now)) {
                    break;
                }
                first.drop();
            }
            resume();
            if (isPaused && !isFull()) {
                return pausedUntil;
            }
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
            accepted.offer(CLOSED);
            throw new SocketException("Socket closed");
        }
        lock.lock();
        try {
            if (found == waitingError) {
                waitingError = null;
            }
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
            try {
                while (!guests.isEmpty()) {
                    guests.iterator().next().drop();
                }
                removeFile();
            } finally {
                Native.close(fd);
            }
        } finally {
            lock.unlock();
            closeAccepted();
        }
    }

    private void closeAccepted() {
        try {
            for (Object each; (each = accepted.poll()) != null;) {
                if (each instanceof Connection) {
                    ((Connection) each).close();
                }
            }
        } finally {
            // For those that wait in accept(). Full, if at all, of what a call that failed above has left there.
            accepted.offer(CLOSED);
        }
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
