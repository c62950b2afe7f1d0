// Serving the clients of a site on one loop.
#include "runtime/http/worker.hpp"

#include <eddy/http/compression.hpp>

#include "runtime/connections.hpp"
#include "runtime/http/access_log.hpp"

#include <fmt/format.h>

#include <chrono>
#include <new>
#include <string>
#include <utility>

namespace eddy::runtime::http {

using eddy::http::exchange_record;
using eddy::http::session_state;

/// A connection; it lives in the coroutine that serves it.
class worker::client final : public connection, public eddy::http::session_observer {
public:
    client(worker& of, stream accepted, serving::connection_slot slot)
        : connection(of.clients_, std::move(accepted), of.tasks_.source(), std::move(slot)),
          worker_(of) {}

    void enter(session_state now) noexcept override {
        touch();
        connection::enter(now == session_state::idle        ? activity::resting
                          : now == session_state::receiving ? activity::reading
                                                            : activity::working);
    }
    void note(const exchange_record& what) override { worker_.note(*this, what); }
    bool is_ending() const noexcept override { return all_.draining(); }

private:
    worker& worker_;
};

worker::worker(const serving::worker_place& place, site_context& of, const config& chosen,
               eddy::http::static_files files)
    : loop_worker(place),
      context_(of),
      config_(chosen),
      files_(std::move(files)),
      is_shared_(place.count > 1) {
    apply(chosen);
}

worker::~worker() = default;

void worker::apply(const config& chosen) {
    config_.max_connections = chosen.max_connections;
    config_.compress = chosen.compress;
    connections::limits limits;
    limits.most = config_.max_connections;
    clients_.set_limits(limits);
}

void worker::take(stream accepted, serving::connection_slot slot) {
    auto c = std::make_unique<client>(*this, std::move(accepted), std::move(slot));
    cancel_source& cancel = c->cancel;
    tasks_.spawn(serve(std::move(c)).under(cancel));
}

task<void> worker::serve(std::unique_ptr<client> c) {
    try {
        co_await eddy::http::serve_observed(c->socket, *this, config_.limits, *c);
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

task<eddy::http::response> worker::handle(eddy::http::request& incoming) {
    if (config_.compress) return answer_compressed(incoming);
    return files_.serve(incoming, incoming.path());
}

task<eddy::http::response> worker::answer_compressed(eddy::http::request& incoming) {
    eddy::http::response answer = co_await files_.serve(incoming, incoming.path());
    eddy::http::compress_response(incoming, answer);
    co_return answer;
}

eddy::http::response worker::reject(int status, std::string_view what) {
    return {status, "text/plain; charset=utf-8",
            fmt::format("{} {}: {}\n", status, http1::reason_phrase(status), what)};
}

void worker::note(client& c, const exchange_record& what) {
    ++counted_.messages_in;
    ++counted_.messages_out;
    counted_.bytes_in += what.bytes_in;
    counted_.bytes_out += what.bytes_out;
    const auto place = static_cast<std::size_t>(what.status / 100 - 1);
    if (place < by_status_.size()) ++by_status_[place];
    if (!what.is_whole) ++counted_.errors;
    {
        std::unique_lock lock(latency_guard_, std::defer_lock);
        if (is_shared_) lock.lock();
        latency_.record(static_cast<std::uint64_t>(what.time.count()));
    }
    if (!context_.has_log) return;
    const std::string line = access_line(config_.format, c.socket.peer().to_string(), what,
                                         std::chrono::system_clock::now());
    if (!context_.log.append(line, 1)) ++counted_.dropped;
}

histogram worker::latency() const {
    const std::lock_guard lock(latency_guard_);
    return latency_;
}

}  // namespace eddy::runtime::http
