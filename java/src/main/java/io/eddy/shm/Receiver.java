// Reading half of a connection's shared memory: src/shm/channel.hpp in Java.
package io.eddy.shm;

import java.io.IOException;
import java.net.SocketException;
import java.nio.ByteBuffer;

abstract class ReceiverState extends Direction {
    /** The peer's, as last seen and checked. */
    long head;
    /** Bytes read since the writer was last checked for waiting. */
    int owed;
    /** End of the packet whose bytes are read; the position while none is. */
    long packetEnd;
    /** Number of the packet behind it, for the place of its end. */
    int nextPacket;

    ReceiverState(Memory own, Memory peer, long begin, boolean isAsymmetric) {
        super(own, peer, peer, begin, isAsymmetric);
        head = begin;
        packetEnd = begin;
    }
}

/** The ring that this side reads; {@code position} is up to where it has read. One thread at a time. */
final class Receiver extends ReceiverState {
    long q00, q01, q02, q03, q04, q05, q06, q07, q08, q09, q10, q11, q12, q13, q14, q15;

    private final boolean keepsPackets;
    /** Null once all pages of the peer's ring exist, and of a small ring. */
    private WrittenPages pages;

    Receiver(Memory own, Memory peer, long begin, boolean isAsymmetric, boolean keepsPackets, WrittenPages pages) {
        super(own, peer, begin, isAsymmetric);
        this.pages = pages;
        this.keepsPackets = keepsPackets;
        own.setRelease(Layout.TAIL, begin);
    }

    /** The peer's position, only between the last one and what is possible. */
    private void loadHead() throws IOException {
        long found = peer.getAcquire(Layout.HEAD);
        long unread = found - position;
        if (Long.compareUnsigned(unread, size) > 0 || Long.compareUnsigned(unread, head - position) < 0) {
            throw new SocketException("Connection reset: the peer broke the protocol");
        }
        if (pages != null) {
            checkPages(found);
        }
        head = found;
    }

    /** Reading a page that the peer has not written would allocate it, at this process's cost. */
    private void checkPages(long to) throws IOException {
        if (!pages.reach(to)) {
            throw new SocketException("Connection reset: the peer broke the protocol");
        }
        if (pages.isDone()) {
            pages = null;
        }
    }

    /** Bytes to read; the peer's position is loaded when there seem to be none. */
    int bytes() throws IOException {
        if (position == head) {
            loadHead();
        }
        return (int) (head - position);
    }

    /** Those of them that one read may have: where packets are kept apart, up to the end of the first one. */
    int packetBytes() throws IOException {
        int all = bytes();
        if (!keepsPackets || all == 0) {
            return all;
        }
        if (packetEnd == position) {
            // The writer stored it before the head, and overwrites it once the whole packet was read.
            long end = peer.getAcquire(Layout.packetEnd(nextPacket));
            if (Long.compareUnsigned(end - position - 1, head - position) >= 0) {
                throw new SocketException("Connection reset: the peer broke the protocol");
            }
            packetEnd = end;
            ++nextPacket;
        }
        return (int) (packetEnd - position);
    }

    /** Whether what is read next is the begin of a packet. */
    boolean isBetweenPackets() {
        return keepsPackets && packetEnd == position;
    }

    /** Whether some come within so many polls. */
    boolean comeWithin(int polls) throws IOException {
        for (int i = 0; i < polls; ++i) {
            if (bytes() > 0) {
                return true;
            }
            Thread.onSpinWait();
        }
        return false;
    }

    /** The same with what was published since. */
    int allBytes() throws IOException {
        loadHead();
        return (int) (head - position);
    }

    /** Whether the peer has finished, and everything was read. */
    boolean isAtEnd() throws IOException {
        long end = peer.getAcquire(Layout.END);
        if (end == 0) {
            return false;
        }
        loadHead();
        if (end != head + 1) {
            throw new SocketException("Connection reset: the peer broke the protocol");
        }
        return position == head;
    }

    /** Copies what is there; 0 while there is nothing. Followed by consume(). */
    int copy(byte[] into, int from, int length) throws IOException {
        int count = span(Math.min(packetBytes(), length));
        if (count > 0) {
            peer.get(index(), into, from, count);
        }
        return count;
    }

    int copy(ByteBuffer into) throws IOException {
        int count = span(Math.min(packetBytes(), into.remaining()));
        if (count > 0) {
            peer.get(index(), into, count);
        }
        return count;
    }

    /** Returns the room of the first bytes. True when the peer has to be woken. */
    boolean consume(int count) {
        if (count < 0 || count > (keepsPackets ? packetEnd : head) - position) {
            throw new IllegalArgumentException("more bytes than there are");
        }
        position += count;
        own.setRelease(Layout.TAIL, position);
        owed += count;
        // Steps of a quarter of the ring, so that the fence is rare.
        return owed > mask / 4 && settle();
    }

    /** Whether the peer sleeps on room that it got since this was last checked, and has to be woken. */
    boolean settle() {
        if (owed == 0) {
            return false;
        }
        owed = 0;
        return isPeerAsleep();
    }

    /** Announces that this side waits for bytes, until disarm(). True when the peer has to be woken. */
    boolean arm() {
        announce();
        return settle();
    }

    /** Whether the peer has published, or ended, since arm(). Any thread that keeps the memory mapped. */
    boolean hasComeSinceArmed(boolean isPeerGone) {
        return isAnnounced() && (isPeerGone || peer.getAcquire(Layout.HEAD) != own.getAcquire(Layout.TAIL)
                || peer.getAcquire(Layout.END) != 0);
    }

    void setProcessor(int number) {
        own.setIntOpaque(Layout.CPU, number + 1);
    }

    /** The ring as a buffer to read from. */
    ByteBuffer view() {
        return peer.view().asReadOnlyBuffer();
    }

    Memory memory() {
        return peer;
    }
}
