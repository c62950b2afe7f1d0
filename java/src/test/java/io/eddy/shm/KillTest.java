// Very many peers that are killed.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.eventually;
import static io.eddy.shm.Fixtures.readExactly;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.Socket;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(600)
class KillTest {
    private final AtomicInteger accepted = new AtomicInteger();
    private final AtomicInteger reset = new AtomicInteger();
    private final AtomicInteger ended = new AtomicInteger();

    private void echo(Socket peer) throws IOException {
        byte[] buffer = new byte[1000];
        try (peer) {
            for (int size; (size = peer.getInputStream().read(buffer)) >= 0;) {
                peer.getOutputStream().write(buffer, 0, size);
            }
            ended.incrementAndGet();
        } catch (SocketException died) {
            reset.incrementAndGet();
        }
    }

    /** Count of the killed processes, each of which had connected, or was about to: tests/shm_killed.py. */
    private static int kill(String path, int count) throws Exception {
        Process killing = new ProcessBuilder("python3", "-B", System.getProperty("eddy.killed"), path, "" + count)
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String printed = new String(killing.getInputStream().readAllBytes()).trim();
        assertEquals(0, killing.waitFor(), printed);
        return Integer.parseInt(printed);
    }

    /** 1,000 of them; {@code -Deddy.kills=10000} takes less than a minute. */
    @Test
    void peersThatAreKilledLeaveNothing(@TempDir Path folder) throws Exception {
        int count = Integer.getInteger("eddy.kills", 1000);
        Path path = folder.resolve("sock");
        ExecutorService threads = Executors.newCachedThreadPool(work -> {
            Thread thread = new Thread(work);
            thread.setDaemon(true);
            return thread;
        });
        // The peers that are killed ring by the socket alone.
        ShmOptions options = ShmOptions.DEFAULT.withDoorbell(ShmOptions.Doorbell.SOCKET);
        try (ShmServerSocket server = new ShmServerSocket(path.toString(), options)) {
            threads.submit(() -> {
                for (;;) {
                    Socket peer = server.accept();
                    accepted.incrementAndGet();
                    threads.submit(() -> {
                        echo(peer);
                        return null;
                    });
                }
            });
            try (ShmSocket survivor = new ShmSocket(path.toString())) {
                kill(path.toString(), 2);
                eventually("all but one have ended", () -> accepted.get() == reset.get() + 1);
                long before = Fixtures.resources();
                assertEquals(count, kill(path.toString(), count));
                eventually("all but one have ended", () -> accepted.get() == reset.get() + 1);
                assertEquals(0, ended.get(), "peers that seemed to have finished");
                assertTrue(reset.get() >= count / 2, reset + " of " + count + " peers had connected");
                eventually("everything closed and unmapped", () -> Fixtures.resources() <= before);
                survivor.getOutputStream().write(new byte[] {4, 2});
                assertEquals(2, readExactly(survivor.getInputStream(), 2)[1]);
            }
            try (var files = Files.list(folder)) {
                assertEquals(List.of(path), files.toList());
            }
        } finally {
            threads.shutdownNow();
        }
        assertFalse(Files.exists(path));
    }
}
