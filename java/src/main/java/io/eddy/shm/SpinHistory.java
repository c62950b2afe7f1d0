// Decision of a thread whether, and how long, to spin before it sleeps: src/shm/spinning.hpp in Java.
package io.eddy.shm;

/** What the waits of one direction have brought. One thread at a time. */
final class SpinHistory {
    /** Longest spin before a sleep, about twice what a wake-up costs on other processors. */
    static final long MAX_SPIN_NS = 50_000;
    private static final long LEAST_NS = 2_000;
    /** One wait for a peer that another program kept from running says little about the next ones. */
    private static final long LONGEST_COUNTED_NS = 2 * MAX_SPIN_NS;
    private static final int RETRY_EVERY = 64;

    private final ShmOptions.Waiting how;
    private long average;
    private int skipped;
    /** The last wait found that spinning keeps the peer from running. */
    private boolean isInTheWay;

    SpinHistory(ShmOptions.Waiting how) {
        this.how = how;
        isInTheWay = how == ShmOptions.Waiting.SLEEP || (how == ShmOptions.Waiting.ADAPTIVE && Threads.SPINNING_TAKES_TURNS);
    }

    /** Whether the first polls, before the clock is read, are worth it. */
    boolean mayPoll() {
        return !isInTheWay;
    }

    /** Nanoseconds to spin now; {@code peer} is 1 + the peer's processor, or 0. */
    long budget(int peer) {
        if (how == ShmOptions.Waiting.SPIN) {
            return Long.MAX_VALUE;
        }
        isInTheWay = how == ShmOptions.Waiting.SLEEP || Threads.SPINNING_TAKES_TURNS
                || (peer != 0 && peer == Native.processor() + 1);
        if (isInTheWay) {
            return 0;
        }
        // What takes longer than a wake-up costs is not worth the time, but it may change.
        if (average > MAX_SPIN_NS && ++skipped % RETRY_EVERY != 0) {
            return 0;
        }
        return Math.min(2 * average + LEAST_NS, MAX_SPIN_NS);
    }

    /** A wait took so long. */
    void note(long nanos) {
        average += (Math.min(nanos, LONGEST_COUNTED_NS) - average) / 8;
    }
}
