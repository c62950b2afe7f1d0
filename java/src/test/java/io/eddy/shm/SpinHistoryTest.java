// Decision of a thread to spin before it sleeps.
package io.eddy.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

class SpinHistoryTest {
    private static final long SHORT_NS = 1_000;
    /** A time slice of another program. */
    private static final long SLICE_NS = 4_000_000;

    private static SpinHistory adaptive() {
        Assumptions.assumeFalse(Threads.SPINNING_TAKES_TURNS, "one processor, or a quota");
        return new SpinHistory(ShmOptions.Waiting.ADAPTIVE);
    }

    private static void note(SpinHistory history, long nanos, int times) {
        for (int i = 0; i < times; ++i) {
            history.note(nanos);
        }
    }

    @Test
    void spinsOnAfterAPeerWasKeptFromRunning() {
        SpinHistory history = adaptive();
        note(history, SHORT_NS, 100);
        for (int i = 0; i < 3; ++i) {
            note(history, SLICE_NS, 1);
            assertTrue(history.budget(0) > 0);
            note(history, SHORT_NS, 20);
        }
    }

    @Test
    void spinsOnlyWhereItHasBeenWorthIt() {
        SpinHistory history = adaptive();
        assertTrue(history.budget(0) > 0 && history.budget(0) <= SpinHistory.MAX_SPIN_NS);
        note(history, SLICE_NS, 100);
        int spins = 0;
        for (int i = 0; i < 640; ++i) {
            spins += history.budget(0) > 0 ? 1 : 0;
        }
        assertEquals(10, spins);
        note(history, SHORT_NS, 100);
        assertTrue(history.budget(0) > 0);
        assertEquals(0, new SpinHistory(ShmOptions.Waiting.SLEEP).budget(0));
        assertEquals(Long.MAX_VALUE, new SpinHistory(ShmOptions.Waiting.SPIN).budget(0));
    }
}
