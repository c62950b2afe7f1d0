// TCP socket whose close(2) blocks: SO_LINGER, and bytes that its peer does not read.
package io.eddy.shm;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

final class LingeringSocket implements AutoCloseable {
    private final SocketChannel own;
    private final SocketChannel peer;

    LingeringSocket() throws IOException {
        try (ServerSocketChannel listening = ServerSocketChannel.open()) {
            listening.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            own = SocketChannel.open(listening.getLocalAddress());
            peer = listening.accept();
        }
        own.configureBlocking(false);
        ByteBuffer block = ByteBuffer.allocate(65536);
        while (own.write(block.clear()) > 0) {
            // Until both buffers are full.
        }
        own.configureBlocking(true);
        own.setOption(StandardSocketOptions.SO_LINGER, 3600);
    }

    /** Passes it with the bytes, which is then its only reference; a negated errno where that fails. */
    int pass(int socket, byte[] bytes) throws IOException {
        int sent = Native.sendDescriptor(socket, bytes, descriptorOf(own));
        if (sent < 0) {
            own.setOption(StandardSocketOptions.SO_LINGER, -1);
        }
        own.close();
        return sent;
    }

    private static String hexPort(SocketAddress of) {
        return String.format(":%04X", ((InetSocketAddress) of).getPort());
    }

    /** That of a connected TCP socket. */
    static int descriptorOf(SocketChannel connected) throws IOException {
        // By both ends: connections to other addresses may have the same local port.
        String from = hexPort(connected.getLocalAddress());
        String to = hexPort(connected.getRemoteAddress());
        String link = null;
        for (String file : new String[] {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
            for (String line : Files.readAllLines(Path.of(file))) {
                String[] words = line.trim().split("\\s+");
                if (words[1].endsWith(from) && words[2].endsWith(to)) {
                    link = "socket:[" + words[9] + "]";
                }
            }
        }
        try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
            for (Path each : (Iterable<Path>) files::iterator) {
                if (Files.isSymbolicLink(each) && Files.readSymbolicLink(each).toString().equals(link)) {
                    return Integer.parseInt(each.getFileName().toString());
                }
            }
        }
        throw new IOException("no descriptor of " + link);
    }

    /** The end of its peer ends the wait of a close, too. */
    @Override
    public void close() throws IOException {
        if (own.isOpen()) {
            own.setOption(StandardSocketOptions.SO_LINGER, -1);
        }
        peer.close();
        own.close();
    }
}
