// Aeron's IPC as a peer: two exclusive publications, one a direction, and threads that spin.
package bench;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.SleepingMillisIdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

final class AeronPeer implements Peer {
    private static final int TO_SERVER = 1;
    private static final int TO_CLIENT = 2;
    /** Fragments that are taken at a time in a stream. */
    private static final int FRAGMENTS = 256;
    private static final int MARK = 1;

    private final ExclusivePublication out;
    private final Image in;
    private final boolean claims;
    private final BufferClaim claim = new BufferClaim();
    private final UnsafeBuffer sent = new UnsafeBuffer();
    private final byte[] end = new byte[MARK];
    private final FragmentHandler copying = new FragmentAssembler(this::copy);
    private final FragmentHandler counting = this::count;
    private ByteBuffer target;
    private int received;
    private boolean hasEnded;

    /**
     * Connects to the driver of a folder.
     *
     * @param messageSize of messages one way, 0 for round trips; one that fits into a fragment can be claimed
     */
    AeronPeer(String folder, boolean isServer, int messageSize) {
        Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(folder).preTouchMappedMemory(true));
        // Round trips are quickest with buffers that fit into the caches, messages one way with the default of 64 MiB.
        String channel = "aeron:ipc?" + (messageSize == 0 ? "term-length=4m" : messageSize <= 1024 ? "mtu=1408" : "mtu=65504");
        Subscription subscription = aeron.addSubscription("aeron:ipc", isServer ? TO_SERVER : TO_CLIENT);
        out = aeron.addExclusivePublication(channel, isServer ? TO_CLIENT : TO_SERVER);
        claims = messageSize <= out.maxPayloadLength();
        while (subscription.imageCount() == 0 || !out.isConnected()) {
            Thread.yield();
        }
        in = subscription.imageAtIndex(0);
    }

    /**
     * Starts a driver in this process. It maps the buffers and moves the window of each publication on; messages do not pass
     * through it. One thread sleeps a millisecond at a time, as both processors are the peers'.
     */
    static void startDriver(String folder) {
        MediaDriver.launch(new MediaDriver.Context().aeronDirectoryName(folder).dirDeleteOnStart(true)
                .threadingMode(ThreadingMode.SHARED).sharedIdleStrategy(new SleepingMillisIdleStrategy(1))
                .termBufferSparseFile(false));
    }

    private void copy(DirectBuffer buffer, int offset, int length, Header header) {
        if (length == MARK) {
            hasEnded = true;
            return;
        }
        buffer.getBytes(offset, target, 0, length);
        received += length;
    }

    private void count(DirectBuffer buffer, int offset, int length, Header header) {
        if (length == MARK) {
            hasEnded = true;
            return;
        }
        received += length;
    }

    private static void refuse(long position) throws IOException {
        if (position == Publication.BACK_PRESSURED || position == Publication.ADMIN_ACTION) {
            Thread.onSpinWait();
            return;
        }
        throw new IOException("Aeron: " + Publication.errorString(position));
    }

    @Override
    public void send(ByteBuffer message) throws IOException {
        if (sent.byteBuffer() != message) {
            sent.wrap(message);
        }
        for (long position; (position = out.offer(sent, 0, message.capacity())) < 0;) {
            refuse(position);
        }
    }

    @Override
    public void sendInPlace(ByteBuffer message) throws IOException {
        if (!claims) {
            send(message);
            return;
        }
        for (long position; (position = out.tryClaim(message.capacity(), claim)) < 0;) {
            refuse(position);
        }
        claim.buffer().putByte(claim.offset(), (byte) 1);
        claim.commit();
    }

    @Override
    public boolean receive(ByteBuffer into) throws IOException {
        target = into;
        received = 0;
        while (received == 0) {
            if (in.poll(copying, 1) == 0) {
                if (in.isClosed() || hasEnded) {
                    return false;
                }
                Thread.onSpinWait();
            }
        }
        if (received != into.capacity()) {
            throw new IOException("a message has another size");
        }
        return true;
    }

    @Override
    public void end() throws IOException {
        UnsafeBuffer mark = new UnsafeBuffer(end);
        for (long position; (position = out.offer(mark, 0, MARK)) < 0;) {
            refuse(position);
        }
    }

    @Override
    public int drain(ByteBuffer into, boolean inPlace) throws IOException {
        target = into;
        received = 0;
        while (!hasEnded && received == 0) {
            if (in.poll(inPlace && claims ? counting : copying, FRAGMENTS) == 0) {
                Thread.onSpinWait();
            }
        }
        return received;
    }
}
