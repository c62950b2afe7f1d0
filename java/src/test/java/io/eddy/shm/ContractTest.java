// The contract of java.net: scenarios that end alike with TCP of the JDK and with shared memory.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(180)
class ContractTest {
    /** Scenarios that end otherwise, with the reason; java/README.md has them, too. */
    private static final Set<String> DIFFERENT = Set.of(
            "a client has a port", "the port of an accepted socket's peer is the client's", "urgent data is sent", "a listener's implAccept takes a socket");

    /** Sockets of one kind, closed after the scenario. */
    private abstract static class Net implements AutoCloseable {
        private final Deque<Closeable> open = new ArrayDeque<>();

        abstract Socket make();

        abstract ServerSocket makeListener() throws IOException;

        abstract SocketAddress anyAddress();

        <T extends Closeable> T kept(T one) {
            open.push(one);
            return one;
        }

        Socket socket() {
            return kept(make());
        }

        ServerSocket unbound() throws IOException {
            return kept(makeListener());
        }

        ServerSocket listener() throws IOException {
            ServerSocket made = unbound();
            made.bind(anyAddress());
            return made;
        }

        /** A client, what was accepted of it, and the listener. */
        Both connected() throws Exception {
            ServerSocket listener = listener();
            CompletableFuture<Socket> accepted = inThread(listener::accept);
            Socket client = socket();
            client.connect(listener.getLocalSocketAddress());
            return new Both(client, kept(get(accepted)), listener);
        }

        /** Where nothing listens, during the scenario. */
        abstract SocketAddress deserted() throws IOException;

        @Override
        public void close() throws IOException {
            while (!open.isEmpty()) {
                open.pop().close();
            }
        }
    }

    private record Both(Socket client, Socket accepted, ServerSocket listener) {}

    private static final class Tcp extends Net {
        @Override
        Socket make() {
            return new Socket();
        }

        @Override
        ServerSocket makeListener() throws IOException {
            return new ServerSocket();
        }

        @Override
        SocketAddress anyAddress() {
            return new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        }

        @Override
        SocketAddress deserted() throws IOException {
            Socket holding = socket();
            holding.bind(anyAddress());
            return holding.getLocalSocketAddress();
        }
    }

    private static final class Shm extends Net {
        @Override
        Socket make() {
            return new ShmSocket();
        }

        @Override
        ServerSocket makeListener() throws IOException {
            return new ShmServerSocket();
        }

        @Override
        SocketAddress anyAddress() {
            return null;
        }

        @Override
        SocketAddress deserted() {
            return new ShmSocketAddress(Fixtures.name());
        }
    }

    private static final class Foreign extends SocketAddress {
        private static final long serialVersionUID = 1;
    }

    private interface Scenario {
        /** A value without a kind's own names, or an exception. */
        Object of(Net net) throws Exception;
    }

    private interface Step<T> {
        void on(T one) throws Exception;
    }

    private static final Map<String, Scenario> SCENARIOS = new LinkedHashMap<>();

    private static void scenario(String name, Scenario its) {
        assertTrue(SCENARIOS.put(name, its) == null, name);
    }

    private static void unconnected(String name, Step<Socket> before, ScenarioOf<Socket> its) {
        scenario("unconnected: " + name, net -> {
            Socket one = net.socket();
            before.on(one);
            return its.of(one);
        });
    }

    private interface ScenarioOf<T> {
        Object of(T one) throws Exception;
    }

    private static void connected(String name, ScenarioOf<Both> its) {
        scenario("connected: " + name, net -> its.of(net.connected()));
    }

    private static void listening(String name, ScenarioOf<ServerSocket> its) {
        scenario("listening: " + name, net -> its.of(net.listener()));
    }

    private static Object done(Step<Void> step) throws Exception {
        step.on(null);
        return "done";
    }

    private static List<Object> state(Socket of) {
        return List.of(of.isConnected(), of.isBound(), of.isClosed(), of.isInputShutdown(), of.isOutputShutdown());
    }

    private static List<Object> state(ServerSocket of) {
        return List.of(of.isBound(), of.isClosed(), of.getLocalPort() > 0, of.getInetAddress() != null,
                of.getLocalSocketAddress() != null);
    }

    private static List<Object> addresses(Socket of) {
        return List.of(of.getInetAddress() != null, of.getRemoteSocketAddress() != null, of.getLocalSocketAddress() != null,
                of.getLocalAddress().isAnyLocalAddress(), of.getPort() > 0, of.getLocalPort() == -1);
    }

    private static int written(Socket to) throws IOException {
        to.getOutputStream().write(7);
        return 1;
    }

    private static void writeUntilItFails(Socket to) throws Exception {
        for (;;) {
            to.getOutputStream().write(new byte[1000]);
            Thread.sleep(1);
        }
    }

    /** Outcome of a call that is under way when the other step comes. */
    private static Object outcomeOf(java.util.concurrent.Callable<Object> call, Step<Void> other) throws Exception {
        Thread[] calling = new Thread[1];
        CompletableFuture<Object> its = inThread(() -> {
            calling[0] = Thread.currentThread();
            return call.call();
        });
        // Before or after the call has begun to wait, the outcome is the same.
        Fixtures.eventually("the thread runs", () -> calling[0] != null);
        Thread.sleep(20);
        other.on(null);
        try {
            return get(its);
        } catch (ExecutionException error) {
            throw (Exception) error.getCause();
        }
    }

    private static <T> Object roundTrip(Socket on, SocketOption<T> name, T value) throws IOException {
        on.setOption(name, value);
        return on.getOption(name);
    }

    private static void unconnectedScenarios() {
        Step<Socket> asMade = one -> {};
        Step<Socket> closed = Socket::close;
        unconnected("state", asMade, ContractTest::state);
        unconnected("addresses", asMade, ContractTest::addresses);
        unconnected("input", asMade, Socket::getInputStream);
        unconnected("output", asMade, Socket::getOutputStream);
        unconnected("shutdownInput", asMade, one -> done(none -> one.shutdownInput()));
        unconnected("shutdownOutput", asMade, one -> done(none -> one.shutdownOutput()));
        unconnected("channel", asMade, one -> one.getChannel() == null);
        unconnected("urgent data", asMade, one -> done(none -> one.sendUrgentData(1)));
        unconnected("connect to null", asMade, one -> done(none -> one.connect(null)));
        unconnected("connect with a negative limit", asMade, one -> done(none -> one.connect(new Foreign(), -1)));
        unconnected("connect to a foreign address", asMade, one -> done(none -> one.connect(new Foreign())));
        unconnected("bind to null", asMade, one -> done(none -> one.bind(null)));
        unconnected("state after bind", one -> one.bind(null), ContractTest::state);
        unconnected("local address after bind", one -> one.bind(null), one -> one.getLocalSocketAddress() != null);
        unconnected("bind twice", one -> one.bind(null), one -> done(none -> one.bind(null)));
        unconnected("bind to a foreign address", asMade, one -> done(none -> one.bind(new Foreign())));
        unconnected("close twice", closed, one -> done(none -> one.close()));
        unconnected("closed: state", closed, ContractTest::state);
        unconnected("closed: addresses", closed, ContractTest::addresses);
        unconnected("closed: input", closed, Socket::getInputStream);
        unconnected("closed: bind", closed, one -> done(none -> one.bind(null)));
        unconnected("closed: connect to a foreign address", closed, one -> done(none -> one.connect(new Foreign())));
        unconnected("closed: getSoTimeout", closed, Socket::getSoTimeout);
        unconnected("closed: setTcpNoDelay", closed, one -> done(none -> one.setTcpNoDelay(true)));
        unconnected("closed: getOption", closed, one -> one.getOption(StandardSocketOptions.SO_KEEPALIVE));
        scenario("connect where nothing listens", net -> done(none -> net.socket().connect(net.deserted())));
        scenario("connect after a connect that failed", net -> {
            Socket one = net.socket();
            SocketAddress nowhere = net.deserted();
            Fixtures.inThread(() -> done(none -> one.connect(nowhere))).exceptionally(error -> null).get();
            return done(none -> one.connect(net.listener().getLocalSocketAddress()));
        });
        scenario("connect after bind", net -> {
            Socket one = net.socket();
            one.bind(null);
            one.connect(net.listener().getLocalSocketAddress());
            return state(one);
        });
    }

    private static void optionScenarios() {
        Step<Socket> asMade = one -> {};
        unconnected("setSoTimeout", one -> one.setSoTimeout(123), Socket::getSoTimeout);
        unconnected("setSoTimeout below 0", asMade, one -> done(none -> one.setSoTimeout(-1)));
        unconnected("setSoLinger", one -> one.setSoLinger(true, 5), Socket::getSoLinger);
        unconnected("setSoLinger of 0", one -> one.setSoLinger(true, 0), Socket::getSoLinger);
        unconnected("setSoLinger off", one -> one.setSoLinger(false, 5), Socket::getSoLinger);
        unconnected("setSoLinger below 0", asMade, one -> done(none -> one.setSoLinger(true, -1)));
        unconnected("setSoLinger above the most", one -> one.setSoLinger(true, 100_000), Socket::getSoLinger);
        unconnected("setTcpNoDelay", one -> one.setTcpNoDelay(true), Socket::getTcpNoDelay);
        unconnected("setKeepAlive", one -> one.setKeepAlive(true), Socket::getKeepAlive);
        unconnected("setReuseAddress", one -> one.setReuseAddress(true), Socket::getReuseAddress);
        unconnected("setOOBInline", one -> one.setOOBInline(true), Socket::getOOBInline);
        unconnected("setTrafficClass above the most", asMade, one -> done(none -> one.setTrafficClass(256)));
        unconnected("setSendBufferSize of 0", asMade, one -> done(none -> one.setSendBufferSize(0)));
        unconnected("setReceiveBufferSize of 0", asMade, one -> done(none -> one.setReceiveBufferSize(0)));
        unconnected("setOption of null", asMade, one -> done(none -> one.setOption(null, 1)));
        unconnected("setOption to null", asMade, one -> done(none -> one.setOption(StandardSocketOptions.TCP_NODELAY, null)));
        unconnected("setOption", asMade, one -> roundTrip(one, StandardSocketOptions.SO_KEEPALIVE, true));
        unconnected("setOption of another kind", asMade, one -> one.getOption(StandardSocketOptions.IP_MULTICAST_LOOP));
        unconnected("setOption to an impossible size", asMade,
                one -> done(none -> one.setOption(StandardSocketOptions.SO_SNDBUF, -1)));
        unconnected("setOption of SO_LINGER below 0", asMade, one -> roundTrip(one, StandardSocketOptions.SO_LINGER, -5));
        unconnected("setOption of SO_REUSEPORT", asMade, one -> roundTrip(one, StandardSocketOptions.SO_REUSEPORT, true));
        unconnected("supportedOptions", asMade, one -> {
            Set<SocketOption<?>> wanted = Set.of(StandardSocketOptions.SO_RCVBUF, StandardSocketOptions.SO_SNDBUF,
                    StandardSocketOptions.SO_KEEPALIVE, StandardSocketOptions.SO_LINGER, StandardSocketOptions.SO_REUSEADDR,
                    StandardSocketOptions.SO_REUSEPORT, StandardSocketOptions.IP_TOS, StandardSocketOptions.TCP_NODELAY);
            return one.supportedOptions().containsAll(wanted);
        });
    }

    private static void streamScenarios() {
        connected("state", both -> List.of(state(both.client), state(both.accepted)));
        connected("echo", both -> written(both.client) + both.accepted.getInputStream().read());
        connected("streams stay the same", both -> both.client.getInputStream() == both.client.getInputStream());
        connected("connect again", both -> done(none -> both.client.connect(both.listener.getLocalSocketAddress())));
        connected("bind", both -> done(none -> both.client.bind(null)));
        connected("end of the peer's output", both -> {
            written(both.client);
            both.client.shutdownOutput();
            InputStream in = both.accepted.getInputStream();
            return List.of(in.read(), in.read(), in.read(new byte[5]), in.available(), state(both.client), state(both.accepted));
        });
        connected("write after shutdownOutput", both -> {
            OutputStream out = both.client.getOutputStream();
            both.client.shutdownOutput();
            return done(none -> out.write(1));
        });
        connected("output after shutdownOutput", both -> {
            both.client.shutdownOutput();
            return both.client.getOutputStream();
        });
        connected("shutdownOutput twice", both -> {
            both.client.shutdownOutput();
            return done(none -> both.client.shutdownOutput());
        });
        connected("read after shutdownInput", both -> {
            InputStream in = both.client.getInputStream();
            both.client.shutdownInput();
            return List.of(in.read(), in.available());
        });
        connected("input after shutdownInput", both -> {
            both.client.shutdownInput();
            return both.client.getInputStream();
        });
        connected("shutdownInput twice", both -> {
            both.client.shutdownInput();
            return done(none -> both.client.shutdownInput());
        });
        connected("available", both -> {
            both.client.getOutputStream().write(new byte[9]);
            InputStream in = both.accepted.getInputStream();
            in.read();
            Fixtures.eventually("the rest", () -> in.available() == 8);
            return in.available();
        });
        connected("read nothing", both -> both.client.getInputStream().read(new byte[0]));
        connected("read to null", both -> both.client.getInputStream().read((byte[]) null));
        connected("read beyond the end", both -> both.client.getInputStream().read(new byte[3], 2, 2));
        connected("write of null", both -> done(none -> both.client.getOutputStream().write((byte[]) null)));
        connected("write beyond the end", both -> done(none -> both.client.getOutputStream().write(new byte[3], -1, 2)));
        connected("read after a limit", both -> {
            both.client.setSoTimeout(5);
            return both.client.getInputStream().read();
        });
        connected("read once more after a limit", both -> {
            both.client.setSoTimeout(5);
            inThread(() -> both.client.getInputStream().read()).exceptionally(error -> null).get();
            both.client.setSoTimeout(0);
            written(both.accepted);
            return both.client.getInputStream().read();
        });
        connected("urgent data is sent", both -> done(none -> both.client.sendUrgentData(1)));
    }

    private static void endScenarios() {
        connected("close of the peer", both -> {
            both.accepted.close();
            return both.client.getInputStream().read();
        });
        connected("write to a peer that has closed", both -> {
            both.accepted.close();
            return done(none -> writeUntilItFails(both.client));
        });
        connected("close with bytes that were not read", both -> {
            written(both.client);
            Fixtures.eventually("the byte", () -> both.accepted.getInputStream().available() == 1);
            both.accepted.close();
            return both.client.getInputStream().read();
        });
        connected("reset by SO_LINGER of 0", both -> {
            both.accepted.setSoLinger(true, 0);
            both.accepted.close();
            return both.client.getInputStream().read();
        });
        connected("close during read", both -> outcomeOf(() -> both.client.getInputStream().read(), none -> both.client.close()));
        connected("close during write", both -> outcomeOf(() -> {
            writeUntilItFails(both.client);
            return null;
        }, none -> both.client.close()));
        connected("shutdownInput during read", both -> {
            InputStream in = both.client.getInputStream();
            return outcomeOf(in::read, none -> both.client.shutdownInput());
        });
        connected("read after close", both -> {
            InputStream in = both.client.getInputStream();
            both.client.close();
            return in.read();
        });
        connected("read nothing after close", both -> {
            InputStream in = both.client.getInputStream();
            both.client.close();
            return in.read(new byte[0]);
        });
        connected("available after close", both -> {
            InputStream in = both.client.getInputStream();
            both.client.close();
            return in.available();
        });
        connected("write after close", both -> {
            OutputStream out = both.client.getOutputStream();
            both.client.close();
            return done(none -> out.write(1));
        });
        connected("flush after close", both -> {
            OutputStream out = both.client.getOutputStream();
            both.client.close();
            return done(none -> out.flush());
        });
        connected("input after close", both -> {
            both.client.close();
            return both.client.getInputStream();
        });
        connected("shutdownOutput after close", both -> {
            both.client.close();
            return done(none -> both.client.shutdownOutput());
        });
        connected("close of the input", both -> {
            both.client.getInputStream().close();
            return state(both.client);
        });
        connected("close of the output", both -> {
            both.client.getOutputStream().close();
            return List.of(state(both.client), both.accepted.getInputStream().read());
        });
        connected("addresses after close", both -> {
            both.client.close();
            return addresses(both.client);
        });
    }

    private static void addressScenarios() {
        connected("addresses", both -> List.of(addresses(both.client), both.client.getInetAddress().isLoopbackAddress()));
        connected("remote address of the client",
                both -> both.client.getRemoteSocketAddress().equals(both.listener.getLocalSocketAddress()));
        connected("port of the client's peer", both -> both.client.getPort() == both.listener.getLocalPort());
        connected("a client has a port", both -> both.client.getLocalPort() > 0);
        connected("local address of the accepted",
                both -> both.accepted.getLocalSocketAddress().equals(both.listener.getLocalSocketAddress()));
        connected("remote address of the accepted",
                both -> both.accepted.getRemoteSocketAddress().equals(both.client.getLocalSocketAddress()));
        connected("local port of the accepted", both -> both.accepted.getLocalPort() == both.listener.getLocalPort());
        connected("the port of an accepted socket's peer is the client's", both -> both.accepted.getPort() > 0);
    }

    private static void listenerScenarios() {
        scenario("unbound listener: state", net -> state(net.unbound()));
        scenario("unbound listener: accept", net -> net.unbound().accept());
        scenario("unbound listener: bind to null", net -> {
            ServerSocket one = net.unbound();
            one.bind(null);
            return state(one);
        });
        scenario("unbound listener: bind to a foreign address", net -> done(none -> net.unbound().bind(new Foreign())));
        scenario("unbound listener: bind to a taken address", net -> {
            SocketAddress taken = net.listener().getLocalSocketAddress();
            return done(none -> net.unbound().bind(taken));
        });
        scenario("unbound listener: state after a bind that failed", net -> {
            SocketAddress taken = net.listener().getLocalSocketAddress();
            ServerSocket one = net.unbound();
            inThread(() -> done(none -> one.bind(taken))).exceptionally(error -> null).get();
            return state(one);
        });
        scenario("unbound listener: bind after close", net -> {
            ServerSocket one = net.unbound();
            one.close();
            return done(none -> one.bind(null));
        });
        listening("state", ContractTest::state);
        listening("bind twice", one -> done(none -> one.bind(null)));
        listening("channel", one -> one.getChannel() == null);
        listening("accept after a limit", one -> {
            one.setSoTimeout(5);
            return one.accept();
        });
        listening("accept after close", one -> {
            one.close();
            return one.accept();
        });
        listening("close during accept", one -> outcomeOf(one::accept, none -> one.close()));
        listening("close twice", one -> {
            one.close();
            return done(none -> one.close());
        });
        listening("state after close", one -> {
            one.close();
            return state(one);
        });
        listening("connect after close", one -> {
            SocketAddress at = one.getLocalSocketAddress();
            one.close();
            return done(none -> (one instanceof ShmServerSocket ? new ShmSocket() : new Socket()).connect(at));
        });
        listening("setSoTimeout below 0", one -> done(none -> one.setSoTimeout(-1)));
        listening("setSoTimeout after close", one -> {
            one.close();
            return done(none -> one.setSoTimeout(1));
        });
        listening("setReceiveBufferSize of 0", one -> done(none -> one.setReceiveBufferSize(0)));
        listening("setOption of a size", one -> {
            one.setOption(StandardSocketOptions.SO_RCVBUF, 100_000);
            return one.getOption(StandardSocketOptions.SO_RCVBUF) >= 100_000;
        });
        listening("setOption", one -> {
            one.setOption(StandardSocketOptions.SO_REUSEADDR, true);
            return one.getOption(StandardSocketOptions.SO_REUSEADDR);
        });
        listening("setOption of a socket's", one -> one.getOption(StandardSocketOptions.TCP_NODELAY));
        listening("setOption to an impossible size", one -> done(none -> one.setOption(StandardSocketOptions.SO_RCVBUF, -1)));
        listening("setOption of null", one -> done(none -> one.setOption(null, 1)));
        listening("getOption after close", one -> {
            one.close();
            return one.getOption(StandardSocketOptions.SO_REUSEADDR);
        });
        listening("supportedOptions", one -> one.supportedOptions().containsAll(Set.of(StandardSocketOptions.SO_RCVBUF,
                StandardSocketOptions.SO_REUSEADDR, StandardSocketOptions.SO_REUSEPORT)));
        scenario("a listener's implAccept takes a socket", net -> {
            ServerSocket one = net instanceof Tcp ? net.kept(new TcpAccepting()) : net.kept(new ShmAccepting());
            one.bind(net.anyAddress());
            one.setSoTimeout(1000);
            inThread(() -> done(none -> net.socket().connect(one.getLocalSocketAddress())));
            return net.kept(one.accept()).isConnected();
        });
    }

    private static final class TcpAccepting extends ServerSocket {
        TcpAccepting() throws IOException {}

        @Override
        public Socket accept() throws IOException {
            Socket made = new Socket();
            implAccept(made);
            return made;
        }
    }

    private static final class ShmAccepting extends ShmServerSocket {
        ShmAccepting() throws IOException {}

        @Override
        public Socket accept() throws IOException {
            Socket made = new ShmSocket();
            implAccept(made);
            return made;
        }
    }

    private static Object outcome(Scenario of, Net made) throws Exception {
        try (Net net = made) {
            Object found = of.of(net);
            return found instanceof InputStream || found instanceof OutputStream ? "a stream" : found;
        } catch (Exception error) {
            return error.getClass().getName();
        }
    }

    @Test
    void scenariosEndAsThoseOfTheJdksSockets() throws Exception {
        SCENARIOS.clear();
        unconnectedScenarios();
        optionScenarios();
        streamScenarios();
        endScenarios();
        addressScenarios();
        listenerScenarios();
        Map<String, String> different = new TreeMap<>();
        List<String> same = new ArrayList<>();
        for (Map.Entry<String, Scenario> each : SCENARIOS.entrySet()) {
            Object expected = outcome(each.getValue(), new Tcp());
            Object found = outcome(each.getValue(), new Shm());
            String name = each.getKey().replaceFirst("^connected: ", "");
            if (expected.equals(found)) {
                same.add(name);
            } else {
                different.put(name, found + ", not " + expected);
            }
        }
        assertEquals(new TreeSet<>(DIFFERENT), different.keySet(), different.toString());
        assertTrue(same.size() >= 90 && same.size() + different.size() >= 97, same.size() + " are the same, " + different.size() + " are not");
    }
}
