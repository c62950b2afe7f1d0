// Addresses as URIs, and the listener, stream or datagram socket that each opens.
//
//     tcp://127.0.0.1:6379   tcp://[::1]:6379   tcp://db.example:6379   tcp://:6379 (every address)
//     udp://127.0.0.1:514    unix:///run/eddy/control.sock    unix://@name (abstract)
//     tls://db.example:6380   tls://db.example:6380?ca=/etc/ca.pem   (connecting)
//     tls://10.0.0.7:6380?name=db.example
//     tls://*:6380?cert=/etc/tls/db.pem&key=/etc/tls/db.key          (listening)
//     tls://*:6380?cert=/etc/tls/db.pem&ca=/etc/ca.pem&clients=optional&min=1.3
//     shm:///run/eddy/db.sock   shm://@name?allow=33   shm://:4242   (shared memory; a port)
//     handoff:///run/eddy/chat.sock                                  (listening: handed over)
//     handoff:///run/eddy/chat.sock?type=stream&mode=0600&allow=33,1000
//
// Callers hold a URI and get a stream; only this file chooses the protocol. Opening belongs to one
// loop's thread, parsing to any.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/net/tcp.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

/// Addresses as URIs, and what they open.
namespace eddy::transport {

/// The part before the "://".
enum class scheme : std::uint8_t { tcp, udp, unix_socket, tls, shm, handoff };

/// "tcp", "udp", "unix", "tls", "shm", "handoff".
std::string_view to_string(scheme kind) noexcept;

/// Most sets of tls_parameters whose files the process keeps in memory for connect(); beyond that
/// the least recently used set is read again.
inline constexpr std::size_t max_kept_tls_contexts = 64;

/// Certificates of a folder that a listener serves.
inline constexpr std::size_t max_folder_certificates = 1000;

/// The part after the `?` of a tls URI, as name=value joined by `&`, taken literally; the names are
/// those of the members, and an empty one is not given. Each listen() reads the PEM files, and the
/// listener keeps what it has read until renew(). A connect() reads them again if one of them was
/// written to or replaced since (of a folder, if a file came or went): a renewed certificate is
/// used from the next connection on. The system's list of authorities is read once. Members of the
/// other side only have no effect: `clients` and `prefer` of a connecting side, `verify` and `name`
/// of a listener.
struct tls_parameters {
    /// Certificate chain; a listener needs one, a client may have one. A listener's may be a
    /// folder of up to max_folder_certificates files NAME.pem, each with its key, or with NAME.key
    /// beside it: each serves the names that stand in it (SNI), the first one by name all others.
    std::string cert = {};
    std::string key = {};  ///< the certificate's private key; empty if it is in `cert`, too

    /// Authorities that sign the other side's certificates, a file or a folder. Without one clients
    /// trust the system's list. A listener with one refuses clients that show no certificate.
    std::string ca = {};

    /// For a listener: "yes", "optional" (a client may show a certificate, which must then be good)
    /// or "no". Empty: yes if there is a `ca`.
    std::string clients = {};
    /// For the connecting side: "name", the certificate must be for the host of the URI, or
    /// "chain", it must be signed by `ca`, which must then be given. Empty: "name". Code, but no
    /// URI, may set "none": any certificate will do, so any host can pose as the server.
    std::string verify = {};
    std::string min = {};           ///< the oldest version to speak, "1.2" or "1.3"; empty: 1.2
    std::string max = {};           ///< the newest; empty: 1.3
    std::string ciphers = {};       ///< of TLS 1.2, as tls::cipher_lists
    std::string ciphersuites = {};  ///< of TLS 1.3, as tls::cipher_lists

    /// For a listener, the order of ciphers that counts: "server" or "client". Empty: "server".
    std::string prefer = {};
    /// Application protocols (ALPN), best first, joined by ',', such as "http/1.1". A client that
    /// offers some, but none of a listener's, is refused. Empty: none.
    std::string alpn = {};
    /// For the connecting side: "no" makes each handshake a full one. Empty: "yes". No URI sets it.
    std::string resume = {};
    /// For the connecting side: the server's name, which is requested (SNI) and which its
    /// certificate must be for, in the place of the URI's host: a host name or a numeric address.
    std::string name = {};
    /// The same texts; files are not compared.
    friend bool operator==(const tls_parameters&, const tls_parameters&) = default;
};

/// The part after the `?` of a handoff URI, which therefore has no `?` in its path; an empty one is
/// not given.
struct handoff_parameters {
    /// Type of the Unix socket, "seqpacket" or "stream". Empty: "seqpacket".
    std::string type = {};
    /// Permissions of the socket's file, in octal digits. Empty: "0660". Not for "@name", which has
    /// no file.
    std::string mode = {};
    /// Numbers of the effective users that may hand over, joined by ',', at most max_handoff_users.
    /// Empty: all that may connect; for "@name", to which all users may connect, the own user and
    /// root.
    std::string allow = {};
    /// The same texts.
    friend bool operator==(const handoff_parameters&, const handoff_parameters&) = default;
};

/// The part after the `?` of a shm URI, which therefore has no `?` in its path.
struct shm_parameters {
    /// Numbers of the effective users allowed at the other side (clients of a listener, servers of
    /// a connecting side), joined by ',', at most max_handoff_users. Empty: the own user and root.
    std::string allow = {};
    /// The same texts.
    friend bool operator==(const shm_parameters&, const shm_parameters&) = default;
};

/// Most users in handoff_parameters::allow or shm_parameters::allow.
inline constexpr std::size_t max_handoff_users = 64;

/// Most bytes of a handed-over socket's message.
inline constexpr std::size_t max_handoff_message = std::size_t{128} * 1024;

/// A parsed URI. Host and port for tcp, udp and tls; a path for unix, shm and handoff.
struct address {
    /// The protocol.
    scheme kind = scheme::tcp;
    std::string host;  ///< a name or numeric address without brackets; empty for every address

    /// In host order; 0 lets the kernel choose, for listeners.
    std::uint16_t port = 0;
    std::string path;                 ///< absolute, or "@name"; of shm also ":4242"
    tls_parameters tls = {};          ///< only of tls
    handoff_parameters handoff = {};  ///< only of handoff
    shm_parameters shm = {};          ///< only of shm

    /// The URI again, in its usual form.
    std::string to_string() const;
    /// The same in every part; names are compared as they were written.
    friend bool operator==(const address&, const address&) = default;
};

/// URIs longer than this are errc::bad_address.
inline constexpr std::size_t max_uri_size = 1024;

/// Reads a URI; errc::bad_address when it is none of the forms above, or the scheme is unknown.
/// A port must be given; paths are taken literally, without percent-decoding.
[[nodiscard]] result<address> parse(std::string_view uri);

/// The reason of a failed open, as one sentence for the author of the URI, with what to do where
/// that is known. `uri` and `error` as given to and returned by a function of this header.
std::string explain(std::string_view uri, std::error_code error);

/// Listens on the running loop. errc::bad_address; errc::unsupported for a scheme that carries no
/// streams or is not built in; errc::unusable_certificate, which explain() describes; else the
/// system's error. A tls listener's streams make their handshake while they are used, as those of
/// tls::listen().
///
/// A handoff listener yields the sockets that other processes pass to it, as handoff::hand_over()
/// does: connected sockets of any protocol, as plain streams. For each a process connects to the
/// Unix socket and sends one message with one descriptor (SCM_RIGHTS); the message, a JSON object
/// or a NUL byte, is read up to max_handoff_message and dropped. A handoff without a connected
/// stream socket is closed, and accept() keeps waiting. A sender has 5 s for its message, and at
/// most 1,024 senders without one are kept. While the process has few free descriptors, senders
/// wait. errc::unsupported on the simulator.
///
/// A shm listener is one of shm::listen(), for this process's user and root where the address names
/// no others, with the permissions 0600 where listen_options::unix_mode does not give others.
///
/// Every user of the machine may connect to an abstract name, which has no permissions
/// (listen_options::unix_mode is EINVAL): check unix_socket::peer_credentials().
[[nodiscard]] result<listener> listen(std::string_view uri, const listen_options& options = {});
/// The same for a parsed URI.
[[nodiscard]] result<listener> listen(const address& where, const listen_options& options = {});

/// A listener split into the accepting part and the scheme's conversion of each connection: for a
/// server that moves connections to other loops before their first byte is read (stream::detach()).
struct listener_parts {
    /// Yields plain streams.
    listener below;
    /// Conversion of a plain stream, on its loop, to the scheme's.
    using finisher = std::function<task<result<stream>>(stream plain, duration timeout)>;
    /// Reads the files that an address of the same scheme names, for the handshakes from then on;
    /// on failure the previous ones stay in use.
    using renewer = std::function<result<>(const address& where)>;
    /// Makes the handshake, for at most `timeout`. Empty where the scheme adds nothing. It owns
    /// what it needs and may outlive `below`; any thread calls it, several at once. It yields a
    /// result<stream>; errors are those of tls::accept(), and `plain` is closed then. The caller
    /// bounds the number under way.
    finisher finish;
    /// Empty where the scheme reads no files. Any thread.
    renewer renew = nullptr;
};

/// Reads the files of a tls address again, for the later handshakes of a listener of listen(); the
/// address's host and port are ignored. On failure the previous ones stay in use:
/// errc::unusable_certificate. errc::unsupported for other listeners and schemes.
[[nodiscard]] result<> renew(listener& of, const address& where);

/// As listen(), in parts; errors are the same.
[[nodiscard]] result<listener_parts> listen_in_parts(const address& where,
                                                     const listen_options& options = {});

/// Connects. Yields a result<stream>. Errors as above, and errc::cancelled; for tcp those of
/// tcp::connect(), for tls also those of tls::connect(), for shm EACCES for a server of a user that
/// is not allowed. The URI is copied.
task<result<stream>> connect(std::string_view uri);
/// The same for a parsed URI, with TCP's options where TCP carries it.
task<result<stream>> connect(address where, tcp::connect_options options);

/// A datagram socket on the running loop; of the schemes above only udp has them, the others are
/// errc::unsupported. Else errc::bad_address, and the errors of udp::bind().
[[nodiscard]] result<datagram> bind_datagram(std::string_view uri,
                                             const datagram_options& options = {});
/// The same for a parsed URI.
[[nodiscard]] result<datagram> bind_datagram(const address& where,
                                             const datagram_options& options = {});

}  // namespace eddy::transport
