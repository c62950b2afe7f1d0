// Exclusion of one direction's calls, and of the end of the mapping that they use.
package io.eddy.shm;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.net.SocketException;
import java.util.concurrent.locks.LockSupport;

/**
 * A lock for the calls of one direction, made for one thread at a time: entering is one atomic operation, leaving is a
 * store. Other threads that come meanwhile wait by polling. Once closed, nothing enters.
 */
final class Guard {
    private static final int FREE = 0;
    private static final int BUSY = 1;
    private static final int CLOSED = 2;
    /** Polls before a waiting thread pauses, and its longest pause. */
    private static final int POLLS = 200;
    private static final long LONGEST_PAUSE_NS = 1_000_000;
    private static final VarHandle STATE;

    static {
        try {
            STATE = MethodHandles.lookup().findVarHandle(Guard.class, "state", int.class);
        } catch (ReflectiveOperationException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    @SuppressWarnings("unused") // by STATE
    private volatile int state;

    /** Fails with a SocketException once closed. */
    void enter() throws SocketException {
        if (!STATE.compareAndSet(this, FREE, BUSY) && !take(BUSY)) {
            throw new SocketException("Socket closed");
        }
    }

    /** False while another thread is in, or once closed. */
    boolean tryEnter() {
        return STATE.compareAndSet(this, FREE, BUSY);
    }

    void exit() {
        STATE.setRelease(this, FREE);
    }

    /** Waits for the call under way. False if it was closed before. */
    boolean close() {
        return take(CLOSED);
    }

    private boolean take(int as) {
        boolean interrupted = false;
        long pause = 1_000;
        for (int i = 0;; ++i) {
            int found = (int) STATE.getAcquire(this);
            if (found == CLOSED || (found == FREE && STATE.compareAndSet(this, FREE, as))) {
                if (interrupted) {
                    Thread.currentThread().interrupt();
                }
                return found != CLOSED;
            }
            if (i < POLLS) {
                Thread.onSpinWait();
                continue;
            }
            LockSupport.parkNanos(this, pause);
            pause = Math.min(2 * pause, LONGEST_PAUSE_NS);
            interrupted |= Thread.interrupted();
        }
    }
}
