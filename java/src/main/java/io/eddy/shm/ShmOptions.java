// Options of connections and listeners over shared memory.
package io.eddy.shm;

import java.time.Duration;
import java.util.Set;

/** Options of both sides of a connection. Immutable: each {@code with…} method returns a changed copy. */
public final class ShmOptions {
    /** How a thread waits for its peer. */
    public enum Waiting {
        /** Spins as long as that has been worth it lately, at most 50 µs; then sleeps. */
        ADAPTIVE,
        /** Never sleeps: the lowest latency, for a processor. */
        SPIN,
        /** Sleeps at once. */
        SLEEP
    }

    /** How the peer wakes this side. */
    public enum Doorbell {
        /** SOCKET if the thread that connects, or that makes the listener, is virtual; else FUTEX. */
        AUTO,
        /** By futex(2): the fastest wake-up of platform threads. A virtual thread has a platform thread wait for it. */
        FUTEX,
        /** By a byte on the Unix socket: for virtual threads and selectors. One thread of the process reads it. */
        SOCKET
    }

    /** Bytes of a ring at least. */
    public static final int MIN_RING_SIZE = Layout.MIN_RING;
    /** Bytes of a ring at most. */
    public static final int MAX_RING_SIZE = Layout.MAX_RING;
    /** Largest limit of packets. */
    public static final int MOST_PACKETS = 1024 * 1024;
    /** Packets that may be unread where {@link #withPackets} keeps them apart. */
    public static final int MOST_KEPT_PACKETS = Layout.MOST_PACKETS;

    /** The defaults. */
    public static final ShmOptions DEFAULT = new ShmOptions(Layout.DEFAULT_RING, 0, Waiting.ADAPTIVE, Doorbell.AUTO,
            false, true, false, Duration.ofSeconds(5), 0, Set.of(), Set.of());

    final int ringSize;
    final int maxPackets;
    final Waiting waiting;
    final Doorbell doorbell;
    final boolean hasAsymmetricFence;
    final boolean sharesMemory;
    final boolean keepsPackets;
    final Duration handshakeTimeout;
    final long firstPosition;
    final Set<Integer> allowedUsers;
    final Set<Integer> serverUsers;

    private ShmOptions(int ringSize, int maxPackets, Waiting waiting, Doorbell doorbell, boolean hasAsymmetricFence,
            boolean sharesMemory, boolean keepsPackets, Duration handshakeTimeout, long firstPosition, Set<Integer> allowedUsers,
            Set<Integer> serverUsers) {
        this.ringSize = ringSize;
        this.maxPackets = maxPackets;
        this.waiting = waiting;
        this.doorbell = doorbell;
        this.hasAsymmetricFence = hasAsymmetricFence;
        this.sharesMemory = sharesMemory;
        this.keepsPackets = keepsPackets;
        this.handshakeTimeout = handshakeTimeout;
        this.firstPosition = firstPosition;
        this.allowedUsers = allowedUsers;
        this.serverUsers = serverUsers;
    }

    /**
     * Bytes that may be sent and not yet read, 256 KiB by default; the other side chooses its own. Memory is used as far
     * as bytes have been written to it.
     *
     * @throws IllegalArgumentException unless it is a power of two from {@link #MIN_RING_SIZE} to {@link #MAX_RING_SIZE}
     */
    public ShmOptions withRingSize(int bytes) {
        if (!Layout.isRingSize(bytes)) {
            throw new IllegalArgumentException("a ring cannot have " + bytes + " bytes");
        }
        return new ShmOptions(bytes, maxPackets, waiting, doorbell, hasAsymmetricFence, sharesMemory, keepsPackets, handshakeTimeout,
                firstPosition, allowedUsers, serverUsers);
    }

    /** Flushes that the peer may not have read, at most; 0, the default, for no limit. */
    public ShmOptions withMaxPackets(int packets) {
        if (packets < 0 || packets > MOST_PACKETS) {
            throw new IllegalArgumentException("the limit of packets cannot be " + packets);
        }
        return new ShmOptions(ringSize, packets, waiting, doorbell, hasAsymmetricFence, sharesMemory, keepsPackets, handshakeTimeout,
                firstPosition, allowedUsers, serverUsers);
    }

    /** How this side waits. */
    public ShmOptions withWaiting(Waiting how) {
        return new ShmOptions(ringSize, maxPackets, how, doorbell, hasAsymmetricFence, sharesMemory, keepsPackets, handshakeTimeout,
                firstPosition, allowedUsers, serverUsers);
    }

    /** How the peer wakes this side. */
    public ShmOptions withDoorbell(Doorbell kind) {
        return new ShmOptions(ringSize, maxPackets, waiting, kind, hasAsymmetricFence, sharesMemory, keepsPackets, handshakeTimeout,
                firstPosition, allowedUsers, serverUsers);
    }

    /**
     * Whether publishing needs no fence where the peer allows it, too: a side that goes to sleep pays for both with a
     * system call, membarrier(2). For senders of very many small messages.
     */
    public ShmOptions withAsymmetricFence(boolean wanted) {
        return new ShmOptions(ringSize, maxPackets, waiting, doorbell, wanted, sharesMemory, keepsPackets, handshakeTimeout,
                firstPosition, allowedUsers, serverUsers);
    }

    /** False: the bytes go over the Unix socket. For tests and comparisons. */
    public ShmOptions withSharedMemory(boolean wanted) {
        return new ShmOptions(ringSize, maxPackets, waiting, doorbell, hasAsymmetricFence, wanted, keepsPackets, handshakeTimeout,
                firstPosition, allowedUsers, serverUsers);
    }

    /**
     * Packets as messages: a read ends at the end of a packet, that is of a flush or of a write of a stream, and a later one
     * takes what the buffer had no room for. Of both sides: a connection with a peer without the option, as every peer in C++
     * is, fails in its handshake with an IOException, and so does one without shared memory. A packet is not longer than its
     * sender's ring; at most {@link #MOST_KEPT_PACKETS} are unread, or as many as {@link #withMaxPackets} allows. False by
     * default: bytes are a stream.
     */
    public ShmOptions withPackets(boolean wanted) {
        return new ShmOptions(ringSize, maxPackets, waiting, doorbell, hasAsymmetricFence, sharesMemory, wanted, handshakeTimeout,
                firstPosition, allowedUsers, serverUsers);
    }

    /** Time for the exchange of the first messages, 5 s by default. */
    public ShmOptions withHandshakeTimeout(Duration limit) {
        return new ShmOptions(ringSize, maxPackets, waiting, doorbell, hasAsymmetricFence, sharesMemory, keepsPackets, limit,
                firstPosition, allowedUsers, serverUsers);
    }

    /** Where the positions of the own ring begin, 0 or more; for tests. */
    public ShmOptions withFirstPosition(long position) {
        if (position < 0) {
            throw new IllegalArgumentException("the first position must not be negative");
        }
        return new ShmOptions(ringSize, maxPackets, waiting, doorbell, hasAsymmetricFence, sharesMemory, keepsPackets, handshakeTimeout,
                position, allowedUsers, serverUsers);
    }

    /** Effective users whose processes may connect to a listener; the own one and root if it is empty, the default. */
    public ShmOptions withAllowedUsers(Set<Integer> users) {
        return new ShmOptions(ringSize, maxPackets, waiting, doorbell, hasAsymmetricFence, sharesMemory, keepsPackets, handshakeTimeout,
                firstPosition, Set.copyOf(users), serverUsers);
    }

    /**
     * Effective users whose server a client connects to; the own one and root if it is empty, the default. Any process
     * may take the name of a server that does not run. A server of another user is a ConnectException.
     */
    public ShmOptions withServerUsers(Set<Integer> users) {
        return new ShmOptions(ringSize, maxPackets, waiting, doorbell, hasAsymmetricFence, sharesMemory, keepsPackets, handshakeTimeout,
                firstPosition, allowedUsers, Set.copyOf(users));
    }

    /** Packets that the peer may not have read; 0 for no limit. */
    int packetLimit() {
        if (!keepsPackets) {
            return maxPackets;
        }
        return maxPackets == 0 ? MOST_KEPT_PACKETS : Math.min(maxPackets, MOST_KEPT_PACKETS);
    }

    /** DOORBELL_… of layout.h. */
    int doorbellNumber() {
        boolean isSocket = doorbell == Doorbell.SOCKET || (doorbell == Doorbell.AUTO && Threads.isVirtual());
        return isSocket ? Layout.DOORBELL_SOCKET : Layout.DOORBELL_FUTEX;
    }
}
