// Control API behind a key, which runtimes have whose scripts may change others. They are the same
// process as scripts that may not.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/http/request.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/task.hpp>

#include "base/secret.hpp"
#include "daemon/control/control_api.hpp"
#include "runtime/host/host.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace eddy::daemon {

/// Refuses requests without the key with 403. `to` outlives it; control loop.
class keyed_handler final : public http::request_handler {
public:
    keyed_handler(http::request_handler& to, std::string key) noexcept
        : to_(to), key_(std::move(key)) {
        EDDY_ASSERT(!key_.empty());
    }

    task<http::response> handle(http::request& incoming) override {
        const auto given = incoming.headers().find(runtime::control_key_header);
        if (!given || !is_same_secret(*given, key_))
            co_return error_response(403, "this socket is for runtimes with --lua-admin");
        co_return co_await to_.handle(incoming);
    }
    http::response reject(int status, std::string_view what) override {
        return to_.reject(status, what);
    }

private:
    http::request_handler& to_;
    const std::string key_;
};

}  // namespace eddy::daemon
