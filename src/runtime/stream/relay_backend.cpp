// Relay backends: what they have in common.
#include "runtime/stream/relay_backend.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/stream/answer.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace eddy::runtime::stream {
namespace {

http::client_pool_options pool_options(const config& chosen) {
    http::client_pool_options options;
    // Each stream has one, so the limit of streams is theirs; the machine's own limit comes first.
    options.host_connections = chosen.max_connections;
    options.connections = chosen.max_connections;
    options.waiting = chosen.max_connections;
    options.limits.response_time = chosen.backend_timeout;
    // Pauses of the body are bounded by read(), which sends heartbeats meanwhile.
    options.limits.read_time = duration::max();
    options.redirects = 0;
    options.decompress = false;
    return options;
}

}  // namespace

relay_backend::relay_backend(handoff::client_table& clients, observer& owner, const config& chosen)
    : clients_(clients), owner_(owner), config_(chosen), web_(pool_options(chosen)) {}

relay_backend::~relay_backend() { EDDY_ASSERT(tasks_.children() == 0); }

void relay_backend::begin(std::uint32_t client, request from) {
    if (client >= relays_.size()) relays_.resize(client + 1);
    EDDY_ASSERT(relays_[client] == nullptr);
    auto made = std::make_unique<relay>();
    made->client = client;
    made->begun = loop::current().now();
    tasks_.spawn(serve(std::move(made), std::move(from)));
}

void relay_backend::forget(std::uint32_t client) noexcept {
    if (client >= relays_.size() || relays_[client] == nullptr) return;
    relays_[client]->is_gone = true;
    relays_[client]->source.request();
    relays_[client] = nullptr;
}

task<void> relay_backend::close() {
    for (relay*& each : relays_) {
        if (each == nullptr) continue;
        each->is_gone = true;
        each->source.request();
        each = nullptr;
    }
    web_.close();
    co_await tasks_.join();
}

task<void> relay_backend::serve(std::unique_ptr<relay> to, request from) {
    relays_[to->client] = to.get();
    const std::string_view fault = co_await run_safely(*to, std::move(from)).under(to->source);
    if (to->is_gone) co_return;
    if (!fault.empty() && !to->has_head) send(*to, refusal(502, fault));
    if (!fault.empty() && to->takes_events) send(*to, error_event(fault));
    if (to->is_gone) co_return;
    relays_[to->client] = nullptr;
    clients_.finish(to->client);
    clients_.flush();
    if (fault.empty())
        owner_.on_end(to->client, loop::current().now() - to->begun);
    else
        owner_.on_fault(to->client, fault);
}

/// An exception would end all streams: the one that it came from ends with a reason.
task<std::string_view> relay_backend::run_safely(relay& to, request from) {
    try {
        co_return co_await run(to, std::move(from));
    } catch (const std::bad_alloc&) {
        co_return "no_memory";
    }
}

bool relay_backend::send(relay& to, std::string bytes) {
    if (to.is_gone) return false;
    ++messages_sent_;
    // A client that is lost over it is forgotten, which sets is_gone.
    return clients_.send_owned(to.client, std::move(bytes));
}

task<result<std::string_view>> relay_backend::read(relay& to, http::body_reader& from) {
    loop& here = loop::current();
    const time_point until = here.after(config_.backend_timeout);
    for (;;) {
        const time_point beat = std::min(until, here.after(config_.heartbeat));
        auto piece = co_await with_deadline(beat, from.read());
        if (piece || piece.error() != errc::timed_out || here.now() >= until) co_return piece;
        if (to.takes_events && !send(to, std::string(heartbeat_event)))
            co_return fail(errc::cancelled);
    }
}

void relay_backend::add_field(http::pool_request& to, std::string_view name,
                              std::string_view value) {
    const result<> added = to.headers.add(name, value);
    EDDY_ASSERT(added);
}

http::pool_request relay_backend::upstream(std::string_view path) const {
    http::pool_request made;
    made.method = "POST";
    made.url = config_.backend_url + std::string(path);
    add_field(made, "Content-Type", "application/json");
    if (!config_.key.empty()) add_field(made, "Authorization", "Bearer " + config_.key);
    if (!config_.backend_socket.empty()) {
        transport::address at;
        at.kind = transport::scheme::unix_socket;
        at.path = config_.backend_socket;
        made.connect_to = at;
    }
    return made;
}

}  // namespace eddy::runtime::stream
