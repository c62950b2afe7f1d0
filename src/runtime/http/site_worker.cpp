// Serving the clients of a site on one loop.
#include "runtime/http/site_worker.hpp"

#include "http/codings/compression.hpp"
#include "runtime/clock.hpp"
#include "transport/secure.hpp"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace eddy::runtime::http {

using eddy::http::client_label;
using eddy::http::exchange_record;

namespace {

// Small compressed results take at most this part of --cache, on top of it.
constexpr std::size_t compressed_share = 8;

}  // namespace

site_worker::site_worker(const serving::worker_place& place, site_context& of, const config& chosen,
                         eddy::http::static_files files)
    : server_worker(place, this, chosen.limits, chosen.max_connections),
      context_(of),
      config_(chosen),
      lines_(chosen.format),
      files_(std::move(files)),
      compressed_(chosen.files.cache_bytes / compressed_share),
      index_(place.index),
      compressed_bytes_(chosen.files.cache_bytes / compressed_share),
      is_shared_(place.count > 1) {}

site_worker::~site_worker() = default;

void site_worker::apply(const config& chosen) {
    copy_live(option_rows(), chosen, config_);
    set_max_connections(config_.max_connections);
}

void site_worker::replace_files(eddy::http::static_files files) {
    files_ = std::move(files);
    compressed_ = eddy::http::coded_cache(compressed_bytes_);
}

task<eddy::http::response> site_worker::handle(eddy::http::request& incoming) {
    if (config_.compress) return answer_compressed(incoming);
    return files_.serve(incoming, incoming.path());
}

task<eddy::http::response> site_worker::answer_compressed(eddy::http::request& incoming) {
    eddy::http::response answer = co_await files_.serve(incoming, incoming.path());
    eddy::http::compress_response(incoming, answer, {}, compressed_);
    co_return answer;
}

eddy::http::response site_worker::reject(int status, std::string_view what) {
    return {status, "text/plain; charset=utf-8",
            fmt::format("{} {}: {}\n", status, http1::reason_phrase(status), what)};
}

std::unique_ptr<const client_label> site_worker::label(const stream& accepted) const {
    if (!context_.has_log) return nullptr;
    return std::make_unique<const client_label>(
        log_label(lines_.format(), accepted.peer(), transport::verified_subject(accepted)));
}

void site_worker::note(const client_label* from, const exchange_record& what) {
    server_worker::note(from, what);
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
    if (!context_.log.append(line, 1)) ++counted_.dropped;
}

histogram site_worker::latency() const {
    const std::lock_guard lock(latency_guard_);
    return latency_;
}

}  // namespace eddy::runtime::http
