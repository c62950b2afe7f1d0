// Asymmetric fences of this process, membarrier(2): one side of a pair of fences costs nothing, the other one pays for both.
package io.eddy.shm;

import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicBoolean;

/** Registration for asymmetric fences, and both of their sides. Any thread. */
final class Fences {
    private static final AtomicBoolean IS_BEGUN = new AtomicBoolean();
    private static volatile boolean isReady;

    private Fences() {}

    /** Whether this process can be part of asymmetric fences, from now on. The first call may take 20 ms. */
    static boolean register() {
        if (!isReady) {
            isReady = Native.registerFence();
        }
        return isReady;
    }

    /** Whether it is registered; else a thread of its own begins to register it. */
    static boolean isReady() {
        if (!isReady && !IS_BEGUN.get() && IS_BEGUN.compareAndSet(false, true)) {
            try {
                Threads.start("eddy-shm-fence", Fences::register);
            } catch (OutOfMemoryError noThread) {
                // Without fences, each entry of a guard is an atomic operation. It is tried again.
                IS_BEGUN.set(false);
            }
        }
        return isReady;
    }

    /**
     * The side that costs nothing: between a store and a load that must not change places. The virtual machine's compilers move
     * no access to memory across a fence of any kind, and the processors execute theirs in {@link #heavy}.
     */
    static void light() {
        VarHandle.acquireFence();
    }

    /** The other side: a fence in all threads of all processes that are registered. */
    static void heavy() {
        VarHandle.fullFence();
        Native.fenceEverywhere();
    }
}
