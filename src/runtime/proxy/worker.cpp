// Tunnels: connecting a client to a backend, and forwarding between them.
//
// A direction reads a lease of the loop's buffers and writes it at once. What the receiver does not
// take waits, and nothing more is read before it is gone: the kernel then slows the sender down. So
// a direction has at most one lease of bytes, and none while it waits for input.
#include "runtime/proxy/worker.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/tcp.hpp>

#include "base/descriptors.hpp"
#include "runtime/connections.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

namespace eddy::runtime::proxy {

/// A client and its connection to a backend; it lives in the coroutine that serves it.
class worker::tunnel final : public connection {
public:
    tunnel(connections& all, stream accepted, scope& tasks, serving::connection_slot slot)
        : connection(all, std::move(accepted), tasks.source(), std::move(slot)) {}

    backend_use to;
    stream back;

    /// Ends both connections by a reset: one side's has failed, and the other one shall not take
    /// what it has got for all of it.
    void reset() noexcept {
        tcp::socket_options options;
        options.linger = std::chrono::seconds(0);
        static_cast<void>(tcp::apply(socket, options));
        static_cast<void>(tcp::apply(back, options));
        close();
    }
};

/// One way through a tunnel. The tallies outlive it.
struct worker::direction {
    stream& from;
    stream& to;
    tally& received;
    tally& sent;
};

/// Received bytes that the other side has not taken yet: a lease of the loop, or a copy of it.
class worker::held_piece {
public:
    /// Without the first `written` bytes. Throws std::bad_alloc.
    held_piece(worker& of, lease piece, std::size_t written) : of_(of) {
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
    worker& of_;
    lease piece_;
    byte_buffer copy_;
    const_bytes rest_;
};

worker::worker(const serving::worker_place& place, const config& chosen,
               std::shared_ptr<balancer> backends)
    : loop_worker(place), index_(place.index) {
    apply(chosen, std::move(backends));
}

worker::~worker() = default;

void worker::apply(const config& chosen, std::shared_ptr<balancer> backends) noexcept {
    connect_timeout_ = chosen.connect_timeout;
    backends_ = std::move(backends);
    connections::limits limits;
    limits.most = chosen.max_connections;
    limits.idle = chosen.idle_timeout;
    clients_.set_limits(limits);
}

void worker::take(stream accepted, serving::connection_slot slot) {
    auto t = std::make_unique<tunnel>(clients_, std::move(accepted), tasks_, std::move(slot));
    cancel_source& cancel = t->cancel;
    tasks_.spawn(serve(std::move(t)).under(cancel));
}

task<void> worker::drain(duration limit) {
    co_await loop_worker::drain(limit);
    report_rest(unreached_);
    report_rest(failed_backends_);
}

/// A tunnel's life. It is never at rest: a stop waits for its end, since what its silence means is
/// the protocol's affair.
task<void> worker::serve(std::unique_ptr<tunnel> t) {
    try {
        t->enter(activity::working);
        const bool is_open = co_await open(*t);
        if (!is_open) co_return;
        t->touch();
        t->enter(activity::reading);
        backend_counters& counted = t->to->counted_by(index_);
        scope answers(&t->cancel);
        const direction up{t->socket, t->back, counted_.bytes_in, counted.bytes_sent};
        const direction down{t->back, t->socket, counted.bytes_received, counted_.bytes_out};
        answers.spawn(pump(*t, down));
        co_await pump(*t, up);
        co_await answers.join();
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

/// Connects the tunnel to the first backend that takes it. False: none did, or the tunnel was
/// closed meanwhile.
task<bool> worker::open(tunnel& t) {
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

task<result<stream>> worker::connect(const backend& to) const {
    const duration timeout = connect_timeout_;
    if (to.numeric())
        co_return co_await with_timeout(timeout, loop::current().connect(*to.numeric()));
    tcp::connect_options options;
    options.timeout = timeout;
    co_return co_await with_timeout(timeout, transport::connect(to.where(), options));
}

/// Forwards until the sender's end, which is passed on, or a failure of either side. Catches
/// std::bad_alloc: the other direction must be awaited. All of it is in one frame, without a task
/// or an allocation for each piece.
task<void> worker::pump(tunnel& t, direction way) {
    try {
        for (;;) {
            result<lease> got = co_await way.from.read();
            if (!got) {
                if (got.error() == errc::no_buffers) {
                    const result<> slept = co_await loop::current().sleep_for(starved_pause);
                    if (slept) continue;
                }
                end_input(t, way.to, got.error());
                co_return;
            }
            t.touch();
            way.received += got->size();
            result<std::size_t> taken = way.to.try_write(got->bytes());
            if (taken) {
                EDDY_ASSERT(*taken <= got->size());
                way.sent += *taken;
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
                    rest.consume(next.size());
                }
                if (taken) continue;
            }
            got->reset();
            co_await give_up_writing(t, way.from);
            co_return;
        }
    } catch (const std::bad_alloc&) {
        note_no_memory();
        t.reset();
    }
}

/// The sender has finished, or its connection has failed.
void worker::end_input(tunnel& t, stream& to, std::error_code error) noexcept {
    if (t.cancel.requested()) return;
    if (error != errc::end_of_stream) return t.reset();
    if (!to.shutdown_write()) t.close();
}

/// The receiver takes nothing more. What it sent before may still be on its way to the sender, an
/// error message perhaps, so the other direction has a moment for that; meanwhile the sender's
/// bytes are dropped, which keeps them from resetting its connection.
task<void> worker::give_up_writing(tunnel& t, stream& from) {
    if (t.cancel.requested()) co_return;
    co_await discard_input(from);
    t.close();
}

}  // namespace eddy::runtime::proxy
