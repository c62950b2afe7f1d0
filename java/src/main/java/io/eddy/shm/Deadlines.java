// Deadlines of calls that wait, as System.nanoTime() counts.
package io.eddy.shm;

import java.time.Duration;

/** Conversions; Connection.NEVER is no deadline. */
final class Deadlines {
    private Deadlines() {}

    /** Of a socket's timeout, which is 0 for none. */
    static long limit(int milliseconds) {
        return milliseconds == 0 ? Connection.NEVER : milliseconds * 1_000_000L;
    }

    /** Connection.NEVER where it is longer than the clock counts. */
    static long limit(Duration limit) {
        try {
            return limit.toNanos();
        } catch (ArithmeticException tooLong) {
            return limit.isNegative() ? 0 : Connection.NEVER;
        }
    }

    static long of(long nanos) {
        if (nanos == Connection.NEVER) {
            return Connection.NEVER;
        }
        long deadline = System.nanoTime() + nanos;
        return deadline == Connection.NEVER ? deadline - 1 : deadline;
    }

    static long left(long deadline) {
        return deadline == Connection.NEVER ? Connection.NEVER : Math.max(deadline - System.nanoTime(), 0);
    }

    static boolean isLate(long deadline, long now) {
        return deadline != Connection.NEVER && now - deadline >= 0;
    }
}
