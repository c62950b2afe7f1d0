// Server and client over shared memory, as README.md quotes them.
//
//     java -cp eddy-shm.jar io/eddy/example/Greeting.java :4242 &
//     java -cp eddy-shm.jar io/eddy/example/Greeting.java :4242 Ada
package io.eddy.example;

import io.eddy.shm.ShmServerSocket;
import io.eddy.shm.ShmSocket;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;

/** A socket's program with another class of socket. */
public final class Greeting {
    private Greeting() {}

    /** Greets one client of the listener at a path. */
    public static void serve(String path) throws IOException {
        try (ServerSocket server = new ShmServerSocket(path); Socket peer = server.accept()) {
            String name = new String(peer.getInputStream().readAllBytes());
            peer.getOutputStream().write(("hello, " + name).getBytes());
        }
    }

    /** The greeting for a name. */
    public static String ask(String path, String name) throws IOException {
        try (Socket socket = new ShmSocket(path)) {
            socket.getOutputStream().write(name.getBytes());
            socket.shutdownOutput();
            return new String(socket.getInputStream().readAllBytes());
        }
    }

    /** With a path alone it serves a client, with a name it asks. */
    public static void main(String[] arguments) throws IOException {
        if (arguments.length == 1) {
            serve(arguments[0]);
        } else {
            System.out.println(ask(arguments[0], arguments[1]));
        }
    }
}
