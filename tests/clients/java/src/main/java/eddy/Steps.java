// The steps of a client's program: each runs by itself and prints how it went (tests/clients/run.py).
package eddy;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.concurrent.Callable;

final class Steps {
    static final int PORT = Integer.parseInt(System.getenv("EDDY_CLIENT_PORT"));
    static final boolean RESP3 = "3".equals(System.getenv("EDDY_CLIENT_RESP"));
    private static final long DEADLINE_MS = 15_000;
    private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));
    private static boolean failed;

    /** Why a step cannot be done with this server or this library. */
    static final class NotYet extends RuntimeException {
        NotYet(String why) {
            super(why);
        }
    }

    interface Body {
        void run() throws Exception;
    }

    static void say(String line) {
        System.out.println(line.replace('\n', '|'));
        System.out.flush();
    }

    /** The version of the library that a class comes from, by its jar's name. */
    static void version(Class<?> type) {
        String jar = type.getProtectionDomain().getCodeSource().getLocation().getPath();
        say("version " + jar.replaceAll(".*/[a-z-]+-(\\d.*)\\.jar", "$1"));
    }

    static void step(String name, Body body) {
        Throwable[] outcome = {new AssertionError("it was not done in time")};
        Thread thread = new Thread(() -> {
            try {
                body.run();
                outcome[0] = null;
            } catch (Throwable error) {
                outcome[0] = error;
            }
        });
        thread.setDaemon(true);
        thread.start();
        try {
            thread.join(4 * DEADLINE_MS);
        } catch (InterruptedException error) {
            outcome[0] = error;
        }
        if (outcome[0] == null) {
            say("ok " + name);
        } else if (outcome[0] instanceof NotYet why) {
            say("not yet " + name + ": " + why.getMessage());
        } else {
            failed = true;
            outcome[0].printStackTrace();
            say("FAILED " + name + ": " + outcome[0]);
        }
    }

    static void finish() {
        System.exit(failed ? 1 : 0);
    }

    static void is(Object actual, Object expected) {
        if (!Objects.equals(actual, expected)) {
            throw new AssertionError(actual + ", but " + expected + " was due");
        }
    }

    static void fails(Class<? extends Throwable> type, String text, Body body) throws Exception {
        try {
            body.run();
        } catch (Throwable error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (type.isInstance(cause) && String.valueOf(cause.getMessage()).contains(text)) {
                    return;
                }
            }
            throw new AssertionError(error + ", but " + type.getSimpleName() + " with " + text + " was due", error);
        }
        throw new AssertionError("it went well, but " + type.getSimpleName() + " was due");
    }

    static void eventually(String what, Callable<Boolean> condition) throws Exception {
        long end = System.currentTimeMillis() + DEADLINE_MS;
        while (!condition.call()) {
            if (System.currentTimeMillis() > end) {
                throw new AssertionError(what + " did not come true");
            }
            Thread.sleep(20);
        }
    }

    static void restartServer() throws Exception {
        say("ask restart");
        is(INPUT.readLine(), "done");
    }

    /** Ends the step when the server lacks a command; asked without any library. */
    static void needs(String... commands) throws Exception {
        for (String command : commands) {
            // A subcommand without arguments changes nothing.
            String question = command.contains("|") ? command.replace('|', ' ') : "COMMAND INFO " + command;
            try (Socket socket = new Socket("127.0.0.1", PORT)) {
                socket.getOutputStream().write((question + "\r\nQUIT\r\n").getBytes(StandardCharsets.US_ASCII));
                String reply = new String(socket.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1);
                if (reply.startsWith("-ERR unknown ") || reply.startsWith("*1\r\n*-1") || reply.startsWith("*1\r\n$-1")) {
                    throw new NotYet("the server has no " + command.toUpperCase().replace('|', ' '));
                }
            }
        }
    }

    /** Bytes of every value, and some that look like the protocol. */
    static byte[] everything() {
        byte[] bytes = new byte[263];
        for (int i = 0; i < 256; ++i) {
            bytes[i] = (byte) i;
        }
        System.arraycopy("\r\n$5\r\n*".getBytes(StandardCharsets.US_ASCII), 0, bytes, 256, 7);
        return bytes;
    }

    private Steps() {
    }
}
