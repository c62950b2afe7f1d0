// PostgreSQL's driver over shared memory, through a proxy of the daemon to a real server.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.eventually;
import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static io.eddy.shm.Fixtures.random;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.eddy.example.SharedMemoryDatabase;
import java.io.StringReader;
import java.io.StringWriter;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.postgresql.copy.CopyManager;
import org.postgresql.core.BaseConnection;

@Timeout(120)
class JdbcTest {
    /** SQLSTATE of a statement that was cancelled. */
    private static final String QUERY_CANCELED = "57014";
    private static final int ROWS = 100_000;

    private static String path;

    @BeforeAll
    static void findTheDatabase() {
        path = System.getProperty("eddy.database", "");
        Assumptions.assumeFalse(path.isEmpty(),
                "there is no PostgreSQL behind a proxy over shared memory: tests/java_test.py starts them where they are");
    }

    private static Connection connect() throws SQLException {
        return SharedMemoryDatabase.connect(path, "postgres", "eddy");
    }

    private static void run(String... statements) throws SQLException {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            for (String each : statements) {
                statement.execute(each);
            }
        }
    }

    private static long count(String query) throws SQLException {
        try (Connection connection = connect(); Statement statement = connection.createStatement();
                ResultSet found = statement.executeQuery(query)) {
            assertTrue(found.next());
            return found.getLong(1);
        }
    }

    @BeforeEach
    void createTheTable() throws SQLException {
        run("DROP TABLE IF EXISTS ticks", "CREATE TABLE ticks (id int PRIMARY KEY, name text NOT NULL, data bytea)");
    }

    @Test
    void theProxySharesMemory() throws Exception {
        try (ShmSocket socket = new ShmSocket(path)) {
            assertTrue(socket.sharesMemory());
        }
    }

    @Test
    void insertsABatch() throws Exception {
        try (Connection connection = connect()) {
            connection.setAutoCommit(false);
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO ticks VALUES (?, ?, ?)")) {
                for (int i = 0; i < 2000; ++i) {
                    insert.setInt(1, i);
                    insert.setString(2, "tick " + i);
                    insert.setBytes(3, random(100, i));
                    insert.addBatch();
                }
                assertEquals(2000, Arrays.stream(insert.executeBatch()).sum());
            }
            assertEquals(0, count("SELECT count(*) FROM ticks"));
            connection.commit();
        }
        try (Connection connection = connect(); Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT id, name, data FROM ticks ORDER BY id")) {
            for (int i = 0; i < 2000; ++i) {
                assertTrue(rows.next());
                assertEquals(i, rows.getInt(1));
                assertEquals("tick " + i, rows.getString(2));
                assertArrayEquals(random(100, i), rows.getBytes(3));
            }
            assertFalse(rows.next());
        }
    }

    @Test
    void selectsManyRowsAtOnceAndByACursor() throws Exception {
        try (Connection connection = connect()) {
            connection.setAutoCommit(false);
            for (int fetched : new int[] {0, 1000}) {
                try (Statement statement = connection.createStatement()) {
                    statement.setFetchSize(fetched);
                    int seen = 0;
                    try (ResultSet rows = statement.executeQuery(
                            "SELECT i, repeat('x', 100) || i FROM generate_series(1, " + ROWS + ") AS i")) {
                        while (rows.next()) {
                            ++seen;
                            assertEquals(seen, rows.getInt(1));
                            assertTrue(rows.getString(2).endsWith("x" + seen));
                        }
                    }
                    assertEquals(ROWS, seen);
                }
            }
        }
    }

    @Test
    void copiesInAndOut() throws Exception {
        String lines = IntStream.range(0, ROWS).mapToObj(i -> i + "\tname " + i + "\t\\N\n").collect(Collectors.joining());
        try (Connection connection = connect()) {
            CopyManager copy = new CopyManager(connection.unwrap(BaseConnection.class));
            assertEquals(ROWS, copy.copyIn("COPY ticks FROM STDIN", new StringReader(lines)));
            StringWriter out = new StringWriter();
            assertEquals(ROWS, copy.copyOut("COPY (SELECT * FROM ticks ORDER BY id) TO STDOUT", out));
            assertEquals(lines, out.toString());
        }
    }

    @Test
    void aValueIsLargerThanTheRing() throws Exception {
        byte[] large = random(10_000_000, 3);
        try (Connection connection = connect();
                PreparedStatement insert = connection.prepareStatement("INSERT INTO ticks VALUES (1, 'large', ?)");
                PreparedStatement select = connection.prepareStatement("SELECT data FROM ticks")) {
            insert.setBytes(1, large);
            assertEquals(1, insert.executeUpdate());
            try (ResultSet rows = select.executeQuery()) {
                assertTrue(rows.next());
                assertArrayEquals(large, rows.getBytes(1));
            }
        }
    }

    @Test
    void aRunningStatementIsCancelled() throws Exception {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            CompletableFuture<Boolean> running = inThread(() -> statement.execute("SELECT pg_sleep(3600)"));
            eventually("the statement runs", () -> count("SELECT count(*) FROM pg_stat_activity"
                    + " WHERE state = 'active' AND query = 'SELECT pg_sleep(3600)'") == 1);
            statement.cancel();
            ExecutionException ended = assertThrows(ExecutionException.class, () -> get(running));
            assertEquals(QUERY_CANCELED, ((SQLException) ended.getCause()).getSQLState(), ended.toString());
            try (ResultSet still = statement.executeQuery("SELECT 1")) {
                assertTrue(still.next());
            }
        }
    }

    @Test
    void fourThreadsHaveAConnectionEach() throws Exception {
        List<CompletableFuture<Void>> all = new ArrayList<>();
        for (int thread = 0; thread < 4; ++thread) {
            int first = thread * 1000;
            all.add(inThread(() -> {
                try (Connection connection = connect();
                        PreparedStatement insert = connection.prepareStatement("INSERT INTO ticks VALUES (?, ?, NULL)");
                        PreparedStatement select = connection.prepareStatement("SELECT name FROM ticks WHERE id = ?")) {
                    for (int i = first; i < first + 500; ++i) {
                        insert.setInt(1, i);
                        insert.setString(2, "thread " + i);
                        assertEquals(1, insert.executeUpdate());
                        select.setInt(1, i);
                        try (ResultSet row = select.executeQuery()) {
                            assertTrue(row.next());
                            assertEquals("thread " + i, row.getString(1));
                        }
                    }
                }
                return null;
            }));
        }
        for (CompletableFuture<Void> each : all) {
            get(each);
        }
        assertEquals(2000, count("SELECT count(*) FROM ticks"));
    }
}
