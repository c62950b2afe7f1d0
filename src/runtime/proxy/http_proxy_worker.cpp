// Serving the HTTP clients of one loop.
#include "runtime/proxy/http_proxy_worker.hpp"

#include "runtime/scripting/script_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <utility>

namespace eddy::runtime::proxy {

using eddy::http::client_label;
using eddy::http::exchange_record;
using eddy::proxy::backend;

http_proxy_worker::http_proxy_worker(const serving::worker_place& place, request_log& log,
                                     const config& chosen, http_plan plan)
    : server_worker(place, &forwarder_, chosen.limits, chosen.max_connections),
      events_(place.events),
      requests_(log, chosen.format, place.count > 1, true),
      forwarder_(place.index, counted_, *this, plan.budget) {
    drain_tunnels();
    const bool serves = place.count == 1 || place.index != 0;
    if (chosen.script && serves) {
        auto made = proxy_script::make(chosen.script, plan.identity, place.events);
        if (made) script_ = std::move(*made);
        if (!made) script_fault_ = made.error().message;
        forwarder_.set_chooser(script_.get());
    }
    set_plan(std::move(plan));
}

http_proxy_worker::~http_proxy_worker() = default;

task<void> http_proxy_worker::drain(duration limit) {
    const time_point last = loop::current().after(limit);
    if (script_) co_await script_->stop(std::min<duration>(limit, script_farewell));
    co_await server_worker::drain(std::max(last - loop::current().now(), duration{}));
    if (script_) {
        const duration left = last - loop::current().now();
        co_await script_->end(std::clamp(left, duration{}, duration(script_farewell)));
    }
    forwarder_.close();
    report_rest(failed_backends_);
    report_rest(refused_);
    report_rest(unanswered_);
}

void http_proxy_worker::apply(const config& chosen, http_plan plan) {
    set_max_connections(chosen.max_connections);
    set_plan(std::move(plan));
}

task<outcome<>> http_proxy_worker::start_script() {
    if (!script_fault_.empty()) co_return refuse(400, script_fault_);
    if (!script_) co_return outcome<>();
    co_return co_await script_->start();
}

task<outcome<>> http_proxy_worker::prepare_script(script_file by) {
    if (!script_) co_return outcome<>();
    co_return co_await script_->prepare(std::move(by));
}

void http_proxy_worker::adopt_script() {
    if (script_) script_->adopt();
}

void http_proxy_worker::discard_script() {
    if (script_) script_->discard();
}

void http_proxy_worker::set_plan(http_plan plan) {
    forwarder_.set_rules(std::move(plan.rules), std::move(plan.routes), std::move(plan.named));
    forwarder_.set_error_pages(std::move(plan.pages));
}

std::unique_ptr<const client_label> http_proxy_worker::label(const stream& accepted) const {
    return requests_.label(accepted, announced());
}

void http_proxy_worker::note(const client_label* from, const exchange_record& what) {
    server_worker::note(from, what);
    requests_.note(from, what, counted_.dropped);
}

void http_proxy_worker::note_failed_backend(const backend& which, std::string_view why) noexcept
    try {
    note_failure(failed_backends_, "a backend failed: ", which.name() + " " + std::string(why));
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
}

void http_proxy_worker::note_unanswered(int status, std::string_view why) noexcept try {
    // Clients at fault hide no fault of backends.
    note_failure(status < 500 ? refused_ : unanswered_, fmt::format("a request got {}: ", status),
                 why);
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
}

void http_proxy_worker::note_ejected(const backend& which) noexcept try {
    events_.write(fmt::format("backend {} is down: its requests failed", which.name()));
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): its state shows it
}

void http_proxy_worker::note_returned(const backend& which) noexcept try {
    events_.write(fmt::format("backend {} is up again", which.name()));
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): its state shows it
}

void http_proxy_worker::note_slow(const eddy::proxy::slow_backend& which) noexcept try {
    const auto in_ms = [](duration time) {
        return std::chrono::duration<double, std::milli>(time).count();
    };
    events_.write(
        fmt::format("backend {} is down: it is slow; half of its responses take {:.0f} ms and "
                    "more, those of the "
                    "others {:.1f} ms",
                    which.its->name(), in_ms(which.median), in_ms(which.others)));
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): its state shows it
}

void http_proxy_worker::note_no_memory() noexcept { loop_worker::note_no_memory(); }

}  // namespace eddy::runtime::proxy
