// HTTP of a server's client: static files of --http, and the request that makes it a WebSocket.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/http/static_files.hpp>

#include "runtime/server/client.hpp"
#include "serving/counters.hpp"

#include <cstdint>
#include <string_view>

namespace eddy::runtime::server {

class server_worker;

/// One connection's handler and observer; it lives while the client speaks HTTP. One loop's thread.
class http_visit final : public eddy::http::request_handler, public eddy::http::session_observer {
public:
    /// The first `counted_bytes` that it receives are counted already. `files` may be null: all
    /// requests but those for a WebSocket are refused.
    http_visit(server_worker& of, client& its, eddy::http::static_files* files,
               serving::counters& counted, serving::tally& requests,
               std::uint64_t counted_bytes) noexcept
        : worker_(of),
          client_(its),
          files_(files),
          counted_(counted),
          requests_(requests),
          counted_bytes_(counted_bytes) {}

    task<eddy::http::response> handle(eddy::http::request& incoming) override;
    eddy::http::response reject(int status, std::string_view what) override;
    void enter(eddy::http::session_state now) noexcept override;
    void note(const eddy::http::exchange_record& what) override;
    bool is_ending() const noexcept override;

private:
    task<eddy::http::response> answer_by_script(eddy::http::request& incoming);
    task<eddy::http::response> open_websocket(eddy::http::request& asked);
    task<eddy::http::response> serve(eddy::http::request& incoming);
    eddy::http::response refuse_request();

    server_worker& worker_;
    client& client_;
    eddy::http::static_files* files_;
    serving::counters& counted_;
    serving::tally& requests_;
    std::uint64_t counted_bytes_;  // of the first record, counted before
};

}  // namespace eddy::runtime::server
