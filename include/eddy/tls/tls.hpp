// TLS 1.2 and 1.3 (RFC 5246, RFC 8446) over any stream, as client and as server.
//
//     auto trust = tls::context::client();                      // once; copies are cheap
//     auto plain = co_await tcp::connect("example.org", 443);
//     auto secure = co_await tls::connect(std::move(*plain), *trust, "example.org");
//     auto sent = co_await secure->write_all("GET / HTTP/1.0\r\nHost: example.org\r\n\r\n");
//
// The result is an ordinary stream. Its close() and shutdown_write() signal an orderly end to the
// peer (close_notify); a connection that ends without one reads as errc::truncated, since a man in
// the middle could have cut it. abort() sends none, and so does a close(), or a destructor, after a
// write that failed, was cancelled or still waits. A stream does not know the messages of its user:
// one that ends in the middle of a message, whose end the close would be, calls abort().
//
// Once write_all() has returned, its bytes are encrypted and with the stream below, for TCP in the
// socket: a close() loses no more of them than one of the TCP connection would. The same holds for
// a try_write() that took all it was given. One that took a part has encrypted more than it
// returned, and part of that may be queued here: the next write must continue with exactly the
// bytes that were left, or it fails with EINVAL; a close() before that loses the queued bytes, and
// the peer reads errc::truncated. A single byte is always left to write_all().
//
// close_notify waits for room like everything else, but not beyond close(): on a socket that is
// full at that moment it is lost, also after shutdown_write(), and the peer reads every byte and
// then errc::truncated. Besides, closing a TCP connection before all bytes of the peer were read
// may cost the peer the last bytes, and a TLS 1.3 server sends something by itself at the
// beginning. To be sure of an orderly end, call shutdown_write() and read until the end before
// close(): after shutdown_write() a read yields errc::end_of_stream only once close_notify is with
// the stream below.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// TLS over any stream.
namespace eddy::tls {

/// Protocol versions; older ones are not spoken.
enum class version : std::uint8_t { tls1_2, tls1_3 };

/// A certificate and its private key. Each is the path of a PEM file, or PEM text itself,
/// recognised by its "-----BEGIN". The chain begins with the own certificate; its signers follow.
/// Keys with a pass phrase are not read, nor files that are not regular ones or have over 16 MiB.
struct certificate {
    std::string chain = {};  ///< the own certificate first
    std::string key = {};    ///< the private key of the chain's first certificate
};

/// Accepted ciphers: OpenSSL's names joined by ':', best first, as openssl-ciphers(1) reads them.
/// An empty list: the ciphers that OpenSSL and the system's policy for it allow.
struct cipher_lists {
    std::string tls1_2 = {};  ///< "ECDHE+AESGCM:ECDHE+CHACHA20", or "DEFAULT@SECLEVEL=2"
    std::string tls1_3 = {};  ///< "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
};

/// Options of context::client().
struct client_options {
    /// Check the server's certificate and its name. Without it any host can pose as the server.
    bool verify = true;
    /// With `verify`: check the name, too. Without it any holder of a certificate of `ca` can pose
    /// as the server, so `ca` should sign for no other host. For servers reached by addresses that
    /// stand in no certificate.
    bool verify_name = true;
    /// Trusted authorities: a PEM file, PEM text, or a folder as of openssl-rehash(1), read when
    /// the context is made. Empty: the system's own list. A self-signed certificate is trusted by
    /// naming it here.
    std::string ca = {};
    /// Application protocols, best first, as "h2" (RFC 7301); each 1 to 255 bytes.
    std::vector<std::string> alpn = {};
    /// Keep the sessions that servers offer, so that later handshakes with them cost less.
    bool resume = true;
    /// Sent to servers that request one; empty for none.
    certificate own = {};
    version min = version::tls1_2;  ///< the oldest version to speak
    version max = version::tls1_3;  ///< the newest
    cipher_lists ciphers = {};      ///< what to offer, best first
};

/// Certificates that a server requests of its clients.
enum class client_verification : std::uint8_t {
    off,       ///< not requested
    optional,  ///< a client may show a certificate, which must be good then
    required,  ///< a client without a good certificate is refused
};

/// Options of context::server().
struct server_options {
    /// At least one. Each serves the names that stand in it, also "*.example.org"; a client that
    /// requests no name (SNI, RFC 6066) or another one gets the first.
    std::vector<certificate> certificates = {};
    /// Application protocols, best first. A client that offers some, but none of these, is refused;
    /// one that offers none is served.
    std::vector<std::string> alpn = {};
    /// Request for certificates of clients.
    client_verification clients = client_verification::off;
    /// Authorities for clients' certificates: as client_options::ca, but never the system's list.
    std::string client_ca = {};
    /// Let clients resume sessions (session tickets). The server stores nothing for them.
    bool tickets = true;
    version min = version::tls1_2;  ///< the oldest version to speak
    version max = version::tls1_3;  ///< the newest

    /// The ciphers to accept. In an empty list AES-128-GCM with ephemeral keys comes first: it
    /// costs less than AES-256, and neither can be broken.
    cipher_lists ciphers = {};
    /// Prefer the order of `ciphers` to the client's, except that a client whose first choice is
    /// ChaCha20, such as one without instructions for AES, gets it.
    bool prefer_own_ciphers = true;
};

class context_state;

/// Shared state of the connections of one kind: keys, trusted authorities and, for clients, the
/// sessions to resume. Immutable and cheap to copy. Any thread, several at once.
class context {
public:
    /// Reads the files that the options name, within this call. The error is a sentence that names
    /// the file, the fault and the remedy.
    static std::expected<context, std::string> client(const client_options& options = {});
    /// The same for servers.
    static std::expected<context, std::string> server(const server_options& options);

    /// For the library itself.
    const context_state& state() const noexcept { return *state_; }

private:
    explicit context(std::shared_ptr<const context_state> state) noexcept
        : state_(std::move(state)) {}
    std::shared_ptr<const context_state> state_;
};

/// Most servers' names of which a client context keeps a session; further ones replace others.
inline constexpr std::size_t max_kept_sessions = 1024;

/// Most leases on decrypted bytes, of up to 16 KiB each, that the TLS streams of one thread lend at
/// one time. A read() beyond that fails with errc::no_buffers, and another one succeeds once leases
/// have been given back.
inline constexpr std::size_t max_lent_records = 16 * 1024;

/// Limit on a handshake; then errc::timed_out.
inline constexpr duration default_handshake_timeout = std::chrono::seconds(10);

/// Makes the handshake as a client over `plain`, on the running loop. `server_name` is the host
/// name or numeric address that the certificate must be for; names are sent as SNI; it is copied.
/// `as` must be a client's context. Yields the encrypted stream, as a result<stream>. Fails with
///   errc::untrusted_certificate, certificate_name_mismatch, certificate_expired  of the server's,
///   errc::certificate_refused   the server does not accept ours, or wants one (with TLS 1.3 it may
///                               say so only to the first read),
///   errc::no_common_protocol    no version, cipher or application protocol suits both,
///   errc::not_tls               the peer speaks something else,
///   errc::handshake_failed      anything else that goes against the protocol,
///   errc::timed_out, truncated (closed in the middle), cancelled, and the errors of `plain`,
/// and closes `plain`.
task<result<stream>> connect(stream plain, context as, std::string_view server_name,
                             duration timeout = default_handshake_timeout);

/// The same as a server. `as` must be a server's context. After a refused handshake it reads until
/// the client's end, at most a second without a byte and 5 s in all, so that the alert reaches the
/// client.
task<result<stream>> accept(stream plain, context as, duration timeout = default_handshake_timeout);

/// At most so many handshakes of a listener are under way at once.
inline constexpr std::size_t default_max_handshakes = 1024;

/// Limit on a handshake while the listener is at its limit of them and a connection waits in
/// accept(). Silent clients hold their places no longer, and a client within this time is never
/// given up for another.
inline constexpr duration pressed_handshake_timeout = std::chrono::seconds(1);

/// A listener whose accept() yields TLS streams at once, so that a slow client delays no other: the
/// handshake runs while the stream is used, and if it fails, reads and writes fail with the errors
/// above. `as` must be a server's context.
///
/// At most `max_handshakes` (not 0) yielded streams have an incomplete handshake. At that limit
/// accept() waits until one of these completes, fails or is closed, or until the oldest reaches
/// pressed_handshake_timeout and fails with errc::timed_out. New connections wait in the backlog of
/// `plain` meanwhile.
listener listen(listener plain, context as, duration timeout = default_handshake_timeout,
                std::size_t max_handshakes = default_max_handshakes);

/// Replaces the context of a listener of listen() by another server's context, from the next
/// handshake on. False for any other listener.
bool renew(listener& of, context as);

/// Negotiated properties of a connection.
struct connection_info {
    std::string version;         ///< "TLSv1.3"
    std::string cipher;          ///< "TLS_AES_256_GCM_SHA384"
    std::string alpn;            ///< empty when none was agreed on
    std::string server_name;     ///< the client's request by SNI
    std::string peer_subject;    ///< of the peer's certificate (RFC 2253); empty when it has none
    bool peer_verified = false;  ///< it has one, and that was checked
    bool resumed = false;        ///< an earlier session was resumed
};

/// True for a TLS stream, also before its handshake is complete.
bool is_tls(const stream& connection) noexcept;

/// Properties of a TLS stream whose handshake is complete; none for any other stream.
std::optional<connection_info> info(const stream& connection);

}  // namespace eddy::tls
