// Constants of the shared-memory stream protocol, version 1: include/eddy/shm/layout.h in Java.
package io.eddy.shm;

/** Offsets and values of {@code include/eddy/shm/layout.h}, which describes the protocol. */
final class Layout {
    static final int MAGIC = 0x4d485345;
    static final int VERSION = 1;
    static final int HELLO_SIZE = 32;

    static final int HELLO_MAGIC = 0;
    static final int HELLO_VERSION = 4;
    static final int HELLO_FEATURES = 8;
    static final int HELLO_DOORBELL = 12;
    static final int HELLO_RING = 16;
    static final int HELLO_POSITION = 24;

    static final int FEATURE_MEMORY = 1;
    static final int FEATURE_ASYMMETRIC = 2;
    static final int FEATURE_PACKETS = 4;

    static final int DOORBELL_SOCKET = 0;
    static final int DOORBELL_FUTEX = 1;

    static final int MIN_RING = 65536;
    static final int MAX_RING = 1 << 30;
    static final int DEFAULT_RING = 256 * 1024;

    static final int HEADER_SIZE = 65536;

    static final String PORT_NAME = "eddy-shm-";
    static final int FIRST_FREE_PORT = 49152;
    static final int LAST_FREE_PORT = 65535;

    /**
     * Bytes of a ByteBuffer over memory at most: MemorySegment.asByteBuffer() refuses more. It ends eight bytes before
     * the end of the largest ring's second mapping does.
     */
    static final int MOST_OF_A_BUFFER = Integer.MAX_VALUE - 8;

    static final int HEAD = 128;
    static final int TAIL = 256;
    static final int READER = 384;
    static final int WRITER = 388;
    static final int READER_BELL = 448;
    static final int WRITER_BELL = 452;
    static final int END = 512;
    static final int CPU = 640;
    static final int PACKETS = 32768;
    static final int MOST_PACKETS = 4096;

    /** The word of the end of a packet, counted from the first one on. */
    static int packetEnd(int packet) {
        return PACKETS + Long.BYTES * (packet & (MOST_PACKETS - 1));
    }

    static boolean isRingSize(long size) {
        return size >= MIN_RING && size <= MAX_RING && Long.bitCount(size) == 1;
    }

    private Layout() {}
}
