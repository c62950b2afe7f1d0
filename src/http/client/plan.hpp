// Plan of connections: a server and the options of reaching it, which all connections share that
// are as good as each other.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/client.hpp>
#include <eddy/io/task.hpp>
#include <eddy/transport/transport.hpp>

#include "http/client/connection.hpp"

#include <memory>
#include <string>

namespace eddy::http::detail {

/// Constant once it is made. One loop's thread: its connector and check are called there.
struct client_plan {
    /// Over TLS it offers http/1.1 by ALPN.
    client_plan(transport::address server, client_options chosen);

    transport::address at;
    client_options options;
    std::string host;  ///< the value of Host where a request has none
};

/// Opens a connection by a plan. Yields a result<std::shared_ptr<client_connection>>: the error of
/// connecting, or the check's.
task<result<std::shared_ptr<client_connection>>> open_connection(
    std::shared_ptr<const client_plan> by);

}  // namespace eddy::http::detail
