// Threads of a connection that wait, and their wake-ups by this side.
package io.eddy.shm;

import java.util.concurrent.locks.LockSupport;

/** One thread that reads, and one that writes. Each sets its own fields; the methods are for any thread. */
final class Waiters {
    /** Whether a reader, or a writer, sleeps by futex(2), or is about to. */
    volatile boolean isReaderAsleep;
    volatile boolean isWriterAsleep;
    /** Those that park, or null. */
    volatile Thread reader;
    volatile Thread writer;
    /** Null over the socket, where all park. */
    private final Sender out;
    private final Receiver in;

    Waiters(Sender out, Receiver in) {
        this.out = out;
        this.in = in;
    }

    void unpark() {
        LockSupport.unpark(reader);
        LockSupport.unpark(writer);
    }

    /** Until it has woken from its sleep. */
    void wakeWriter() {
        while (isWriterAsleep) {
            Sleeper.wake(out.bellAddress());
        }
    }

    void wakeReader() {
        while (isReaderAsleep) {
            Sleeper.wake(in.bellAddress());
        }
    }
}
