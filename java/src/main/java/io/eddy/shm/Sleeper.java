// Sleeps of a connection's threads: by parking and by futex(2), with interrupts put off.
package io.eddy.shm;

import java.io.IOException;
import java.net.SocketException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/** Interrupts of virtual threads end a sleep with a SocketException; those of others, restoreInterrupt() restores. Any thread. */
final class Sleeper {
    /** Platform threads that sleep by futex(2) for virtual ones, each of which would keep its carrier. */
    private static final class Helpers {
        static final ExecutorService POOL = Executors.newCachedThreadPool(work -> {
            Thread thread = new Thread(work, "eddy-shm-sleeper");
            thread.setDaemon(true);
            return thread;
        });
    }

    /** Set for a thread that was interrupted while it waited, which does not end. */
    private static final ThreadLocal<Boolean> IS_INTERRUPT_PENDING = new ThreadLocal<>();

    /** Whether a thread has set it here: cheaper to read, and each thread sees what it wrote itself. */
    private boolean hadInterrupts;

    /** Parks until the deadline, an unpark, or for no reason. */
    void park(Object blocker, long deadline) throws IOException {
        boolean wasInterrupted = Thread.interrupted();
        if (!wasInterrupted) {
            if (deadline == Connection.NEVER) {
                LockSupport.park(blocker);
            } else {
                LockSupport.parkNanos(blocker, Deadlines.left(deadline));
            }
            wasInterrupted = Thread.interrupted();
        }
        if (!wasInterrupted) {
            return;
        }
        if (Threads.isVirtual()) {
            Thread.currentThread().interrupt();
            throw new SocketException("Closed by interrupt");
        }
        IS_INTERRUPT_PENDING.set(true);
        hadInterrupts = true;
    }

    /** Sleeps on a word of the peer while it has this value. */
    static void sleepOn(long address, int seen, long deadline) {
        long nanos = Deadlines.left(deadline);
        if (Threads.isVirtual()) {
            CompletableFuture.runAsync(() -> Native.futexWait(address, seen, nanos), Helpers.POOL).join();
        } else {
            Native.futexWait(address, seen, nanos);
        }
    }

    /** Once a call is over: the interrupt that was put off. */
    void restoreInterrupt() {
        if (hadInterrupts && IS_INTERRUPT_PENDING.get() != null) {
            IS_INTERRUPT_PENDING.remove();
            Thread.currentThread().interrupt();
        }
    }
}
