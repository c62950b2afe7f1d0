// Jedis over shared memory: `eddy create cache db -p 6379 --shm -s` listens at the path `:6379`.
package io.eddy.example;

import io.eddy.shm.ShmSocket;
import java.io.IOException;
import java.net.Socket;
import java.time.Duration;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionFactory;
import redis.clients.jedis.ConnectionPool;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisSocketFactory;
import redis.clients.jedis.exceptions.JedisConnectionException;

/** Clients of one cache. Any thread, as far as Jedis allows that. */
public final class SharedMemoryCache {
    private final JedisSocketFactory sockets;
    private final JedisClientConfig config;

    /** Clients of the cache at this path, which wait for a reply for so long. */
    public SharedMemoryCache(String path, Duration patience) {
        int milliseconds = (int) patience.toMillis();
        sockets = () -> {
            try {
                Socket socket = new ShmSocket(path);
                // Jedis takes the limit for replies from the socket.
                socket.setSoTimeout(milliseconds);
                return socket;
            } catch (IOException error) {
                throw new JedisConnectionException(error.getMessage(), error);
            }
        };
        config = DefaultJedisClientConfig.builder().socketTimeoutMillis(milliseconds).build();
    }

    /** A client of one connection. */
    public Jedis connect() {
        return new Jedis(sockets, config);
    }

    /** Connections that threads share, at most so many. */
    public ConnectionPool pool(int most) {
        ConnectionPoolConfig limits = new ConnectionPoolConfig();
        limits.setMaxTotal(most);
        return new ConnectionPool(new ConnectionFactory(sockets, config), limits);
    }

    /** A client of a pool's connection, which its close() returns. */
    public static Jedis borrow(ConnectionPool pool) {
        Connection connection = pool.getResource();
        return new Jedis(connection);
    }
}
