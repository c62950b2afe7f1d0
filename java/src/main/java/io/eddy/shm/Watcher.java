// Thread that waits for sockets of connections and listeners: epoll(7).
package io.eddy.shm;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** One daemon thread that calls what it watches. Any thread may add and remove. */
final class Watcher {
    /** A socket's owner. Called on the watcher's thread; it must not block. */
    interface Watched {
        void onReady(int events);

        /** onReady() has thrown this: ends what is watched, which would otherwise be called again and again. */
        default void onFailure(Throwable error) {}
    }

    /** What has deadlines. Called on the watcher's thread; it must not block. */
    interface Timed {
        /**
         * Ends what is late; returns System.nanoTime() of the next deadline, or Long.MAX_VALUE for none. Called again soon
         * after it has thrown.
         */
        long expire(long now);
    }

    static final int READABLE = 1;
    static final int WRITABLE = 4;
    /** The peer has finished writing. */
    static final int HALF_CLOSED = 0x2000;
    static final int ONCE = 1 << 30;

    private static final int ADD = 1;
    private static final int REMOVE = 2;
    private static final int CHANGE = 3;
    private static final int BATCH = 64;
    /** Longest wait while there are deadlines that other threads may add to. */
    private static final int TICK_MS = 50;

    /** Wake-ups and ends of connections. */
    private static final Watcher CONNECTIONS = new Watcher("eddy-shm-connections");
    /** Handshakes of listeners, which allocate memory. */
    private static final Watcher HANDSHAKES = new Watcher("eddy-shm-handshakes");

    private final String name;
    private final ReentrantLock lock = new ReentrantLock();
    private final List<Timed> timed = new ArrayList<>();
    private Watched[] slots = new Watched[16];
    private int[] generations = new int[16];
    private int[] free = new int[16];
    private int freeCount;
    private int used;
    private volatile int epoll = -1;

    private Watcher(String name) {
        this.name = name;
    }

    static Watcher connections() {
        return CONNECTIONS;
    }

    static Watcher handshakes() {
        return HANDSHAKES;
    }

    private void start() throws IOException {
        if (epoll >= 0) {
            return;
        }
        int made = Native.epollCreate();
        if (made < 0) {
            throw Errors.of("epoll_create1", made);
        }
        try {
            Threads.start(name, () -> run(made));
        } catch (RuntimeException | Error error) {
            // No thread: there may be one for the next that comes.
            Native.close(made);
            throw error;
        }
        epoll = made;
    }

    /** Watches a socket, level-triggered. Returns a token for change() and remove(). */
    long add(int fd, int events, Watched owner) throws IOException {
        lock.lock();
        try {
            start();
            int slot = takeSlot();
            slots[slot] = owner;
            boolean isAdded = false;
            try {
                long token = (long) generations[slot] << 32 | slot;
                int added = Native.epollControl(epoll, ADD, fd, events, token);
                if (added < 0) {
                    throw Errors.of("epoll_ctl", added);
                }
                isAdded = true;
                return token;
            } finally {
                if (!isAdded) {
                    release(slot);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /** All arrays grow, or none does. */
    private int takeSlot() {
        if (freeCount > 0) {
            return free[--freeCount];
        }
        if (used == slots.length) {
            Watched[] moreSlots = Arrays.copyOf(slots, 2 * used);
            Faults.at("slots");
            int[] moreGenerations = Arrays.copyOf(generations, 2 * used);
            free = Arrays.copyOf(free, 2 * used);
            slots = moreSlots;
            generations = moreGenerations;
        }
        return used++;
    }

    void change(int fd, int events, long token) {
        Native.epollControl(epoll, CHANGE, fd, events, token);
    }

    /** Before the socket is closed. A call of the owner that is under way may go on meanwhile. */
    void remove(int fd, long token) {
        lock.lock();
        try {
            int slot = (int) token;
            if (generations[slot] == (int) (token >>> 32)) {
                Native.epollControl(epoll, REMOVE, fd, 0, 0);
                release(slot);
            }
        } finally {
            lock.unlock();
        }
    }

    private void release(int slot) {
        slots[slot] = null;
        generations[slot] = (generations[slot] + 1) & 0x7fffffff;
        free[freeCount++] = slot;
    }

    void addTimed(Timed one) {
        lock.lock();
        try {
            timed.add(one);
        } finally {
            lock.unlock();
        }
    }

    void removeTimed(Timed one) {
        lock.lock();
        try {
            timed.remove(one);
        } finally {
            lock.unlock();
        }
    }

    private Watched owner(long token) {
        lock.lock();
        try {
            int slot = (int) token;
            return generations[slot] == (int) (token >>> 32) ? slots[slot] : null;
        } finally {
            lock.unlock();
        }
    }

    /** For ever. What one owner throws ends that owner, and nothing else. */
    private void run(int its) {
        long[] tokens = null;
        int[] events = null;
        int wait = TICK_MS;
        for (;;) {
            try {
                // An interrupt is of no use to this thread, and would close the pipe that a selector waits for.
                Thread.interrupted();
                if (events == null) {
                    tokens = new long[BATCH];
                    events = new int[BATCH];
                }
                int count = Native.epollWait(its, tokens, events, wait);
                // Until all have been asked for their next deadline.
                wait = TICK_MS;
                for (int i = 0; i < count; ++i) {
                    call(tokens[i], events[i]);
                }
                if (count < 0 && count != -Errors.EINTR) {
                    pause();
                }
                wait = untilNextDeadline();
            } catch (Throwable error) {
                pause();
            }
        }
    }

    private void call(long token, int events) {
        Watched found = owner(token);
        if (found == null) {
            return;
        }
        try {
            Faults.at(name);
            found.onReady(events);
        } catch (Throwable error) {
            try {
                found.onFailure(error);
            } catch (Throwable again) {
                pause();
            }
        }
    }

    /** After a failure that may come again at once. */
    private static void pause() {
        LockSupport.parkNanos(TICK_MS * 1_000_000L);
    }

    /** The next wait, in milliseconds. */
    private int untilNextDeadline() {
        Timed[] all;
        lock.lock();
        try {
            if (timed.isEmpty()) {
                return -1;
            }
            all = timed.toArray(new Timed[0]);
        } finally {
            lock.unlock();
        }
        long now = System.nanoTime();
        boolean hasDeadline = false;
        for (Timed each : all) {
            try {
                hasDeadline |= each.expire(now) != Long.MAX_VALUE;
            } catch (RuntimeException | Error error) {
                hasDeadline = true;
            }
        }
        return hasDeadline ? TICK_MS : -1;
    }
}
