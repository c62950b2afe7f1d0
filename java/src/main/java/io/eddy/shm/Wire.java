// The Unix socket beside a connection's memory: the doorbell, the peer's end, or the stream itself.
package io.eddy.shm;

import java.io.IOException;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The socket, until close(). It does not keep its connection reachable, so that the garbage collector finds one that was
 * dropped without close(). signal(), receive(), send() and available() are for calls that close() waits for; the others for
 * any thread.
 */
final class Wire implements Watcher.Watched {
    private static final int DROPPED = 256;
    /** Also that of listeners. */
    static final Cleaner CLEANER = Cleaner.create();
    /** Bytes without meaning, of the watcher's thread. */
    private static final byte[] DROP = new byte[DROPPED];

    private final int fd;
    private final boolean isBell;
    private final WrittenPages pages;
    private final WeakReference<Connection> connection;
    private final ReentrantLock lock = new ReentrantLock();
    private final long token;
    private boolean isWatched;
    private boolean isClosed;

    /**
     * {@code isBell}: whether its bytes are those of a doorbell, without meaning. {@code pages}: null, or what has a descriptor
     * that is closed with the socket.
     */
    Wire(int fd, boolean isBell, Connection connection, WrittenPages pages) throws IOException {
        this.pages = pages;
        this.fd = fd;
        this.isBell = isBell;
        this.connection = new WeakReference<>(connection);
        lock.lock();
        try {
            // As the stream, each wait asks for one event.
            token = Watcher.connections().add(fd, isBell ? Watcher.READABLE : Watcher.ONCE, this);
            isWatched = true;
        } finally {
            lock.unlock();
        }
    }

    /** On the watcher's thread. */
    @Override
    public void onReady(int events) {
        Connection its = connection.get();
        if (its == null) {
            // The garbage collector is about to close it.
            stopWatching();
            return;
        }
        if (isBell && takeBells()) {
            its.onPeerGone();
        } else {
            its.onBell();
        }
    }

    /** As if the peer had gone: what its threads wait for may have been missed. */
    @Override
    public void onFailure(Throwable error) {
        Connection its = connection.get();
        if (its != null) {
            its.onPeerGone();
        }
        stopWatching();
    }

    private void stopWatching() {
        lock.lock();
        try {
            unwatch();
        } finally {
            lock.unlock();
        }
    }

    /** True at the end of the socket. */
    private boolean takeBells() {
        lock.lock();
        try {
            if (isClosed || !isWatched) {
                return false;
            }
            int size = Descriptors.receive(fd, DROP, DROPPED);
            if (size > 0 || size == -Errors.EAGAIN || size == -Errors.EINTR) {
                return false;
            }
            unwatch();
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Of a connection that is dropped without close(), as a Socket may be. On failure, the descriptor is the caller's again. */
    Cleaner.Cleanable closeAfter(Connection its) {
        try {
            return CLEANER.register(its, this::close);
        } catch (RuntimeException | Error error) {
            lock.lock();
            try {
                isClosed = true;
                unwatch();
            } finally {
                lock.unlock();
            }
            throw error;
        }
    }

    private void unwatch() {
        if (isWatched) {
            isWatched = false;
            Watcher.connections().remove(fd, token);
        }
    }

    // Each of these keeps the connection reachable, and with it the descriptor open, until the system call is over.

    void signal(Connection its) {
        Native.signal(fd);
        Reference.reachabilityFence(its);
    }

    int receive(Connection its, byte[] into, int from, int size) {
        int got = Native.receive(fd, into, from, size);
        Reference.reachabilityFence(its);
        return got;
    }

    int send(Connection its, byte[] bytes, int from, int size) {
        int sent = Native.send(fd, bytes, from, size);
        Reference.reachabilityFence(its);
        return sent;
    }

    int available(Connection its) {
        int size = Native.available(fd);
        Reference.reachabilityFence(its);
        return size;
    }

    /** The connection's onBell() is called at the next of its awaitedEvents(), once. */
    void await(Connection its) {
        lock.lock();
        try {
            if (!isClosed) {
                // Within the lock: of two threads that wait, the later one asks for the events of both.
                Watcher.connections().change(fd, its.awaitedEvents() | Watcher.ONCE, token);
            }
        } finally {
            lock.unlock();
        }
    }

    void shutdownOutput() {
        shutdown(1);
    }

    /** Of both directions. */
    void shutdown() {
        shutdown(2);
    }

    private void shutdown(int how) {
        lock.lock();
        try {
            if (!isClosed) {
                Native.shutdown(fd, how);
            }
        } finally {
            lock.unlock();
        }
    }

    void close() {
        lock.lock();
        try {
            if (!isClosed) {
                isClosed = true;
                unwatch();
                Native.close(fd);
                if (pages != null) {
                    pages.close();
                }
            }
        } finally {
            lock.unlock();
        }
    }
}
