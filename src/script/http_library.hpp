// Requests of scripts to HTTP servers.
#pragma once

#include <eddy/http/client_pool.hpp>

#include "script/library.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace eddy::script {

struct http_limits {
    /// Bytes of a response's content, decoded.
    std::size_t content = std::size_t{16} << 20;
    /// Bytes of the contents of all responses that are being received.
    std::size_t receiving = std::size_t{64} << 20;
    /// Limit on a whole request, where a script gives no limit.
    duration timeout = std::chrono::seconds(30);
    /// Connections, and requests that wait for one.
    std::size_t connections = 128;
    std::size_t waiting = 1024;
    /// Responses whose content scripts read in pieces.
    std::size_t streams = 100;
};

/// Connections of one Lua state to HTTP servers. A response that is read in pieces belongs to the
/// call that has asked for it, and ends with it. It must outlive the host. One loop's thread.
class http_requests {
public:
    /// `authorities`: a file or folder of certificates that servers are verified by; empty for the
    /// system's.
    explicit http_requests(http_limits limits = {}, std::string authorities = {});
    ~http_requests();

    /// Responses whose content is read in pieces, at the time.
    std::size_t streams() const noexcept { return streams_.size(); }

    /// Function http() of a table.
    library functions(const char* table = "eddy") noexcept;

private:
    friend struct http_functions;
    struct stream;

    void close_of(const call& of) noexcept;

    const http_limits limits_;
    std::size_t receiving_ = 0;  // see http_limits::receiving
    http::client_pool pool_;
    std::uint64_t last_id_ = 0;
    std::unordered_map<std::uint64_t, std::shared_ptr<stream>> streams_;
};

/// Defines in Lua: the objects of responses that are read in pieces. Behind
/// http_requests::functions().
std::string_view http_prelude() noexcept;

}  // namespace eddy::script
