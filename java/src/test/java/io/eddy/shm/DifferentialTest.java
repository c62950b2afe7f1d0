// ShmSocket beside a Socket over TCP: the same calls have the same results and exceptions.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.inThread;
import static io.eddy.shm.Fixtures.name;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.StandardSocketOptions;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class DifferentialTest {
    private static final int RUNS = 60;
    private static final int CALLS = 25;

    /** One end, and the streams that were taken of it while that went. */
    private static final class End {
        final Socket socket;
        final InputStream in;
        final OutputStream out;

        End(Socket socket) throws Exception {
            this.socket = socket;
            in = socket.getInputStream();
            out = socket.getOutputStream();
        }
    }

    private interface Call {
        Object on(End end) throws Exception;
    }

    /** Calls whose results do not depend on how fast the peer's bytes, or its end, come. */
    private static Map<String, Call> calls() {
        Map<String, Call> made = new LinkedHashMap<>();
        made.put("getInputStream", end -> end.socket.getInputStream() != null);
        made.put("getOutputStream", end -> end.socket.getOutputStream() != null);
        made.put("write nothing", end -> {
            end.out.write(new byte[3], 3, 0);
            return "done";
        });
        made.put("write beyond", end -> {
            end.out.write(new byte[3], 2, 2);
            return "done";
        });
        made.put("write null", end -> {
            end.out.write(null, 0, 1);
            return "done";
        });
        made.put("flush", end -> {
            end.out.flush();
            return "done";
        });
        made.put("read nothing", end -> end.in.read(new byte[3], 3, 0));
        made.put("read before", end -> end.in.read(new byte[3], -1, 2));
        made.put("read null", end -> end.in.read(null, 0, 1));
        made.put("shutdownInput", end -> {
            end.socket.shutdownInput();
            return "done";
        });
        made.put("shutdownOutput", end -> {
            end.socket.shutdownOutput();
            return "done";
        });
        made.put("state", end -> Arrays.asList(end.socket.isClosed(), end.socket.isConnected(), end.socket.isBound(),
                end.socket.isInputShutdown(), end.socket.isOutputShutdown()));
        made.put("setSoTimeout", end -> {
            end.socket.setSoTimeout(77);
            return end.socket.getSoTimeout();
        });
        made.put("setSoTimeout of nothing", end -> {
            end.socket.setSoTimeout(-1);
            return "done";
        });
        made.put("bind", end -> {
            end.socket.bind(null);
            return "done";
        });
        made.put("connect to null", end -> {
            end.socket.connect(null);
            return "done";
        });
        made.put("connect with no time", end -> {
            end.socket.connect(null, -1);
            return "done";
        });
        made.put("setReceiveBufferSize", end -> {
            end.socket.setReceiveBufferSize(0);
            return "done";
        });
        made.put("setSendBufferSize", end -> {
            end.socket.setSendBufferSize(-1);
            return "done";
        });
        made.put("setTrafficClass", end -> {
            end.socket.setTrafficClass(256);
            return "done";
        });
        made.put("setSoLinger", end -> {
            end.socket.setSoLinger(true, -1);
            return "done";
        });
        made.put("getOption", end -> end.socket.getOption(StandardSocketOptions.SO_LINGER));
        made.put("getOption of null", end -> end.socket.getOption(null));
        made.put("close", end -> {
            end.socket.close();
            return "done";
        });
        return made;
    }

    /** The result, or the exception; those of null parameters have messages of the compiler's. */
    private static String outcome(Call call, End end) throws Exception {
        try {
            return inThread(() -> {
                try {
                    return String.valueOf(call.on(end));
                } catch (NullPointerException error) {
                    return "NullPointerException";
                } catch (Exception error) {
                    return error.getClass().getName() + ": " + error.getMessage();
                }
            }).get(Fixtures.DEADLINE_S, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            return "no end";
        }
    }

    @Test
    void callsHaveTheSameResultsAsThoseOfASocket() throws Exception {
        Map<String, Call> calls = calls();
        String[] names = calls.keySet().toArray(new String[0]);
        String name = name();
        try (ServerSocket tcp = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                ShmServerSocket shm = new ShmServerSocket(name)) {
            for (int run = 0; run < RUNS; ++run) {
                Random random = new Random(run);
                StringBuilder history = new StringBuilder("run " + run + ": ");
                try (Socket usual = new Socket(InetAddress.getLoopbackAddress(), tcp.getLocalPort());
                        Socket usualPeer = tcp.accept(); Socket ours = new ShmSocket(name); Socket ourPeer = shm.accept()) {
                    End first = new End(usual);
                    End second = new End(ours);
                    for (int i = 0; i < CALLS; ++i) {
                        String chosen = names[random.nextInt(names.length)];
                        history.append(chosen).append(", ");
                        assertEquals(outcome(calls.get(chosen), first), outcome(calls.get(chosen), second), history.toString());
                    }
                }
            }
        }
    }

    /** Bytes, ends and half-closes, where each call waits for what the one before it has brought. */
    @Test
    void bytesAndEndsComeAsThoseOfASocket() throws Exception {
        String name = name();
        try (ServerSocket tcp = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                ShmServerSocket shm = new ShmServerSocket(name)) {
            assertEquals(conversation(new Socket(InetAddress.getLoopbackAddress(), tcp.getLocalPort()), tcp.accept()),
                    conversation(new ShmSocket(name), shm.accept()));
        }
    }

    private static String conversation(Socket client, Socket server) throws Exception {
        StringBuilder found = new StringBuilder();
        try (client; server) {
            InputStream in = server.getInputStream();
            InputStream back = client.getInputStream();
            client.getOutputStream().write(new byte[] {1, -1, 3, 4, 5});
            found.append(in.read()).append(' ').append(in.read()).append(' ').append(in.skip(1)).append(' ');
            found.append(Arrays.toString(in.readNBytes(2))).append(in.available()).append(' ');
            server.getOutputStream().write(new byte[40]);
            found.append(back.readNBytes(20).length).append(' ');
            client.shutdownOutput();
            found.append(in.read()).append(' ').append(in.read(new byte[5])).append(' ').append(in.read()).append(' ');
            client.shutdownInput();
            found.append(back.read()).append(' ').append(back.read(new byte[5])).append(' ').append(back.available());
            try {
                client.getInputStream();
            } catch (java.net.SocketException error) {
                found.append(' ').append(error.getMessage());
            }
        }
        return found.toString();
    }
}
