// Tunnels: connecting a client to a backend, and forwarding between them.
//
// A direction reads a lease of the loop's buffers and writes it at once. What the receiver does not
// take waits, and nothing more is read before it is gone: the kernel then slows the sender down. So
// a direction has at most one lease of bytes, and none while it waits for input.
//
// A side gets an orderly end only if the other one has sent it: every other way in which a tunnel
// ends resets the connection (stream::abort()), so that what broke off does not look whole.
#include "runtime/proxy/proxy_worker.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/tcp.hpp>

#include "base/files/descriptors.hpp"
#include "io/sockets/linger.hpp"
#include "serving/connections.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

namespace eddy::runtime::proxy {

/// A client and its connection to a backend; it lives in the coroutine that serves it.
class proxy_worker::tunnel final : public serving::connection {
public:
    tunnel(serving::connections& all, stream accepted, scope& tasks, serving::connection_slot slot)
        : connection(all, std::move(accepted), tasks.source(), std::move(slot)) {}
    ~tunnel() {
        if (!has_end_of_backend) socket.abort();
        if (!has_end_of_client) back.abort();
    }

    backend_use to;
    stream back;
    bool has_end_of_backend = false;  // the client: it was passed on
    bool has_end_of_client = false;   // the backend
};

/// One way through a tunnel. The tallies outlive it.
struct proxy_worker::direction {
    enum class state : std::uint8_t {
        flows,
        drops,  ///< the receiver takes nothing more; the sender's bytes are dropped
        ended,  ///< the sender has finished
        failed,
    };

    stream& from;
    stream& to;
    serving::tally& received;
    serving::tally& sent;
    bool& has_end;  // of the receiver: the sender's end was passed on
    time_point sent_at{};
    time_point dropped_since{};
    state now = state::flows;

    bool is_over() const noexcept { return now == state::ended || now == state::failed; }
};

/// Received bytes that the other side has not taken yet: a lease of the loop, or a copy of it.
class proxy_worker::held_piece {
public:
    /// Without the first `written` bytes. Throws std::bad_alloc.
    held_piece(proxy_worker& of, lease piece, std::size_t written) : of_(of) {
        if (of.held_leases_ < most_held_leases) {
            piece_ = std::move(piece);
            rest_ = piece_.bytes().subspan(written);
            ++of_.held_leases_;
        } else {
            copy_.append(piece.bytes().subspan(written));
            rest_ = copy_.bytes();
        }
    }
    held_piece(const held_piece&) = delete;
    held_piece& operator=(const held_piece&) = delete;
    ~held_piece() {
        if (piece_.size() == 0) return;
        EDDY_ASSERT(of_.held_leases_ > 0);
        --of_.held_leases_;
    }

    bool empty() const noexcept { return rest_.empty(); }
    const_bytes front() const noexcept { return rest_.first(std::min(rest_.size(), most_a_write)); }
    void consume(std::size_t size) noexcept {
        EDDY_ASSERT(size <= rest_.size());
        rest_ = rest_.subspan(size);
    }

private:
    proxy_worker& of_;
    lease piece_;
    byte_buffer copy_;
    const_bytes rest_;
};

proxy_worker::proxy_worker(const serving::worker_place& place, const config& chosen,
                           std::shared_ptr<balancer> backends)
    : loop_worker(place), index_(place.index), config_(chosen), backends_(std::move(backends)) {
    clients_.set_limits(limits());
}

proxy_worker::~proxy_worker() = default;

serving::connections::limits proxy_worker::limits() const noexcept {
    serving::connections::limits chosen;
    chosen.most = config_.max_connections;
    chosen.idle = config_.idle_timeout;
    return chosen;
}

void proxy_worker::apply(const config& chosen, std::shared_ptr<balancer> backends) {
    copy_live(option_rows(), chosen, config_);
    backends_ = std::move(backends);
    clients_.set_limits(limits());
}

void proxy_worker::take(stream accepted, serving::connection_slot slot) {
    auto t = std::make_unique<tunnel>(clients_, std::move(accepted), tasks_, std::move(slot));
    cancel_source& cancel = t->cancel;
    tasks_.spawn(serve(std::move(t)).under(cancel));
}

task<void> proxy_worker::drain(duration limit) {
    co_await loop_worker::drain(limit);
    report_rest(unreached_);
    report_rest(failed_backends_);
}

/// A tunnel's life. While bytes may flow it is never at rest: a stop waits for its end, since the
/// meaning of its silence depends on the protocol.
task<void> proxy_worker::serve(std::unique_ptr<tunnel> t) {
    try {
        t->enter(serving::activity::working);
        const bool is_open = co_await open(*t);
        if (!is_open) co_return;
        t->touch();
        t->enter(serving::activity::reading);
        backend_counters& counted = t->to->counted_by(index_);
        direction up{t->socket, t->back, counted_.bytes_in, counted.bytes_sent,
                     t->has_end_of_client};
        direction down{t->back, t->socket, counted.bytes_received, counted_.bytes_out,
                       t->has_end_of_backend};
        scope pumps(&t->cancel);
        pumps.spawn(pump(*t, pumps, down, up));
        co_await pump(*t, pumps, up, down).under(pumps.source());
        co_await pumps.join();
        if (!t->cancel.requested()) co_await end(*t, up, down);
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

/// Connects the tunnel to the first backend that takes it. False: none did, or the tunnel was
/// closed meanwhile.
task<bool> proxy_worker::open(tunnel& t) {
    if (!descriptors::has_room(descriptors::use::client)) {
        ++counted_.errors;
        note_failure(unreached_, "a client was closed: ",
                     "no descriptor is free for its backend; raise the limit of open files (ulimit "
                     "-n) or lower --max-connections");
        co_return false;
    }
    // They may change meanwhile.
    const std::shared_ptr<balancer> backends = backends_;
    balancer::selection order = backends->select();
    for (auto next = order.next(); next != nullptr; next = order.next()) {
        backend_counters& counted = next->counted_by(index_);
        backend_use use(next);
        result<stream> made = co_await connect(*next);
        if (made) {
            ++counted.connections;
            t.to = std::move(use);
            t.back = std::move(*made);
            co_return true;
        }
        if (t.cancel.requested()) co_return false;
        ++counted.failures;
        note_failure(failed_backends_,
                     "a backend failed: ", transport::explain(next->name(), made.error()));
    }
    ++counted_.errors;
    note_failure(unreached_, "a client was closed: ", "no backend took a connection");
    co_return false;
}

task<result<stream>> proxy_worker::connect(const backend& to) const {
    const duration timeout = config_.connect_timeout;
    tcp::connect_options options;
    options.timeout = timeout;
    options.socket = tcp::keepalive_after(config_.rules.keepalive);
    if (to.numeric()) {
        auto made = co_await with_timeout(timeout, loop::current().connect(*to.numeric()));
        if (made) static_cast<void>(tcp::apply(*made, options.socket));
        co_return made;
    }
    co_return co_await with_timeout(timeout, transport::connect(to.where(), options));
}

/// Forwards until the sender's end, which is passed on, or a failure of either side; then, while
/// the other direction runs, drops what the receiver does not take, which keeps it from resetting
/// the sender's connection. Catches std::bad_alloc: the other direction must be awaited. All of it
/// is in one frame, without a task or an allocation for each piece.
task<void> proxy_worker::pump(tunnel& t, scope& both, direction& way, const direction& other) {
    using state = direction::state;
    try {
        for (;;) {
            result<lease> got = co_await way.from.read();
            if (!got) {
                if (got.error() == errc::no_buffers) {
                    const result<> slept = co_await loop::current().sleep_for(starved_pause);
                    if (slept) continue;
                }
                if (!both.source().requested()) end_input(both, way, other, got.error());
                co_return;
            }
            way.received += got->size();
            if (way.now == state::drops) {
                // The receiver may be gone: what is dropped is no sign of life.
                const time_point since = std::max(way.dropped_since, other.sent_at);
                if (loop::current().now() - since < longest_rest) continue;
                both.cancel();
                co_return;
            }
            t.touch();
            result<std::size_t> taken = way.to.try_write(got->bytes());
            if (taken) {
                EDDY_ASSERT(*taken <= got->size());
                way.sent += *taken;
                way.sent_at = t.touched_at();
                if (*taken == got->size()) continue;
                held_piece rest(*this, std::move(*got), *taken);
                while (!rest.empty()) {
                    const const_bytes next = rest.front();
                    const result<> written = co_await way.to.write_all(next);
                    if (!written) {
                        taken = fail(written.error());
                        break;
                    }
                    t.touch();
                    way.sent += next.size();
                    way.sent_at = t.touched_at();
                    rest.consume(next.size());
                }
                if (taken) continue;
            }
            if (both.source().requested()) co_return;
            way.now = state::drops;
            way.dropped_since = loop::current().now();
            // The receiver's own bytes may still be on their way, an error message perhaps.
            if (!other.is_over()) continue;
            both.cancel();
            co_return;
        }
    } catch (const std::bad_alloc&) {
        note_no_memory();
        way.now = state::failed;
        both.cancel();
    }
}

/// The sender has finished, or its connection has failed.
void proxy_worker::end_input(scope& both, direction& way, const direction& other,
                             std::error_code error) noexcept {
    using state = direction::state;
    const bool has_finished = error == errc::end_of_stream;
    const bool flowed = way.now == state::flows;
    way.now = has_finished ? state::ended : state::failed;
    if (has_finished && flowed) way.has_end = way.to.shutdown_write().has_value();
    if (!has_finished || other.now == state::drops) both.cancel();
}

/// Ends a tunnel of which one side has ended. The other one may still send, and would lose the last
/// forwarded bytes if its connection were closed, or reset, meanwhile.
task<void> proxy_worker::end(tunnel& t, const direction& up, const direction& down) {
    const bool is_client_over = up.is_over();
    const bool is_backend_over = down.is_over();
    if (is_client_over && is_backend_over && up.now == down.now) co_return;
    // A stop ends it now.
    t.enter(serving::activity::resting);
    if (t.draining()) co_return;
    if (!is_backend_over || (is_client_over && up.now == direction::state::failed)) {
        t.socket.abort();
        co_await part(t.back, up, {.whole = last_words_time, .idle = last_words_time});
    } else {
        t.back.abort();
        linger_limits limits;
        if (!down.has_end) limits = {.whole = longest_cut_linger, .idle = last_words_time};
        co_await part(t.socket, down, limits);
    }
}

/// Waits until one side can have read its last bytes, which came by `way`. A side that is reset is
/// reset soon: at once, unless bytes have just been sent.
task<void> proxy_worker::part(stream& side, const direction& way, linger_limits limits) {
    loop& here = loop::current();
    const time_point soon = way.sent_at + last_words_time;
    if (!way.has_end && soon <= here.now()) co_return;
    co_await eddy::linger(side, limits);
    // A side that has finished sending may not have received it all.
    if (!way.has_end && here.now() < soon)
        static_cast<void>(co_await here.sleep_for(soon - here.now()));
}

}  // namespace eddy::runtime::proxy
