// SocketChannel of NIO as a peer, over TCP or a Unix socket: it blocks, or is read again and again.
package bench;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

final class ChannelPeer implements Peer {
    private final SocketChannel channel;

    private ChannelPeer(SocketChannel channel, boolean spins) throws IOException {
        this.channel = channel;
        if (channel.getRemoteAddress() instanceof InetSocketAddress) {
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        }
        channel.configureBlocking(!spins);
    }

    /** Where the server listens: a path in a folder, or a port. */
    static SocketAddress address(boolean isTcp, String folder, int port) {
        return isTcp ? new InetSocketAddress(InetAddress.getLoopbackAddress(), port) : UnixDomainSocketAddress.of(folder + "/socket");
    }

    static ServerSocketChannel listen(SocketAddress where) throws IOException {
        boolean isTcp = where instanceof InetSocketAddress;
        return (isTcp ? ServerSocketChannel.open() : ServerSocketChannel.open(StandardProtocolFamily.UNIX)).bind(where);
    }

    static Peer accept(ServerSocketChannel listening, boolean spins) throws IOException {
        return new ChannelPeer(listening.accept(), spins);
    }

    static Peer connect(SocketAddress where, boolean spins) throws IOException {
        return new ChannelPeer(SocketChannel.open(where), spins);
    }

    @Override
    public void send(ByteBuffer message) throws IOException {
        while (message.hasRemaining()) {
            if (channel.write(message) == 0) {
                Thread.onSpinWait();
            }
        }
        message.clear();
    }

    @Override
    public void sendInPlace(ByteBuffer message) throws IOException {
        send(message);
    }

    @Override
    public boolean receive(ByteBuffer into) throws IOException {
        while (into.hasRemaining()) {
            int size = channel.read(into);
            if (size < 0) {
                return false;
            }
            if (size == 0) {
                Thread.onSpinWait();
            }
        }
        into.clear();
        return true;
    }

    @Override
    public void end() throws IOException {
        channel.shutdownOutput();
    }

    @Override
    public int drain(ByteBuffer into, boolean inPlace) throws IOException {
        into.clear();
        for (;;) {
            int size = channel.read(into);
            if (size != 0) {
                return Math.max(size, 0);
            }
            Thread.onSpinWait();
        }
    }
}
