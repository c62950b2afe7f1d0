// Connection: the shared memory of both directions, the socket beside it, and how threads wait.
package io.eddy.shm;

import java.io.IOException;
import java.lang.ref.Cleaner;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/**
 * A connection. One thread reads while another one writes; more take turns. close() is for any thread. It ends the calls
 * of the others, and unmaps the memory after the last of them.
 */
final class Connection {
    /** No deadline. */
    static final long NEVER = Long.MAX_VALUE;
    /** Polls of the ring before the clock is read for the first time: about a microsecond. */
    private static final int QUICK_POLLS = 40;
    /** Polls after which the peer is not so near, or so busy, that what a thread does meanwhile would come too late. */
    private static final int POLLS_BEFORE_PREPARING = 3;
    /** And between two readings of the clock, and of what else ends a wait. */
    private static final int POLLS_BETWEEN = 32;

    private final Wire wire;
    private final Cleaner.Cleanable cleanable;
    private final boolean hasFutex;
    private final boolean isPeerOnFutex;
    /** Null over the socket. */
    private final Sender out;
    private final Receiver in;
    private final Guard reading = new Guard(this);
    private final Guard writing = new Guard(this);
    /** For calls of one byte, inside of the guards: threads that take turns have it one after the other. */
    private final byte[] readByte = new byte[1];
    private final byte[] writtenByte = new byte[1];
    private final SpinHistory readSpin;
    private final SpinHistory writeSpin;
    private final Sleeper sleeper = new Sleeper(this);
    private final OverSocket overSocket;

    private final AtomicBoolean isClosing = new AtomicBoolean();
    private volatile boolean isClosed;
    private volatile boolean isPeerGone;
    private volatile boolean isInputShut;
    private volatile boolean isOutputShut;
    /** Whether close() is a reset. */
    private volatile boolean isAborted;
    /** Views of the rings exist that their users may still have: the garbage collector unmaps. */
    private volatile boolean hasViews;
    private final Waiters waiters;
    /** Called when the doorbell signals, or the peer ends. */
    private volatile Runnable listener;

    /** {@code pages}: of the receiver, or null; closed with the socket. */
    Connection(int fd, ShmOptions options, int doorbell, int peerDoorbell, Sender out, Receiver in, WrittenPages pages)
            throws IOException {
        this.out = out;
        this.in = in;
        waiters = new Waiters(out, in);
        hasFutex = doorbell == Layout.DOORBELL_FUTEX;
        isPeerOnFutex = peerDoorbell == Layout.DOORBELL_FUTEX;
        readSpin = new SpinHistory(options.waiting);
        writeSpin = new SpinHistory(options.waiting);
        wire = new Wire(fd, out != null, this, pages);
        overSocket = new OverSocket(this, wire, waiters, sleeper);
        cleanable = wire.closeAfter(this);
    }

    boolean sharesMemory() {
        return out != null;
    }

    boolean isOpen() {
        return !isClosed;
    }

    /** For tests. */
    Guard guardOfReads() {
        return reading;
    }

    // ---- the watcher's thread

    /** The peer has signalled; or, over the socket, it is ready. */
    void onBell() {
        if (out == null || !hasFutex) {
            wakeAll(false);
        }
    }

    /** What it had published is all there will be. Also after an error of this thread with it. */
    void onPeerGone() {
        isPeerGone = true;
        wakeAll(false);
    }

    /** Wakes what waits on this side. With {@code isClosing}, the caller has time to see that they wake. */
    private void wakeAll(boolean isClosing) {
        waiters.unpark();
        if (out != null && (isClosing || isPeerGone)) {
            waiters.wakeReader();
            waiters.wakeWriter();
        }
        Runnable called = listener;
        if (called != null) {
            called.run();
        }
    }

    // ---- wake-ups of the peer

    private void wakePeersReader() {
        if (isPeerOnFutex) {
            out.ringFutex();
        } else {
            wire.signal(this);
        }
    }

    private void wakePeersWriter() {
        if (isPeerOnFutex) {
            in.ringFutex();
        } else {
            wire.signal(this);
        }
    }

    // ---- waiting

    static SocketException closed() {
        return new SocketException("Socket closed");
    }

    void checkOpen() throws SocketException {
        if (isClosed) {
            throw closed();
        }
    }

    /** Whether reading ends, while there are no bytes. Fails when it ends with an error. */
    private boolean isReadAtEnd() throws IOException {
        // Before the end of the ring: what a peer published before it went is seen then. And before isClosed, as the own
        // close() ends the socket, too.
        boolean gone = isPeerGone;
        checkOpen();
        if (isInputShut) {
            return true;
        }
        if (in.isAtEnd()) {
            return true;
        }
        if (!gone || in.bytes() > 0) {
            return false;
        }
        throw new SocketException("Connection reset: the peer died");
    }

    /** True when there are bytes; false at the end. */
    private boolean waitForBytes(long deadline) throws IOException {
        if (readSpin.mayPoll()) {
            if (in.comeWithin(POLLS_BEFORE_PREPARING)) {
                return true;
            }
            prepareToWrite();
            if (in.comeWithin(QUICK_POLLS - POLLS_BEFORE_PREPARING)) {
                return true;
            }
        }
        if (in.settle()) {
            wakePeersWriter();
        }
        long begun = System.nanoTime();
        long spin = readSpin.budget(in.peerProcessor());
        long now = begun;
        for (; in.bytes() == 0; now = System.nanoTime()) {
            if (isReadAtEnd()) {
                return false;
            }
            if (Deadlines.isLate(deadline, now)) {
                throw new SocketTimeoutException("Read timed out");
            }
            if (now - begun < spin) {
                // Without a look at the clock behind what has come: that is time of its way.
                if (in.comeWithin(POLLS_BETWEEN)) {
                    break;
                }
                continue;
            }
            sleepForBytes(deadline);
        }
        readSpin.note(now - begun);
        return true;
    }

    /** While this thread waits for a reply, or the next request: what makes its next write faster. */
    private void prepareToWrite() {
        if (writing.tryEnterBiased()) {
            out.prepareNext();
            writing.exit();
        }
    }

    private void sleepForBytes(long deadline) throws IOException {
        in.setProcessor(Native.processor());
        if (hasFutex) {
            int seen = in.bell();
            waiters.isReaderAsleep = true;
            try {
                if (in.arm()) {
                    wakePeersWriter();
                }
                if (in.bytes() == 0 && !isReadAtEnd()) {
                    sleeper.sleepOn(in.bellAddress(), seen, deadline);
                }
            } finally {
                waiters.isReaderAsleep = false;
                in.disarm();
            }
            return;
        }
        waiters.reader = Thread.currentThread();
        try {
            if (in.arm()) {
                wakePeersWriter();
            }
            if (in.bytes() == 0 && !isReadAtEnd()) {
                sleeper.park(deadline);
            }
        } finally {
            waiters.reader = null;
            in.disarm();
        }
    }

    private void checkWritable() throws IOException {
        boolean gone = isPeerGone;
        checkOpen();
        if (isOutputShut) {
            throw new SocketException("Socket output is shutdown");
        }
        if (gone) {
            throw new SocketException("Broken pipe");
        }
    }

    private void waitForRoom(int wanted, long deadline) throws IOException {
        if (writeSpin.mayPoll() && out.hasRoomWithin(QUICK_POLLS, wanted)) {
            return;
        }
        long begun = System.nanoTime();
        long spin = writeSpin.budget(out.peerProcessor());
        long now = begun;
        for (; out.room(wanted) < wanted; now = System.nanoTime()) {
            checkWritable();
            if (Deadlines.isLate(deadline, now)) {
                throw new SocketTimeoutException("Write timed out");
            }
            if (now - begun < spin) {
                if (out.hasRoomWithin(POLLS_BETWEEN, wanted)) {
                    break;
                }
                continue;
            }
            sleepForRoom(wanted, deadline);
        }
        writeSpin.note(now - begun);
    }

    private void sleepForRoom(int wanted, long deadline) throws IOException {
        if (hasFutex) {
            int seen = out.bell();
            waiters.isWriterAsleep = true;
            try {
                out.announce();
                if (out.room(wanted) < wanted) {
                    checkWritable();
                    sleeper.sleepOn(out.bellAddress(), seen, deadline);
                }
            } finally {
                waiters.isWriterAsleep = false;
                out.disarm();
            }
            return;
        }
        waiters.writer = Thread.currentThread();
        try {
            out.announce();
            if (out.room(wanted) < wanted) {
                checkWritable();
                sleeper.park(deadline);
            }
        } finally {
            waiters.writer = null;
            out.disarm();
        }
    }

    /** Over the socket: those that its threads wait for. */
    int awaitedEvents() {
        return (waiters.reader != null ? Watcher.READABLE : 0) | (waiters.writer != null ? Watcher.WRITABLE : 0);
    }

    // ---- reading

    /** Waits for bytes; -1 at the end. {@code nanos}: a limit, or NEVER. */
    int read(byte[] into, int from, int size, long nanos) throws IOException {
        reading.enter();
        try {
            return size == 0 ? 0 : readSome(into, from, size, nanos);
        } finally {
            reading.exit();
        }
    }

    /** Waits for a byte, from 0 to 255; -1 at the end. */
    int read(long nanos) throws IOException {
        reading.enter();
        try {
            return readSome(readByte, 0, 1, nanos) < 0 ? -1 : readByte[0] & 0xff;
        } finally {
            reading.exit();
        }
    }

    private int readSome(byte[] into, int from, int size, long nanos) throws IOException {
        if (in != null) {
            int got = takeBytes(into, from, size);
            if (got > 0) {
                return got;
            }
        }
        return readSlowly(into, from, size, Deadlines.of(nanos));
    }

    private int takeBytes(byte[] into, int from, int size) throws IOException {
        if (isInputShut) {
            return 0;
        }
        int got = in.copy(into, from, size);
        if (got > 0 && in.consume(got)) {
            wakePeersWriter();
        }
        return got;
    }

    private int readSlowly(byte[] into, int from, int size, long deadline) throws IOException {
        try {
            for (;;) {
                if (in == null) {
                    int got = overSocket.receive(into, from, size);
                    if (got != 0) {
                        return got;
                    }
                    overSocket.await(true, deadline, "Read timed out");
                    continue;
                }
                // Bytes that came before shutdownInput() are not read after it.
                if (!waitForBytes(deadline) || isInputShut) {
                    return -1;
                }
                int got = takeBytes(into, from, size);
                if (got > 0) {
                    return got;
                }
            }
        } finally {
            sleeper.restoreInterrupt();
        }
    }

    /** Copies what has come, without waiting: 0 while there is nothing, -1 at the end. */
    int tryRead(byte[] into, int from, int size, boolean arms) throws IOException {
        reading.enter();
        try {
            if (size == 0) {
                return 0;
            }
            if (in == null) {
                return overSocket.receive(into, from, size);
            }
            do {
                int got = takeBytes(into, from, size);
                if (got > 0) {
                    in.disarm();
                    return got;
                }
            } while (!findNothing(arms));
            return endOrNothing();
        } finally {
            reading.exit();
        }
    }

    /** The same for a buffer. */
    int tryRead(ByteBuffer into, boolean arms) throws IOException {
        if (into.isReadOnly()) {
            throw new IllegalArgumentException("Read-only buffer");
        }
        if (in == null) {
            byte[] bytes = new byte[Math.min(into.remaining(), OverSocket.PART)];
            int got = tryRead(bytes, 0, bytes.length, false);
            into.put(bytes, 0, Math.max(got, 0));
            return got;
        }
        reading.enter();
        try {
            if (!into.hasRemaining()) {
                return 0;
            }
            do {
                int got = isInputShut ? 0 : in.copy(into);
                if (got > 0) {
                    if (in.consume(got)) {
                        wakePeersWriter();
                    }
                    in.disarm();
                    return got;
                }
            } while (!findNothing(arms));
            return endOrNothing();
        } finally {
            reading.exit();
        }
    }

    private int endOrNothing() throws IOException {
        if (!isReadAtEnd()) {
            return 0;
        }
        in.disarm();
        return -1;
    }

    /** After nothing was found: whether that stays so, now that the peer knows. */
    private boolean findNothing(boolean arms) throws IOException {
        if (in.settle()) {
            wakePeersWriter();
        }
        if (!arms || isInputShut) {
            return true;
        }
        if (in.arm()) {
            wakePeersWriter();
        }
        return in.bytes() == 0;
    }

    /** Waits until there are bytes to read: false at the end. */
    boolean awaitBytes(long nanos) throws IOException {
        reading.enter();
        try {
            if (isInputShut) {
                return false;
            }
            if (in == null) {
                overSocket.await(true, Deadlines.of(nanos), "Read timed out");
                return true;
            }
            return in.bytes() > 0 || waitForBytes(Deadlines.of(nanos));
        } finally {
            reading.exit();
            sleeper.restoreInterrupt();
        }
    }

    /** Bytes that can be read without waiting; 0 while another thread reads. */
    int available() throws IOException {
        checkOpen();
        if (isInputShut || !reading.tryEnter()) {
            return 0;
        }
        try {
            return in == null ? Math.max(wire.available(this), 0) : in.allBytes();
        } finally {
            reading.exit();
        }
    }

    /** Bytes of the next packet, or what is left of it; where packets are not kept apart, available(). */
    int packetBytes() throws IOException {
        if (!keepsPackets()) {
            return available();
        }
        reading.enter();
        try {
            return isInputShut ? 0 : in.packetBytes();
        } finally {
            reading.exit();
        }
    }

    /** Whether a further read would be of another packet. */
    boolean isBetweenPackets() throws IOException {
        if (!keepsPackets()) {
            return false;
        }
        reading.enter();
        try {
            return in.isBetweenPackets();
        } finally {
            reading.exit();
        }
    }

    private void checkMemory() throws SocketException {
        if (!sharesMemory()) {
            throw new SocketException("the connection has no shared memory");
        }
    }

    /** A view of the ring that is read, of twice its size. */
    ByteBuffer viewToRead() throws IOException {
        checkMemory();
        reading.enter();
        try {
            hasViews = true;
            return in.view();
        } finally {
            reading.exit();
        }
    }

    /** Sets the view to the unread bytes, of which there may be none: false at the end. */
    boolean peek(ByteBuffer view) throws IOException {
        reading.enter();
        try {
            int size = isInputShut ? 0 : in.allBytes();
            if (size == 0 && findNothing(false) && isReadAtEnd()) {
                return false;
            }
            // What came since, too.
            size = isInputShut || in.allBytes() == 0 ? 0 : in.span(in.packetBytes());
            view.limit(in.index() + size).position(in.index());
            return true;
        } finally {
            reading.exit();
        }
    }

    void consume(int size) throws IOException {
        checkMemory();
        reading.enter();
        try {
            if (in.consume(size)) {
                wakePeersWriter();
            }
        } finally {
            reading.exit();
        }
    }

    // ---- writing

    /** Writes all, and flushes. */
    void write(byte[] bytes, int from, int size, long nanos) throws IOException {
        writing.enter();
        try {
            writeAll(bytes, from, size, nanos);
        } finally {
            writing.exit();
        }
    }

    /** Writes one byte, and flushes. */
    void write(int value, long nanos) throws IOException {
        writing.enter();
        try {
            writtenByte[0] = (byte) value;
            writeAll(writtenByte, 0, 1, nanos);
        } finally {
            writing.exit();
        }
    }

    private void writeAll(byte[] bytes, int from, int size, long nanos) throws IOException {
        checkWritable();
        if (out == null) {
            overSocket.write(bytes, from, size, Deadlines.of(nanos));
            return;
        }
        if (out.keepsPackets()) {
            writePacket(bytes, from, size, Deadlines.of(nanos));
            return;
        }
        int sent = out.append(bytes, from, size);
        if (sent > 0 && out.publish()) {
            wakePeersReader();
        }
        if (sent < size) {
            writeSlowly(bytes, from + sent, size - sent, Deadlines.of(nanos));
        }
    }

    /** As the end of one packet, which the peer reads once it is whole. */
    private void writePacket(byte[] bytes, int from, int size, long deadline) throws IOException {
        checkPacketSize(size);
        if (out.room(size) < size) {
            try {
                waitForRoom(size, deadline);
                checkWritable();
            } finally {
                sleeper.restoreInterrupt();
            }
        }
        for (int done = 0; done < size;) {
            done += out.append(bytes, from + done, size - done);
        }
        if (out.publish()) {
            wakePeersReader();
        }
    }

    /** Of so many bytes more, with those that were appended before. */
    private void checkPacketSize(long more) throws SocketException {
        if (out.packetSize() + more > out.size) {
            throw new SocketException("Message too long: a packet of more than the " + out.size + " bytes of the ring");
        }
    }

    /** Whether packets are kept apart. */
    boolean keepsPackets() {
        return out != null && out.keepsPackets();
    }

    private void writeSlowly(byte[] bytes, int from, int size, long deadline) throws IOException {
        try {
            for (int done = 0; done < size;) {
                waitForRoom(1, deadline);
                checkWritable();
                int sent = out.append(bytes, from + done, size - done);
                if (sent > 0 && out.publish()) {
                    wakePeersReader();
                }
                done += sent;
            }
        } finally {
            sleeper.restoreInterrupt();
        }
    }

    /** Appends as much as there is room for, to be flushed; 0 when full. Over the socket, it is sent. */
    int append(byte[] bytes, int from, int size) throws IOException {
        writing.enter();
        try {
            checkWritable();
            return out == null ? overSocket.send(bytes, from, size) : out.append(bytes, from, size);
        } finally {
            writing.exit();
        }
    }

    /** Whether one packet with so many bytes more has room now. One that never has is a SocketException. */
    boolean hasPacketRoom(long more) throws IOException {
        writing.enter();
        try {
            checkWritable();
            checkPacketSize(more);
            return out.room((int) more) >= more;
        } finally {
            writing.exit();
        }
    }

    int append(ByteBuffer bytes) throws IOException {
        writing.enter();
        try {
            checkWritable();
            return out == null ? overSocket.send(bytes) : out.append(bytes);
        } finally {
            writing.exit();
        }
    }

    /** Has the peer read what was appended: one packet. */
    void flush() throws IOException {
        writing.enter();
        try {
            if (out != null && out.hasUnpublished()) {
                checkWritable();
                if (out.publish()) {
                    wakePeersReader();
                }
            }
        } finally {
            writing.exit();
        }
    }

    /** Whether there is room for so many bytes now; else the doorbell will signal once there is more than now. */
    boolean armForRoom(int wanted) throws IOException {
        writing.enter();
        try {
            if (out == null) {
                return true;
            }
            out.announce();
            if (out.room(wanted) < wanted && !isPeerGone) {
                out.noteTail();
                return false;
            }
            out.disarm();
            return true;
        } finally {
            writing.exit();
        }
    }

    /** Before the first read(): the doorbell signals bytes from now on. */
    void armForBytes() {
        if (!reading.tryEnter()) {
            return;
        }
        try {
            if (in.arm()) {
                wakePeersWriter();
            }
        } finally {
            reading.exit();
        }
    }

    /** For a thread that writes: whether bytes or the end have come since a reader found none. */
    boolean haveBytesCome() throws IOException {
        writing.enter();
        try {
            return in.hasComeSinceArmed(isPeerGone);
        } finally {
            writing.exit();
        }
    }

    /** For a thread that reads: whether room has come since a writer found none. */
    boolean hasRoomCome() throws IOException {
        reading.enter();
        try {
            return out.hasComeSinceArmed(isPeerGone);
        } finally {
            reading.exit();
        }
    }

    /** Waits for room to write so much. What was appended is flushed where the peer can make no room without it. */
    void awaitRoom(int wanted, long nanos) throws IOException {
        writing.enter();
        try {
            checkWritable();
            if (out == null) {
                overSocket.await(false, Deadlines.of(nanos), "Write timed out");
            } else if (out.room(wanted) < wanted) {
                if (out.isFullOfUnpublished() && out.publish()) {
                    wakePeersReader();
                }
                waitForRoom(wanted, Deadlines.of(nanos));
            }
        } finally {
            writing.exit();
            sleeper.restoreInterrupt();
        }
    }

    ByteBuffer viewToWrite() throws IOException {
        checkMemory();
        writing.enter();
        try {
            hasViews = true;
            return out.view();
        } finally {
            writing.exit();
        }
    }

    /** Sets the view to the room there is, maybe none. */
    void room(ByteBuffer view) throws IOException {
        writing.enter();
        try {
            checkWritable();
            int size = out.span(out.room(Integer.MAX_VALUE));
            view.limit(out.index() + size).position(out.index());
        } finally {
            writing.exit();
        }
    }

    /** The first bytes of room() were written. */
    void advance(int size) throws IOException {
        checkMemory();
        writing.enter();
        try {
            checkWritable();
            out.advance(size);
        } finally {
            writing.exit();
        }
    }

    // ---- ends

    boolean isInputShut() {
        return isInputShut;
    }

    boolean isOutputShut() {
        return isOutputShut;
    }

    /** Reading yields the end from now on. */
    void shutdownInput() throws IOException {
        checkOpen();
        isInputShut = true;
        LockSupport.unpark(waiters.reader);
        waiters.wakeReader();
    }

    /** No more bytes follow. A write that waits in another thread is cut off. */
    void shutdownOutput() throws IOException {
        isOutputShut = true;
        if (out == null) {
            wire.shutdownOutput();
        }
        LockSupport.unpark(waiters.writer);
        waiters.wakeWriter();
        writing.enter();
        try {
            finish();
        } finally {
            writing.exit();
        }
    }

    private void finish() {
        if (out == null || isAborted || out.isFinished()) {
            return;
        }
        if (out.hasUnpublished() && out.publish()) {
            wakePeersReader();
        }
        if (out.finish()) {
            wakePeersReader();
        }
    }

    /** Called when the doorbell signals, on the watcher's thread. */
    void setListener(Runnable called) {
        listener = called;
    }

    /** Flushes, ends all calls of this side, and frees what it has. The peer reads what was written before. Any thread. */
    void close() {
        if (markClosed()) {
            endAll();
        }
    }

    /** close() whose peer reads what was flushed, and a reset behind it. */
    void abort() {
        isAborted = true;
        close();
    }

    /** False if it was closed before. */
    private boolean markClosed() {
        isClosed = true;
        return !isClosing.getAndSet(true);
    }

    /** Of a thread within a call that close() would wait for: another one closes it. */
    void closeLater() {
        if (markClosed()) {
            Sleeper.inHelper(this::endAll, wire::shutdown);
        }
    }

    /** Where that fails, the peer sees the end at least; the garbage collector frees the rest. */
    private void endAll() {
        try {
            wakeAll(true);
            writing.close();
            finish();
            wire.shutdown();
            reading.close();
        } catch (RuntimeException | Error error) {
            wire.shutdown();
            throw error;
        }
        cleanable.clean();
        if (out != null && !hasViews) {
            out.memory().unmap();
            in.memory().unmap();
        }
    }
}
