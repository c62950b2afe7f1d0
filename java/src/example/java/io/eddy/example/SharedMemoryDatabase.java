// JDBC over shared memory: `eddy create proxy gw -p 5433 --backend 127.0.0.1:5432 --shm -s` listens at `:5433`.
package io.eddy.example;

import io.eddy.shm.ShmSocketFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Properties;

/** Connections of PostgreSQL's driver. */
public final class SharedMemoryDatabase {
    private SharedMemoryDatabase() {}

    /** A connection through the listener at this path; the driver's second one, that cancels a statement, goes there, too. */
    public static Connection connect(String path, String database, String user) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", user);
        properties.setProperty("socketFactory", ShmSocketFactory.class.getName());
        properties.setProperty("socketFactoryArg", path);
        return DriverManager.getConnection("jdbc:postgresql://localhost/" + database, properties);
    }
}
