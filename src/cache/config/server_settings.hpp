// Settings of the cache's server that the engine does not use itself: CONFIG and INFO show them,
// and CONFIG SET passes them on. The engine reaches them through server_host.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache {

/// TLS listener: redis.conf's parameters of about the same names.
struct tls_settings {
    std::uint16_t port = 0;  ///< 0: nowhere
    std::string cert_file;
    std::string key_file;
    std::string ca_cert_file;
    std::string ca_cert_dir;
    std::string auth_clients = "yes";  ///< "yes", "no" or "optional"
    std::string protocols;             ///< "TLSv1.2 TLSv1.3", or one of them; empty: both
    std::string ciphers;               ///< of TLS 1.2, as openssl-ciphers(1)
    std::string ciphersuites;          ///< of TLS 1.3
    bool prefer_server_ciphers = true;
    bool replication = false;  ///< the master is reached by TLS
};

/// Files and rewrites of the append-only file: redis.conf's parameters of about the same names.
struct append_file_settings {
    std::string filename = "appendonly.aof";
    std::string dirname = "appendonlydir";
    std::uint64_t rewrite_percentage = 100;  ///< growth since the last rewrite; 0: never by itself
    std::uint64_t rewrite_min_size = 64U << 20;
    bool load_truncated = true;        ///< an incomplete last command is cut off
    bool use_rdb_preamble = true;      ///< a rewrite writes RDB, not commands
    bool no_fsync_on_rewrite = false;  ///< while a rewrite is on its way
};

/// Links to a master and to sentinels: redis.conf's parameters of about the same names.
struct replica_settings {
    std::string master_host;  ///< at the start; empty: it is no replica
    std::uint16_t master_port = 0;
    std::string master_user;
    std::string master_password;
    std::string source_address;  ///< of connections to a master; empty: the system chooses
    std::string announce_ip;
    std::uint16_t announce_port = 0;
    bool announced = true;                 ///< to sentinels, which leave others alone
    std::int64_t priority = 100;           ///< for sentinels
    std::int64_t shutdown_timeout_s = 10;  ///< a stop waits so long for replicas to have everything
    /// A transaction in a master's stream, in bytes of the stream. One that grows beyond it ends
    /// the link, and all data is taken anew then.
    std::size_t max_transaction = 1U << 30;
};

/// Address of the server, for INFO.
struct listening_place {
    enum class by : std::uint8_t { tcp, unix_socket, tls };
    by kind = by::tcp;
    std::string bind;        ///< an address, "*" for all, or a socket's path
    std::uint16_t port = 0;  ///< 0: a socket has none
};

/// The defaults are those of an engine without a server.
struct server_settings {
    // Listeners.
    std::uint16_t port = 0;  ///< 0: no listener without TLS
    std::vector<listening_place> listening;
    tls_settings tls;
    std::size_t threads = 1;  ///< that serve clients

    // Connections.
    /// As long as the default user needs no password, only clients of this machine are served.
    bool protected_mode = true;
    std::uint64_t max_clients = 10'000;
    std::chrono::nanoseconds client_timeout{};  ///< of one that is silent; 0: none
    /// Silence after which a TCP client is probed by keepalive; 0: never.
    std::chrono::seconds tcp_keepalive{300};
    /// client-query-buffer-limit: bytes of one client's commands that wait for others, or for it to
    /// take its replies.
    std::size_t max_query_buffer = 64U << 20;

    replica_settings replica;

    // Files.
    std::string dir;  ///< empty: nothing is kept on disk
    std::string dbfilename = "dump.rdb";
    append_file_settings append_file;
    std::string acl_file;  ///< for ACL SAVE and ACL LOAD; empty: there is none
    /// Pauses for test suites, in microseconds for each key: of what writes and reads files and
    /// copies for replicas. Below 0: one microsecond for so many keys.
    std::int64_t save_key_delay_us = 0;
    std::int64_t load_key_delay_us = 0;

    /// Values of parameters without an effect, by name.
    std::vector<std::pair<std::string_view, std::string>> remembered;
};

}  // namespace eddy::cache
