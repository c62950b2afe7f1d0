// Counting and logging of responses.
#include "runtime/serving/served_requests.hpp"

#include <eddy/io/loop.hpp>

#include "runtime/clock.hpp"
#include "transport/secure.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace eddy::runtime {
namespace {

constexpr metric requests_total{.name = "requests_total",
                                .kind = metric_kind::counter,
                                .help = "Responses by the class of their status.",
                                .labels = {"code"}};
constexpr metric request_seconds{
    .name = "request_seconds",
    .kind = metric_kind::histogram,
    .help = "Time from the end of a request's head to the end of its response."};

}  // namespace

std::unique_ptr<const eddy::http::client_label> served_requests::label(
    const stream& accepted, const proxy_protocol::client_values* announced) const {
    if (!log_.is_open) return nullptr;
    return std::make_unique<const eddy::http::client_label>(log_label(
        lines_.format(), accepted.peer(), transport::verified_subject(accepted), announced));
}

void served_requests::note(const eddy::http::client_label* from,
                           const eddy::http::exchange_record& what, serving::tally& dropped) {
    const auto place = static_cast<std::size_t>(what.status / 100 - 1);
    if (place < by_status_.size()) ++by_status_[place];
    // The record's time is by the loop's turns, within one of which most requests are answered.
    const duration took = what.time + (precise_now() - loop::current().now());
    {
        std::unique_lock lock(latency_guard_, std::defer_lock);
        if (is_shared_) lock.lock();
        latency_.record(static_cast<std::uint64_t>(took.count()));
    }
    if (from == nullptr) return;
    const std::string line = lines_.line(*from, what, std::chrono::system_clock::now());
    if (!log_.lines.append(line, 1)) ++dropped;
}

histogram served_requests::latency() const {
    const std::lock_guard lock(latency_guard_);
    return latency_;
}

void request_totals::add(const served_requests& of) {
    for (std::size_t i = 0; i < by_status_.size(); ++i) by_status_[i] += of.by_status()[i];
    latency_.merge(of.latency());
}

void request_totals::add_to(metrics& to) const {
    labelled<serving::tally> requests(requests_total);
    for (std::size_t i = 0; i < by_status_.size(); ++i)
        requests.at({fmt::format("{}xx", i + 1)}) = by_status_[i];
    to.add_samples(requests);
    auto latency = std::make_shared<histogram>(latency_);
    to.add_sample(request_seconds, latency);
    to.latency = std::move(latency);
}

}  // namespace eddy::runtime
