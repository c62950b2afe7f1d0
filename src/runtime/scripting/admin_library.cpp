// Requests of scripts to the control API.
#include "runtime/scripting/admin_library.hpp"

#include <eddy/http/client.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/transport/transport.hpp>

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime {
namespace {

using script::answer;
using script::argument_kind;
using script::function_result;
using script::invocation;
using script::library_function;

/// At most so many requests are under way.
class counted_request {
public:
    explicit counted_request(std::size_t& all) noexcept : all_(&all) { ++all; }
    counted_request(counted_request&& other) noexcept : all_(std::exchange(other.all_, nullptr)) {}
    counted_request& operator=(counted_request&&) = delete;
    ~counted_request() {
        if (all_ != nullptr) --*all_;
    }

private:
    std::size_t* all_;
};

struct answered {
    int status = 0;
    std::string text;
};

task<result<answered>> exchange(std::string socket, http::client_request asked) {
    http::client_options options;
    options.connect.timeout = admin_patience;
    options.limits.response_time = admin_patience;
    transport::address where;
    where.kind = transport::scheme::unix_socket;
    where.path = std::move(socket);
    http::client daemon(std::move(where), std::move(options));
    auto head = co_await daemon.send(std::move(asked));
    if (!head) co_return fail(head.error());
    auto text = co_await head->body().whole(max_admin_answer);
    if (!text) co_return fail(text.error());
    co_return answered{head->status, std::move(*text)};
}

task<function_result> perform(std::string socket, http::client_request asked,
                              counted_request /*counted*/) {
    auto got = co_await with_timeout(admin_patience, exchange(std::move(socket), std::move(asked)));
    if (!got)
        co_return script::values_of(
            script::value(), fmt::format("the daemon did not answer: {}", got.error().message()));
    co_return script::values_of(got->status, std::move(got->text));
}

}  // namespace

/// Raised where the script called, by control_prelude().
constexpr std::string_view refusal =
    "the script may not change runtimes: give its runtime --lua-admin";

struct admin_functions {
    static answer request(invocation& of) {
        auto& admin = of.context<script_admin>();
        if (!admin.is_allowed_) return answer::failed(std::string(refusal));
        control_access control;
        if (admin.daemon_ != nullptr) control = admin.daemon_->control();
        if (control.socket.empty()) return answer::failed("there is no daemon here");
        if (admin.requests_ >= max_admin_requests)
            return answer::failed(fmt::format(
                "{} requests to the daemon are under way, which is the limit", max_admin_requests));
        http::client_request asked;
        asked.method = of.text(1);
        asked.target = of.text(2);
        result<> added = asked.headers.add("Host", "eddy");
        if (added) added = asked.headers.add("Connection", "close");
        if (added) added = asked.headers.add(control_key_header, control.key);
        if (of.has(3)) {
            const bool is_message = asked.target.ends_with("/send");
            if (added)
                added = asked.headers.add("Content-Type",
                                          is_message ? "text/plain" : "application/json");
            asked.body = http::body(std::string(of.text(3)));
        }
        if (!added) return answer::misused();
        return perform(std::move(control.socket), std::move(asked),
                       counted_request(admin.requests_));
    }
};

namespace {

constexpr std::array<library_function, 1> rows = {{
    {.name = "request",
     .arguments = {{{.name = "method", .kind = argument_kind::text},
                    {.name = "target", .kind = argument_kind::text},
                    {.name = "body", .kind = argument_kind::text, .is_optional = true}}},
     .takes = "a method, a target and a body",
     .help = "Sends a request to the daemon.",
     .waits = true,
     .run = admin_functions::request},
}};

}  // namespace

script::library script_admin::functions() noexcept {
    script::library made;
    made.name = "control";
    made.functions = rows;
    made.context = this;
    // Its functions stand beside those of the runtime: see control_prelude().
    made.constants = {{"is_within", 1.0}};
    if (!is_allowed_) made.constants.push_back({"refusal", std::string(refusal)});
    return made;
}

}  // namespace eddy::runtime
