// Writing half of a connection's shared memory: src/shm/channel.hpp in Java.
package io.eddy.shm;

import java.io.IOException;
import java.lang.invoke.VarHandle;
import java.net.SocketException;
import java.nio.ByteBuffer;

/** Fields that keep those of the sender apart from its neighbours' cache lines. */
class SenderPadding {
    long p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11, p12, p13, p14, p15;
}

class SenderState extends SenderPadding {
    /** End of what was appended. */
    long position;
    /** End of what was published. */
    long published;
    /** Position up to which the peer has read, as last seen and checked. */
    long tail;
    int epoch;
    int woken;
}

/**
 * The ring that this side writes. Publishing stores a position and then loads the peer's word of waiting; a side that
 * goes to sleep stores that word and then loads the position. With a fence between on both sides, one of them sees the
 * other. One thread at a time.
 */
final class Sender extends SenderState {
    long q00, q01, q02, q03, q04, q05, q06, q07, q08, q09, q10, q11, q12, q13, q14, q15;

    private final Memory own;
    private final Memory peer;
    private final boolean isAsymmetric;
    private final int size;
    private final int mask;
    /** Ends of the packets that the peer may not have read, a ring; null without a limit. */
    private final long[] packets;
    private int firstPacket;
    private int packetCount;

    Sender(Memory own, Memory peer, long begin, boolean isAsymmetric, int maxPackets) {
        this.own = own;
        this.peer = peer;
        this.isAsymmetric = isAsymmetric;
        size = own.ringSize;
        mask = own.ringSize - 1;
        packets = maxPackets > 0 ? new long[maxPackets] : null;
        position = begin;
        published = begin;
        tail = begin;
        own.setRelease(Layout.HEAD, begin);
    }

    private int free() {
        return size - (int) (position - tail);
    }

    /** The peer's position, only between the last one and what is possible. */
    private void loadTail() throws IOException {
        long found = peer.getAcquire(Layout.TAIL);
        if (Long.compareUnsigned(found - tail, position - tail) > 0) {
            throw new SocketException("Connection reset: the peer broke the protocol");
        }
        tail = found;
    }

    private boolean hasPacketRoom() {
        if (packets == null || position != published) {
            return true;
        }
        // Nothing unread lies further back than the whole ring, so the difference orders them.
        while (packetCount > 0
                && Long.compareUnsigned(position - packets[firstPacket], position - tail) >= 0) {
            firstPacket = (firstPacket + 1) % packets.length;
            --packetCount;
        }
        return packetCount < packets.length;
    }

    /** Free bytes, of which at least {@code wanted} are looked for; 0 at either limit. */
    int room(int wanted) throws IOException {
        if (free() < wanted || !hasPacketRoom()) {
            loadTail();
            if (!hasPacketRoom()) {
                return 0;
            }
        }
        return free();
    }

    /** Copies as much as there is room for, unpublished. */
    int append(byte[] bytes, int from, int length) throws IOException {
        int count = Math.min(room(length), length);
        if (count > 0) {
            own.put((int) position & mask, bytes, from, count);
            position += count;
        }
        return count;
    }

    int append(ByteBuffer bytes) throws IOException {
        int count = Math.min(room(bytes.remaining()), bytes.remaining());
        if (count > 0) {
            own.put((int) position & mask, bytes, count);
            position += count;
        }
        return count;
    }

    /** Index of the ring where the next bytes go. */
    int index() {
        return (int) position & mask;
    }

    void advance(int count) {
        if (count < 0 || count > free()) {
            throw new IllegalArgumentException("more bytes than there is room for");
        }
        position += count;
    }

    boolean hasUnpublished() {
        return position != published;
    }

    /** Publishes what was appended: one packet. True when the peer has to be woken. */
    boolean publish() {
        if (packets != null && position != published) {
            packets[(firstPacket + packetCount) % packets.length] = position;
            ++packetCount;
        }
        published = position;
        own.setRelease(Layout.HEAD, position);
        fence();
        return sleeps();
    }

    /** No bytes follow those published. True when the peer has to be woken. */
    boolean finish() {
        own.setRelease(Layout.END, position + 1);
        fence();
        return sleeps();
    }

    boolean isFinished() {
        return own.getAcquire(Layout.END) != 0;
    }

    private void fence() {
        if (isAsymmetric) {
            Fences.light();
        } else {
            VarHandle.fullFence();
        }
    }

    private boolean sleeps() {
        int found = peer.getIntOpaque(Layout.READER);
        if ((found & 1) == 0 || found == woken) {
            return false;
        }
        woken = found;
        return true;
    }

    /** Announces that this side waits for room, until disarm(). Room is to be looked for after that. */
    void arm() {
        epoch += (epoch & 1) == 0 ? 1 : 2;
        own.setIntOpaque(Layout.WRITER, epoch);
        if (isAsymmetric) {
            Fences.heavy();
        } else {
            VarHandle.fullFence();
        }
    }

    void disarm() {
        if ((epoch & 1) == 1) {
            own.setIntOpaque(Layout.WRITER, ++epoch);
        }
    }

    /** The word of the peer on which this side sleeps by futex(2). */
    long bellAddress() {
        return peer.address(Layout.WRITER_BELL);
    }

    int bell() {
        return peer.getIntAcquire(Layout.WRITER_BELL);
    }

    /** Wakes a peer that sleeps by futex(2) for bytes. */
    void ringFutex() {
        own.incrementRelease(Layout.READER_BELL);
        Native.futexWake(own.address(Layout.READER_BELL));
    }

    int peerProcessor() {
        return peer.getIntOpaque(Layout.CPU);
    }

    /** The ring as a buffer to write to. */
    ByteBuffer view() {
        return own.view();
    }

    Memory memory() {
        return own;
    }
}
