// Sleeps of a connection's threads: by parking and by futex(2), with interrupts put off.
package io.eddy.shm;

import java.io.IOException;
import java.net.SocketException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/** Interrupts of virtual threads close the connection, as they do with a Socket; those of others, restoreInterrupt() restores. Any thread. */
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

    /** Time in which a thread that was about to sleep has gone to sleep. */
    private static final long WAKE_AGAIN_NS = 20_000;

    private final Connection connection;

    Sleeper(Connection connection) {
        this.connection = connection;
    }

    /** {@code otherwise}: what is done here where no thread can be started; the garbage collector frees the rest. */
    static void inHelper(Runnable work, Runnable otherwise) {
        try {
            Helpers.POOL.execute(work);
        } catch (RuntimeException | Error error) {
            otherwise.run();
            throw error;
        }
    }

    /** Parks until the deadline, an unpark, or for no reason. */
    void park(long deadline) throws IOException {
        boolean wasInterrupted = Thread.interrupted();
        if (!wasInterrupted) {
            if (deadline == Connection.NEVER) {
                LockSupport.park(connection);
            } else {
                LockSupport.parkNanos(connection, Deadlines.left(deadline));
            }
            wasInterrupted = Thread.interrupted();
        }
        if (!wasInterrupted) {
            return;
        }
        if (Threads.isVirtual()) {
            throw closedByInterrupt();
        }
        IS_INTERRUPT_PENDING.set(true);
        hadInterrupts = true;
    }

    /** Sleeps on a word of the peer while it has this value. */
    void sleepOn(long address, int seen, long deadline) throws IOException {
        long nanos = Deadlines.left(deadline);
        if (!Threads.isVirtual()) {
            Native.futexWait(address, seen, nanos);
            return;
        }
        CompletableFuture<Void> sleep = CompletableFuture.runAsync(() -> Native.futexWait(address, seen, nanos), Helpers.POOL);
        try {
            sleep.get();
        } catch (ExecutionException error) {
            throw Errors.unchecked(error.getCause());
        } catch (InterruptedException interrupt) {
            while (!sleep.isDone()) {
                wake(address);
            }
            throw closedByInterrupt();
        }
    }

    private SocketException closedByInterrupt() {
        Thread.currentThread().interrupt();
        connection.closeLater();
        return new SocketException("Closed by interrupt");
    }

    /** Wakes all sleepers of a word. A thread that was about to sleep misses one call, so callers repeat it until none is left. */
    static void wake(long address) {
        Native.futexWake(address);
        LockSupport.parkNanos(WAKE_AGAIN_NS);
    }

    /** Once a call is over: the interrupt that was put off. */
    void restoreInterrupt() {
        if (hadInterrupts && IS_INTERRUPT_PENDING.get() != null) {
            IS_INTERRUPT_PENDING.remove();
            Thread.currentThread().interrupt();
        }
    }
}
