// Thread that waits for sockets of connections and listeners: epoll(7).
package io.eddy.shm;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/** One daemon thread that calls what it watches. Any thread may add and remove. */
final class Watcher {
    /** A socket's owner. Called on the watcher's thread; it must not block. */
    interface Watched {
        void onReady(int events);
    }

    /** What has deadlines. Called on the watcher's thread; it must not block. */
    interface Timed {
        /** Ends what is late; returns System.nanoTime() of the next deadline, or Long.MAX_VALUE for none. */
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
        epoll = made;
        Thread thread = new Thread(this::run, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Watches a socket, level-triggered. Returns a token for change() and remove(). */
    long add(int fd, int events, Watched owner) throws IOException {
        lock.lock();
        try {
            start();
            int slot = freeCount > 0 ? free[--freeCount] : used++;
            if (slot == slots.length) {
                slots = Arrays.copyOf(slots, 2 * slot);
                generations = Arrays.copyOf(generations, 2 * slot);
                free = Arrays.copyOf(free, 2 * slot);
            }
            slots[slot] = owner;
            long token = (long) generations[slot] << 32 | slot;
            int added = Native.epollControl(epoll, ADD, fd, events, token);
            if (added < 0) {
                release(slot);
                throw Errors.of("epoll_ctl", added);
            }
            return token;
        } finally {
            lock.unlock();
        }
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

    private void run() {
        long[] tokens = new long[BATCH];
        int[] events = new int[BATCH];
        int wait = -1;
        for (;;) {
            int count = Native.epollWait(epoll, tokens, events, wait);
            for (int i = 0; i < count; ++i) {
                Watched found = owner(tokens[i]);
                if (found != null) {
                    found.onReady(events[i]);
                }
            }
            wait = untilNextDeadline();
        }
    }

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
            hasDeadline |= each.expire(now) != Long.MAX_VALUE;
        }
        return hasDeadline ? TICK_MS : -1;
    }
}
