// Exchange of the HELLOs over a Unix socket, in steps: src/shm/hello.cpp in Java.
package io.eddy.shm;

import java.io.EOFException;
import java.io.IOException;
import java.net.ProtocolException;

/** One side's exchange. Between steps the caller waits. The socket stays the caller's. One thread. */
final class Handshake {
    /** What is waited for before the next step. */
    enum Next { DONE, READABLE, WRITABLE }

    /** The client sends first. */
    enum Side { CLIENT, SERVER }

    final int fd;
    final ShmOptions options;
    final int doorbell;
    private final Side side;
    private final boolean isAsymmetric;
    private final byte[] received = new byte[Layout.HELLO_SIZE];
    private final int[] found = new int[2];
    private int receivedSize;
    private boolean hasAllocated;
    private boolean isSent;
    private int ownFile = -1;
    private int peerFile = -1;
    /** Whether a descriptor came for which this process has no room. */
    private boolean isFileLost;
    private boolean isAtEnd;
    private Hello peer;
    Memory own;
    Memory peerMemory;
    /** Of a large ring of the peer's; null else. */
    private WrittenPages pages;
    /** In a client: room for the server's memory, without which it would say too late that it shares none. */
    private Mapping room;

    /** Without memory of its own until it sends: a server allocates nothing before the client's HELLO. */
    Handshake(Side side, int fd, ShmOptions options, int doorbell) {
        this.side = side;
        this.fd = fd;
        this.options = options;
        this.doorbell = doorbell;
        Descriptors.receiveAll(fd);
        isAsymmetric = options.hasAsymmetricFence && Fences.register();
    }

    /**
     * Sends and receives until it has to wait; a server receives first. Fails with an IOException for a peer that breaks the
     * protocol or closes, and in a client that has no descriptor for the server's memory.
     */
    Next step() throws IOException {
        if (side == Side.CLIENT && !sendOwn()) {
            return Next.WRITABLE;
        }
        if (!receivePeers()) {
            return Next.READABLE;
        }
        if (side == Side.SERVER && !sendOwn()) {
            return Next.WRITABLE;
        }
        return Next.DONE;
    }

    private boolean sendOwn() throws IOException {
        if (isSent) {
            return true;
        }
        allocate();
        return send();
    }

    private boolean receivePeers() throws IOException {
        while (receivedSize < received.length) {
            if (!receive()) {
                return false;
            }
        }
        if (peer == null) {
            accept();
        }
        return true;
    }

    /** The own memory, unless there can be none, or the peer of a server brought none. */
    private void allocate() {
        if (hasAllocated) {
            return;
        }
        hasAllocated = true;
        if (!options.sharesMemory || (side == Side.SERVER && peerMemory == null)) {
            return;
        }
        try {
            create();
        } catch (IOException noRoom) {
            // The connection uses its socket.
            freeOwn();
        }
    }

    private void create() throws IOException {
        int size = options.ringSize;
        int file = Native.memoryFile((long) Layout.HEADER_SIZE + size);
        if (file < 0) {
            throw Errors.of("memfd_create", file);
        }
        ownFile = file;
        own = Memory.map(file, size);
        // After the own mapping, which the seal against writing would refuse.
        int sealed = Native.seal(file);
        if (sealed < 0) {
            throw Errors.of("sealing memory", sealed);
        }
        // The peer may read it as soon as it has the HELLO.
        own.setRelease(Layout.HEAD, options.firstPosition);
        if (side == Side.CLIENT) {
            room = new Mapping(size);
            room.map(file, false);
        }
    }

    private boolean send() throws IOException {
        if (options.keepsPackets && own == null) {
            throw new IOException("packets are kept apart in shared memory alone, and there can be none");
        }
        int features = (own != null ? Layout.FEATURE_MEMORY : 0) | (isAsymmetric ? Layout.FEATURE_ASYMMETRIC : 0)
                | (options.keepsPackets ? Layout.FEATURE_PACKETS : 0);
        byte[] bytes = new Hello(features, doorbell, own != null ? own.ringSize : 0, options.firstPosition).encode();
        int sent = own != null ? Native.sendDescriptor(fd, bytes, ownFile) : Native.send(fd, bytes, 0, bytes.length);
        if (sent == -Errors.ETOOMANYREFS && own != null) {
            // Peers that do not read hold all that this user may have in flight: this one is served without memory.
            freeOwn();
            return send();
        }
        if (sent == -Errors.EAGAIN || sent == -Errors.EINTR) {
            return false;
        }
        if (sent == -Errors.EPIPE || sent == -Errors.ECONNRESET) {
            throw new EOFException("the peer has closed the connection");
        }
        if (sent < 0) {
            throw Errors.of("sendmsg", sent);
        }
        // Nothing was sent before it, so the socket has room for so few bytes.
        if (sent != bytes.length) {
            throw new EOFException("the first message was cut");
        }
        isSent = true;
        if (ownFile >= 0) {
            Native.close(ownFile);
            ownFile = -1;
        }
        return true;
    }

    private boolean receive() throws IOException {
        int size = Native.receiveMessage(fd, received, receivedSize, found, false);
        if (size == -Errors.EAGAIN || size == -Errors.EINTR) {
            return false;
        }
        // A peer that closes without having read the HELLO resets the connection.
        if (size == 0 || size == -Errors.ECONNRESET) {
            isAtEnd = size == 0;
            throw new EOFException("the peer has closed the connection before its first message");
        }
        if (size < 0) {
            throw Errors.of("recvmsg", size);
        }
        if (found[0] >= 0) {
            if (peerFile >= 0 || found[1] != 0) {
                Native.close(found[0]);
                throw new ProtocolException("more than one descriptor came");
            }
            peerFile = found[0];
        } else if (found[1] == 2) {
            if (side == Side.CLIENT) {
                throw new IOException("a descriptor could not be received: too many open files");
            }
            isFileLost = true;
        }
        receivedSize += size;
        return true;
    }

    private void accept() throws IOException {
        Hello message = Hello.decode(received);
        if (options.keepsPackets && !(message.has(Layout.FEATURE_PACKETS) && message.has(Layout.FEATURE_MEMORY))) {
            throw new ProtocolException("the peer does not keep packets apart");
        }
        boolean hasSentFile = peerFile >= 0 || isFileLost;
        if (message.has(Layout.FEATURE_MEMORY) != hasSentFile) {
            throw new ProtocolException(hasSentFile ? "memory came unannounced" : "no memory came");
        }
        if (peerFile >= 0) {
            int size = (int) message.ringSize();
            int checked = Native.isMemoryFile(peerFile, (long) Layout.HEADER_SIZE + size);
            if (checked <= 0) {
                throw new ProtocolException("the peer's memory is not sealed, or has another size");
            }
            mapPeers(size);
            if (peerMemory != null && WrittenPages.areChecked(size)) {
                pages = new WrittenPages(peerFile, message.position(), size);
            } else {
                Native.close(peerFile);
            }
            peerFile = -1;
        }
        peer = message;
        Descriptors.refuse(fd);
    }

    private void mapPeers(int size) throws IOException {
        try {
            peerMemory = Memory.mapToRead(peerFile, size, room);
        } catch (IOException noRoom) {
            // A server can still answer that it shares none.
            if (side == Side.CLIENT) {
                throw noRoom;
            }
        }
    }

    /** Whether the peer has ended, and all that it sent was received: there is no descriptor to come. */
    boolean isAtEnd() {
        return isAtEnd;
    }

    /** After the last step: the connection, which the socket is then part of. */
    Connection connection() throws IOException {
        boolean isShared = own != null && peerMemory != null;
        if (!isShared) {
            discard();
        }
        freeRoom();
        boolean both = isAsymmetric && peer.has(Layout.FEATURE_ASYMMETRIC);
        Sender out = isShared
                ? new Sender(own, peerMemory, options.firstPosition, both, options.packetLimit(), options.keepsPackets) : null;
        Receiver in = isShared ? new Receiver(own, peerMemory, peer.position(), both, options.keepsPackets, pages) : null;
        return new Connection(fd, options, doorbell, peer.doorbell(), out, in, pages);
    }

    private void freeOwn() {
        if (ownFile >= 0) {
            Native.close(ownFile);
            ownFile = -1;
        }
        if (own != null) {
            own.unmap();
            own = null;
        }
        freeRoom();
    }

    private void freeRoom() {
        if (room != null) {
            room.run();
            room = null;
        }
    }

    /** Frees what no connection was made of. The socket stays open. */
    void discard() {
        freeOwn();
        if (peerFile >= 0) {
            Native.close(peerFile);
            peerFile = -1;
        }
        if (peerMemory != null) {
            peerMemory.unmap();
            peerMemory = null;
        }
        if (pages != null) {
            pages.close();
            pages = null;
        }
    }
}
