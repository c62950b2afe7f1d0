// Relay backends: what they have in common.
#include "runtime/stream/relay_backend.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/stream/answer.hpp"

#include <new>
#include <utility>

namespace eddy::runtime::stream {
namespace {

http::client_pool_options pool_options(const config& chosen) {
    http::client_pool_options options;
    // Each stream has one, so the limit of streams, which may change, is theirs.
    options.host_connections = max_streams;
    options.connections = max_streams;
    options.waiting = max_streams;
    options.limits.response_time = chosen.backend_timeout;
    options.limits.read_time = chosen.backend_timeout;
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
    scope beside;
    if (sends_heartbeats()) beside.spawn(beat(*to));
    const std::string_view fault = co_await run_safely(*to, std::move(from)).under(to->source);
    beside.cancel();
    co_await beside.join();
    if (to->is_gone) co_return;
    if (!fault.empty() && !to->has_head) pass_on(*to, refusal(502, fault));
    if (!fault.empty() && to->takes_events) pass_on(*to, error_event(fault));
    if (to->is_gone) co_return;
    relays_[to->client] = nullptr;
    clients_.finish(to->client);
    clients_.flush();
    if (fault.empty())
        owner_.on_end(to->client, loop::current().now() - to->begun);
    else
        owner_.on_fault(to->client, fault);
}

/// Signs of life while the client is sent nothing else, whatever the backend does meanwhile.
task<void> relay_backend::beat(relay& to) {
    loop& here = loop::current();
    to.last_sent = here.now();
    for (;;) {
        if (auto slept = co_await here.sleep_until(to.last_sent + config_.heartbeat); !slept)
            co_return;
        if (to.is_gone) co_return;
        if (here.now() - to.last_sent < config_.heartbeat) continue;
        to.last_sent = here.now();
        // A client that has not taken what it was sent last is not waiting for a sign of life.
        if (!clients_.is_writing(to.client)) pass_on(to, std::string(heartbeat_event));
        clients_.flush();
    }
}

/// An exception would end all streams: the one that it came from ends with a reason.
task<std::string_view> relay_backend::run_safely(relay& to, request from) {
    try {
        co_return co_await run(to, std::move(from));
    } catch (const std::bad_alloc&) {
        co_return "no_memory";
    }
}

bool relay_backend::pass_on(relay& to, std::string bytes) {
    if (to.is_gone) return false;
    ++messages_sent_;
    to.last_sent = loop::current().now();
    // A client that is lost over it is forgotten, which sets is_gone.
    return clients_.send_owned(to.client, std::move(bytes));
}

task<bool> relay_backend::send(relay& to, std::string bytes) {
    if (!pass_on(to, std::move(bytes))) co_return false;
    clients_.flush();
    if (to.is_gone) co_return false;
    if (!clients_.is_writing(to.client)) co_return true;
    // The backend waits for a client that reads more slowly than it sends.
    to.has_caught_up.reset();
    clients_.notify_when_idle(to.client);
    auto waited = co_await with_timeout(config_.backend_timeout, to.has_caught_up.wait());
    if (!waited && waited.error() == errc::timed_out && !to.is_gone) {
        clients_.abandon(to.client);
        owner_.on_fault(to.client, to_string(handoff::loss::too_slow));
        forget(to.client);
    }
    co_return !to.is_gone;
}

void relay_backend::on_idle(std::uint32_t client) noexcept {
    if (client < relays_.size() && relays_[client] != nullptr) relays_[client]->has_caught_up.set();
}

std::string_view relay_backend::reason_of(std::error_code error) noexcept {
    return error == errc::timed_out ? "backend_stalled" : "backend_unreachable";
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
