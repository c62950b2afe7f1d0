// Checks by a connection, a request, or a command.
#include "runtime/program/health.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/http/client.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/transport/transport.hpp>

#include <fmt/format.h>

#include <chrono>
#include <string_view>
#include <utility>

namespace eddy::runtime::program {
namespace {

/// The first status that is no success of a check.
constexpr int first_refusal = 400;

task<result<int>> status_of(const health_check& by, duration timeout) {
    http::client_options how;
    how.connect.timeout = timeout;
    http::client client(by.where.where, std::move(how));
    http::client_request request;
    request.target = by.target;
    for (const auto& [name, value] :
         {std::pair<std::string_view, std::string_view>("Host", by.host),
          {"User-Agent", "eddy"},
          {"Connection", "close"}})
        if (auto added = request.headers.add(name, value); !added) co_return fail(added.error());
    auto response = co_await client.send(std::move(request));
    if (!response) co_return fail(response.error());
    co_return response->status;
}

task<std::string> check_command(const std::string& command, duration timeout, process_options how) {
    how.input = how.output = how.error = stdio::null;
    how.own_group = true;
    auto started = process::start({"/bin/sh", "-c", command}, how);
    if (!started) co_return fmt::format("exec: {}", started.error().message());
    const auto status = co_await with_timeout(timeout, started->wait());
    if (!status && status.error() == errc::timed_out)
        co_return "exec: the command took longer than --health-timeout";
    if (!status) co_return fmt::format("exec: {}", status.error().message());
    if (status->success()) co_return std::string();
    co_return status->signal > 0
        ? fmt::format("exec: the command was ended by signal {}", status->signal)
        : fmt::format("exec: the command ended with status {}", status->code);
}

}  // namespace

task<std::string> check_health(const health_check& by, duration timeout, process_options how) {
    using kind = health_check::kind;
    EDDY_ASSERT(timeout > duration{});
    if (by.by == kind::none) co_return std::string();
    if (by.by == kind::exec) co_return co_await check_command(by.command, timeout, std::move(how));
    if (by.by == kind::tcp) {
        tcp::connect_options options;
        options.timeout = timeout;
        const auto connected =
            co_await with_timeout(timeout, transport::connect(by.where.where, options));
        if (connected) co_return std::string();
        co_return fmt::format("{}: {}", by.where.where.to_string(), connected.error().message());
    }
    const auto status = co_await with_timeout(timeout, status_of(by, timeout));
    if (!status)
        co_return fmt::format("http://{}{}: {}", by.host, by.target, status.error().message());
    if (*status < first_refusal) co_return std::string();
    co_return fmt::format("http://{}{} answered with {}", by.host, by.target, *status);
}

}  // namespace eddy::runtime::program
