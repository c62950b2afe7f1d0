// One HTTP connection of the control plane: requests in, answers out, keep-alive and pipelining,
// with a limit on everything that a client could let grow or take for ever.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/wire/http1.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// A request that has arrived whole.
struct request {
    std::string method;
    std::string path;  ///< still percent-encoded
    std::vector<http1::query_parameter> query;
    std::string body;

    /// The first value of a query parameter.
    std::optional<std::string_view> parameter(std::string_view name) const noexcept;
};

/// A body that comes bit by bit, such as a log that is followed.
class body_source {
public:
    virtual ~body_source() = default;
    /// Awaits the next piece, which may be empty; none ends the body. Cancelled when the client
    /// goes away.
    virtual task<std::optional<std::string>> next() = 0;
};

struct response {
    int status = 200;
    std::string content_type = "application/json";
    std::string body;
    std::string allow;                    ///< the field Allow of a 405
    std::unique_ptr<body_source> pieces;  ///< when set, instead of `body`
};

/// Answers requests. It outlives its sessions and hears of many at a time.
class request_handler {
public:
    virtual task<response> handle(request request) = 0;
    /// The answer to what is no valid request.
    virtual response reject(int status, std::string_view what) = 0;

protected:
    ~request_handler() = default;
};

struct session_limits {
    http1::limits parser{};
    /// From a request's first byte to its last: a client that is slower gets 408.
    duration request_time = std::chrono::seconds(15);
    /// How long a connection may stay open without a request.
    duration idle_time = std::chrono::seconds(60);
    /// How long the client may take to accept each piece of an answer.
    duration write_time = std::chrono::seconds(15);
    /// After an answer that ends the connection early, this much that the client still sends is
    /// read and thrown away, so that the answer reaches it.
    std::size_t linger_bytes = 4 * 1024 * 1024;
    duration linger_time = std::chrono::seconds(2);
};

/// Serves a connection until it ends. `handler` outlives the task.
task<void> serve(stream peer, request_handler& handler, session_limits limits);

}  // namespace eddy::http
