// Handler that brings the service manager's status line up to date after each change.
#pragma once

#include <eddy/http/request.hpp>
#include <eddy/io/task.hpp>

#include "daemon/service/service_reports.hpp"

#include <string_view>

namespace eddy::daemon {

/// Passes requests on. Both outlive it; control loop.
class reporting_handler final : public http::request_handler {
public:
    reporting_handler(http::request_handler& to, service_reports& reports)
        : to_(to), reports_(reports) {}

    task<http::response> handle(http::request& request) override {
        const bool is_change = request.method() != "GET";
        http::response answer = co_await to_.handle(request);
        if (is_change) reports_.refresh();
        co_return answer;
    }
    http::response reject(int status, std::string_view what) override {
        return to_.reject(status, what);
    }

private:
    http::request_handler& to_;
    service_reports& reports_;
};

}  // namespace eddy::daemon
