// One end of a connection between two JVMs, as a rival makes it: whole messages, one thread.
package bench;

import java.io.IOException;
import java.nio.ByteBuffer;

/** Messages to and fro. The receiver's buffers are direct and as large as the messages. */
interface Peer {
    /** Sends all bytes of a buffer, which has position 0 and is left like that. */
    void send(ByteBuffer message) throws IOException;

    /** Fills a buffer, and leaves its position at 0. False at the end of the stream. */
    boolean receive(ByteBuffer into) throws IOException;

    /** Sends a message that is written in the place that it is sent from, where the rival has that. */
    void sendInPlace(ByteBuffer message) throws IOException;

    /** Sends the end of a stream, after which nothing is sent. */
    void end() throws IOException;

    /** Bytes that have come, at least one, copied out unless in place; 0 at the end of the stream. */
    int drain(ByteBuffer into, boolean inPlace) throws IOException;
}
