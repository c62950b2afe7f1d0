// Routes of TLS connections that are passed on without decrypting them: by the server name and the
// protocols in the client's first message.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "proxy/balancer.hpp"
#include "wire/client_hello/parser.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace eddy::proxy {

/// Time for a client to send its ClientHello.
inline constexpr duration hello_time = std::chrono::seconds(10);

/// A route of TLS connections.
struct tls_route {
    std::string host;  ///< as of `route`; empty: all, and clients without a name
    std::string alpn;  ///< protocol that the client must offer; empty: any, or none
    std::shared_ptr<balancer> to = nullptr;
};

/// The routes in force, constant. Any thread.
class tls_route_table {
public:
    explicit tls_route_table(std::vector<tls_route> all);

    /// The route of a client: the most specific host, in the order of route_table; of its routes
    /// the one whose protocol the client offers first, then the one without a protocol. Null for
    /// none.
    const tls_route* find(const client_hello::contents& of) const noexcept;

private:
    std::vector<tls_route> all_;  // the most specific host first
};

/// Reads a ClientHello, within hello_time, and appends all that was received to `received`: at most
/// client_hello::max_bytes and what one read yields. Both must live until then. Yields a
/// result<client_hello::contents>, empty ones for a client that does not begin with a ClientHello:
/// errc::malformed, errc::limit_reached, errc::timed_out, errc::end_of_stream, errc::cancelled, or
/// the stream's error. A loop's thread.
task<result<client_hello::contents>> read_hello(stream& from, byte_buffer& received);

}  // namespace eddy::proxy
