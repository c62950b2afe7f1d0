// Exchange of a user agent: one request and its response over a connection, with interim responses
// skipped, early refusals, and the repetition of what met a connection that was closing.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/client.hpp>
#include <eddy/io/task.hpp>

#include "http/client/connection.hpp"
#include "http/client/plan.hpp"

#include <memory>

namespace eddy::http::detail {

/// Exchanges over the connection in `over`, which is null where there is none. One loop's thread.
class client_exchange {
public:
    /// Sends a request, and awaits the head of its response; client::send() says how. A connection
    /// in `over` must be reusable; one that is not quiet is replaced. After an error `over` is
    /// null. Both must live until then. Yields a result<client_response>; errors as of
    /// client::send().
    static task<result<client_response>> send(std::shared_ptr<client_connection>& over,
                                              std::shared_ptr<const client_plan> by,
                                              client_request request);
    /// Closes a connection that there may be; the body of a response ends with an error.
    static void close(std::shared_ptr<client_connection>& over) noexcept;

private:
    struct sending;

    static task<void> transmit(client_connection& to, const body& content, sending& state);
    static task<void> receive(client_connection& from, sending& state);
    static task<result<>> exchange(client_connection& with, client_request& request,
                                   const client_plan& by);
    static client_response make_response(const std::shared_ptr<client_connection>& from);
};

}  // namespace eddy::http::detail
