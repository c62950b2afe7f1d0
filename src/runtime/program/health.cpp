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

task<health_result> check_command(const std::string& command, duration timeout,
                                  process_options how) {
    how.input = how.output = how.error = stdio::null;
    how.own_group = true;
    health_result made;
    auto started = process::start({"/bin/sh", "-c", command}, how);
    if (!started) {
        made.fault = fmt::format("exec: {}", started.error().message());
        co_return made;
    }
    const auto status = co_await with_timeout(timeout, started->wait());
    made.was_killed = !status;
    if (!status && status.error() == errc::timed_out)
        made.fault = "exec: the command took longer than --health-timeout";
    else if (!status)
        made.fault = fmt::format("exec: {}", status.error().message());
    else if (status->signal > 0)
        made.fault = fmt::format("exec: the command was ended by signal {}", status->signal);
    else if (!status->success())
        made.fault = fmt::format("exec: the command ended with status {}", status->code);
    co_return made;
}

/// Checks over the network: why one failed.
task<std::string> check_network(const health_check& by, duration timeout) {
    if (by.by == health_check::kind::tcp) {
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

}  // namespace

task<health_result> check_health(const health_check& by, duration timeout, process_options how) {
    using kind = health_check::kind;
    EDDY_ASSERT(timeout > duration{});
    health_result made;
    if (by.by == kind::exec) co_return co_await check_command(by.command, timeout, std::move(how));
    if (by.by != kind::none) made.fault = co_await check_network(by, timeout);
    co_return made;
}

}  // namespace eddy::runtime::program
