// State and words that both directions of a connection's shared memory have: the base of Sender and Receiver.
package io.eddy.shm;

import java.lang.invoke.VarHandle;

/** Fields that keep those of a direction apart from its neighbours' cache lines. */
class DirectionPadding {
    long p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11, p12, p13, p14, p15;
}

/**
 * One direction, as src/shm/channel.hpp has it. The side that publishes stores a position and then loads the peer's word of
 * waiting; a side that goes to sleep stores that word and then loads the position. With a fence between on both sides, one
 * of them sees the other. One thread at a time.
 */
abstract class Direction extends DirectionPadding {
    /** Of this side. */
    long position;
    /** Of this side's sleep; odd while it is armed. */
    private int epoch;
    /** Of the peer's sleep that it was last woken from. */
    private int woken;
    final Memory own;
    final Memory peer;
    final int size;
    final int mask;
    private final boolean isAsymmetric;
    /** Offsets of the words that this side sleeps by, and of the peer's of the same direction. */
    private final int ownWord;
    private final int ownBell;
    private final int peerWord;
    private final int peerBell;

    /** {@code ring}: of the two, the memory whose ring it is. */
    Direction(Memory own, Memory peer, Memory ring, long begin, boolean isAsymmetric) {
        this.own = own;
        this.peer = peer;
        this.isAsymmetric = isAsymmetric;
        size = ring.ringSize;
        mask = ring.ringSize - 1;
        position = begin;
        boolean writes = ring == own;
        ownWord = writes ? Layout.WRITER : Layout.READER;
        ownBell = writes ? Layout.WRITER_BELL : Layout.READER_BELL;
        peerWord = writes ? Layout.READER : Layout.WRITER;
        peerBell = writes ? Layout.READER_BELL : Layout.WRITER_BELL;
    }

    /** Index of the ring of the own position. */
    final int index() {
        return (int) position & mask;
    }

    /** Of so many bytes from the own position on, those that one call can copy, and one view has. */
    final int span(int count) {
        return Math.min(count, Layout.MOST_OF_A_BUFFER - index());
    }

    /** After a position was stored: whether the peer sleeps on it, and was not woken from this sleep yet. */
    final boolean isPeerAsleep() {
        if (isAsymmetric) {
            Fences.light();
        } else {
            VarHandle.fullFence();
        }
        int found = peer.getIntOpaque(peerWord);
        if ((found & 1) == 0 || found == woken) {
            return false;
        }
        woken = found;
        return true;
    }

    /** Announces that this side waits, until disarm(). What it waits for is to be looked for after that. */
    final void announce() {
        epoch += (epoch & 1) == 0 ? 1 : 2;
        own.setIntOpaque(ownWord, epoch);
        if (isAsymmetric) {
            Fences.heavy();
        } else {
            VarHandle.fullFence();
        }
    }

    /** Whether this side waits. Any thread that keeps the memory mapped. */
    final boolean isAnnounced() {
        return (own.getIntOpaque(ownWord) & 1) == 1;
    }

    final void disarm() {
        if ((epoch & 1) == 1) {
            own.setIntOpaque(ownWord, ++epoch);
        }
    }

    /** The word of the peer on which this side sleeps by futex(2). */
    final long bellAddress() {
        return peer.address(ownBell);
    }

    final int bell() {
        return peer.getIntAcquire(ownBell);
    }

    /** Wakes a peer that sleeps by futex(2) on this direction. */
    final void ringFutex() {
        own.incrementRelease(peerBell);
        Native.futexWake(own.address(peerBell));
    }

    final int peerProcessor() {
        return peer.getIntOpaque(Layout.CPU);
    }
}
