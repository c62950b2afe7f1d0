// Plan of a client: its server and options, which the clients of a pool with the same server share.
#pragma once

#include <eddy/http/client.hpp>
#include <eddy/transport/transport.hpp>

#include <string>

namespace eddy::http::detail {

/// Constant once it is made. One loop's thread: its connector and check are called there.
struct client_plan {
    client_plan(transport::address server, client_options chosen);

    transport::address at;
    client_options options;
    std::string host;  ///< the value of Host where a request has none
};

}  // namespace eddy::http::detail
