// HELLO of a connection: the handshake message of layout.h, encoded and checked.
package io.eddy.shm;

import java.io.IOException;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** The handshake message. {@code ringSize} is 0 without shared memory; {@code position} is not negative. */
record Hello(int features, int doorbell, long ringSize, long position) {
    boolean has(int feature) {
        return (features & feature) != 0;
    }

    byte[] encode() {
        byte[] bytes = new byte[Layout.HELLO_SIZE];
        ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder())
                .putInt(Layout.HELLO_MAGIC, Layout.MAGIC)
                .putInt(Layout.HELLO_VERSION, Layout.VERSION)
                .putInt(Layout.HELLO_FEATURES, features)
                .putInt(Layout.HELLO_DOORBELL, doorbell)
                .putLong(Layout.HELLO_RING, ringSize)
                .putLong(Layout.HELLO_POSITION, position);
        return bytes;
    }

    /** Fails with a ProtocolException for a message of another protocol or version, or with values out of range. */
    static Hello decode(byte[] bytes) throws IOException {
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
        if (bytes.length != Layout.HELLO_SIZE || in.getInt(Layout.HELLO_MAGIC) != Layout.MAGIC) {
            throw new ProtocolException("the peer speaks another protocol");
        }
        int version = in.getInt(Layout.HELLO_VERSION);
        if (version != Layout.VERSION) {
            throw new ProtocolException("unsupported version " + Integer.toUnsignedString(version) + " of the protocol");
        }
        Hello made = new Hello(in.getInt(Layout.HELLO_FEATURES), in.getInt(Layout.HELLO_DOORBELL),
                in.getLong(Layout.HELLO_RING), in.getLong(Layout.HELLO_POSITION));
        if (made.has(Layout.FEATURE_MEMORY) && !Layout.isRingSize(made.ringSize)) {
            throw new ProtocolException("a ring of " + Long.toUnsignedString(made.ringSize) + " bytes");
        }
        if (made.doorbell != Layout.DOORBELL_SOCKET && made.doorbell != Layout.DOORBELL_FUTEX) {
            throw new ProtocolException("an unknown doorbell");
        }
        if (made.position < 0) {
            throw new ProtocolException("a first position of " + Long.toUnsignedString(made.position));
        }
        return made;
    }
}
