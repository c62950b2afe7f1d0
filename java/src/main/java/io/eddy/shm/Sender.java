// Writing half of a connection's shared memory: src/shm/channel.hpp in Java.
package io.eddy.shm;

import java.io.IOException;
import java.net.SocketException;
import java.nio.ByteBuffer;

abstract class SenderState extends Direction {
    /** End of what was published. */
    long published;
    /** Position up to which the peer has read, as last seen and checked. */
    long tail;
    /** End of the free bytes whose cache lines were taken from the peer; behind the position if there are none. */
    long claimed;
    /** Bytes of the packet that was published last. */
    long lastPacket;

    SenderState(Memory own, Memory peer, long begin, boolean isAsymmetric) {
        super(own, peer, own, begin, isAsymmetric);
        published = begin;
        tail = begin;
        claimed = begin;
    }
}

/** The ring that this side writes; {@code position} is the end of what was appended. One thread at a time. */
final class Sender extends SenderState {
    long q00, q01, q02, q03, q04, q05, q06, q07, q08, q09, q10, q11, q12, q13, q14, q15;

    /** Messages up to this size are small: most of what a call stores is not their bytes. */
    private static final int SMALL = 512;
    /** Bytes whose cache lines are taken at once. */
    private static final int CLAIM = 1024;
    /** Longest packet for whose successor they are taken. */
    private static final int PREPARED = 4096;
    private static final int CACHE_LINE = 64;

    /** Ends of the packets that the peer may not have read, a ring; null without a limit. */
    private final long[] packets;
    /** The peer keeps packets apart: it finds their ends in the own memory. */
    private final boolean keepsPackets;
    /** Number of the next packet, for the place of its end. */
    private int nextPacket;
    /** Of the last noteTail(); read by other threads. */
    private volatile long armedTail;
    private final long begin;
    private int firstPacket;
    private int packetCount;

    /** {@code maxPackets}: 0 for no limit; where packets are kept apart, 1 to Layout.MOST_PACKETS. */
    Sender(Memory own, Memory peer, long begin, boolean isAsymmetric, int maxPackets, boolean keepsPackets) {
        super(own, peer, begin, isAsymmetric);
        this.begin = begin;
        this.keepsPackets = keepsPackets;
        packets = maxPackets > 0 ? new long[maxPackets] : null;
        own.setRelease(Layout.HEAD, begin);
    }

    private int free() {
        return size - (int) (position - tail);
    }

    /** The peer's position, only between the last one and what is possible. */
    private void loadTail() throws IOException {
        long found = peer.getAcquire(Layout.TAIL);
        if (Long.compareUnsigned(found - tail, position - tail) > 0) {
            if (found == 0 && tail == begin) {
                return; // The peer has not had the HELLO yet.
            }
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

    /** Whether there is so much within so many polls. */
    boolean hasRoomWithin(int polls, int wanted) throws IOException {
        for (int i = 0; i < polls; ++i) {
            if (room(wanted) >= wanted) {
                return true;
            }
            Thread.onSpinWait();
        }
        return false;
    }

    /** Copies as much as there is room for, unpublished. */
    int append(byte[] bytes, int from, int length) throws IOException {
        int count = span(Math.min(room(length), length));
        if (count > 0) {
            // The second message of a packet and those behind it: a single one comes first.
            if (count <= SMALL && position != published && position + count - claimed > 0) {
                claim(CLAIM);
            }
            own.put(index(), bytes, from, count);
            position += count;
        }
        return count;
    }

    /**
     * Takes cache lines of free bytes from the peer, which has read what stood there before, by a store to each of them: all
     * at once. A processor commits its stores in order, so the few lines of a small message would be waited for by
     * themselves. The line in which the own position lies is left alone.
     */
    private void claim(int count) {
        long begin = claimed - position > 0 ? claimed : position;
        long end = Math.min(position + count, tail + size) & -CACHE_LINE;
        for (begin = (begin + CACHE_LINE - 1) & -CACHE_LINE; end - begin > 0; begin += CACHE_LINE) {
            own.clearLong((int) begin & mask);
        }
        claimed = begin;
    }

    /**
     * While there is nothing else to do: takes the cache lines that a packet as long as the last one will need. The line in
     * which the last one ends is the peer's now, which is about to read it.
     */
    void prepareNext() {
        if (lastPacket <= PREPARED && position == published) {
            claim((int) lastPacket);
        }
    }

    int append(ByteBuffer bytes) throws IOException {
        int count = span(Math.min(room(bytes.remaining()), bytes.remaining()));
        if (count > 0) {
            own.put(index(), bytes, count);
            position += count;
        }
        return count;
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

    boolean keepsPackets() {
        return keepsPackets;
    }

    /** Of the packet that is not published yet. */
    long packetSize() {
        return position - published;
    }

    boolean isFullOfUnpublished() {
        return position - published == size;
    }

    /** Publishes what was appended: one packet. True when the peer has to be woken. */
    boolean publish() {
        if (packets != null && position != published) {
            packets[(firstPacket + packetCount) % packets.length] = position;
            ++packetCount;
            if (keepsPackets) {
                own.setRelease(Layout.packetEnd(nextPacket++), position);
            }
        }
        lastPacket = position - published;
        published = position;
        own.setRelease(Layout.HEAD, position);
        return isPeerAsleep();
    }

    /** No bytes follow those published. True when the peer has to be woken. */
    boolean finish() {
        own.setRelease(Layout.END, position + 1);
        return isPeerAsleep();
    }

    boolean isFinished() {
        return own.getAcquire(Layout.END) != 0;
    }

    /** After announce(): there was no room up to here. */
    void noteTail() {
        armedTail = tail;
    }

    /** Whether the peer has read since noteTail(). Any thread that keeps the memory mapped. */
    boolean hasComeSinceArmed(boolean isPeerGone) {
        return isAnnounced() && (isPeerGone || peer.getAcquire(Layout.TAIL) != armedTail);
    }

    /** The ring as a buffer to write to. */
    ByteBuffer view() {
        return own.view();
    }

    Memory memory() {
        return own;
    }
}
