// Checks of backends, one after another for each.
#include "proxy/health.hpp"

#include <eddy/http/client.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "http/client/connection.hpp"
#include "proxy/connect.hpp"

#include <algorithm>
#include <utility>

namespace eddy::proxy {
namespace {

/// The status of the final response to a request; 0 without one.
task<result<int>> status_of(http::client_connection& over) {
    const result<> sent = co_await over.finish();
    if (!sent) co_return fail(sent.error());
    do {
        const result<> received = co_await over.read_head();
        if (!received) co_return fail(received.error());
    } while (!over.has_final_head());
    co_return over.head().status;
}

}  // namespace

/// Checks of one backend.
struct health_checks::check {
    check(std::shared_ptr<backend> whose, cancel_source* parent) noexcept
        : of(std::move(whose)), source(parent), is_healthy(of->is_healthy()) {}

    const std::shared_ptr<backend> of;
    cancel_source source;
    bool has_result = false;
    bool is_healthy;             // an earlier check may have found it down
    std::uint32_t in_a_row = 0;  // results against is_healthy
};

task<std::string> check_health(const backend& of, health_rules rules) {
    auto made = co_await connect(of, rules.timeout, {});
    if (!made) co_return "it accepts no connection: " + made.error().message();
    if (rules.how != health_rules::kind::http) co_return std::string();
    http::client_connection over(std::move(*made), std::make_shared<http::client_limits>());
    const std::string host = rules.host.empty() ? authority_of(of) : rules.host;
    const result<> begun =
        over.begin("GET", rules.path, http1::body_framing::none(), [&host](http1::head_writer& to) {
            to.field("Host", host);
            to.field("User-Agent", "eddy-health");
            to.field("Connection", "close");
        });
    if (!begun) co_return "its check cannot be sent";
    const auto status = co_await with_timeout(rules.timeout, status_of(over));
    if (!status) co_return "its check got no response: " + status.error().message();
    if (*status < rules.statuses.first || *status > rules.statuses.second)
        co_return "its check got the status " + std::to_string(*status);
    co_return std::string();
}

void health_checks::set(const health_rules& rules, const backend_list& all) {
    const bool is_same = rules == rules_;
    rules_ = rules;
    std::erase_if(checks_, [&](const std::shared_ptr<check>& each) {
        const bool stays = is_same && std::ranges::any_of(all, [&](const balanced_backend& b) {
                               return b.its == each->of;
                           });
        if (!stays) each->source.request();
        return !stays;
    });
    const time_point now = loop::current().now();
    for (const balanced_backend& each : all) {
        if (rules.how == health_rules::kind::none) {
            each.its->set_healthy(true, now);
            continue;
        }
        const bool is_checked = std::ranges::any_of(
            checks_, [&](const std::shared_ptr<check>& c) { return c->of == each.its; });
        if (is_checked) continue;
        auto made = std::make_shared<check>(each.its, &tasks_.source());
        checks_.push_back(made);
        tasks_.spawn(run(made).under(made->source));
    }
}

task<void> health_checks::end() {
    tasks_.cancel();
    co_await tasks_.join();
    checks_.clear();
}

task<void> health_checks::run(std::shared_ptr<check> its) {
    loop& here = loop::current();
    for (;;) {
        const health_rules rules = rules_;
        const time_point next = here.now() + rules.interval;
        const std::string failure = co_await check_health(*its->of, rules);
        if (its->source.requested()) co_return;
        note(*its, failure);
        const duration left = std::max(next - here.now(), rules.interval / 10);
        const result<> slept = co_await here.sleep_for(left);
        if (!slept) co_return;
    }
}

void health_checks::note(check& of, const std::string& failure) {
    const bool is_good = failure.empty();
    const bool is_first = !std::exchange(of.has_result, true);
    if (is_good == of.is_healthy) {
        of.in_a_row = 0;
        return;
    }
    ++of.in_a_row;
    if (!is_first && of.in_a_row < (is_good ? rules_.rise : rules_.fall)) return;
    of.is_healthy = is_good;
    of.in_a_row = 0;
    if (!of.of->set_healthy(is_good, loop::current().now())) return;
    if (is_good)
        observer_.note_up(*of.of);
    else
        observer_.note_down(*of.of, failure);
}

}  // namespace eddy::proxy
