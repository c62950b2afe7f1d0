// Forwarding of bytes, and the ends of both sides.
#include "proxy/tunnel.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace eddy::proxy {

/// Received bytes that the other side has not taken yet: a lease of the loop, or a copy of it.
class tunnel::held_piece {
public:
    /// Without the first `written` bytes. Throws std::bad_alloc.
    held_piece(tunnel_buffers& of, lease piece, std::size_t written) : of_(of) {
        if (of.held_leases < most_held_leases) {
            piece_ = std::move(piece);
            rest_ = piece_.bytes().subspan(written);
            ++of_.held_leases;
        } else {
            copy_.append(piece.bytes().subspan(written));
            rest_ = copy_.bytes();
        }
    }
    held_piece(const held_piece&) = delete;
    held_piece& operator=(const held_piece&) = delete;
    ~held_piece() {
        if (piece_.size() == 0) return;
        EDDY_ASSERT(of_.held_leases > 0);
        --of_.held_leases;
    }

    bool empty() const noexcept { return rest_.empty(); }
    const_bytes front() const noexcept { return rest_.first(std::min(rest_.size(), most_a_write)); }
    void consume(std::size_t size) noexcept {
        EDDY_ASSERT(size <= rest_.size());
        rest_ = rest_.subspan(size);
    }

private:
    tunnel_buffers& of_;
    lease piece_;
    byte_buffer copy_;
    const_bytes rest_;
};

tunnel::tunnel(stream& client, stream& backend, tunnel_owner& owner, tunnel_buffers& buffers,
               const tunnel_counts& counts) noexcept
    : owner_(owner),
      buffers_(buffers),
      up_{client, backend, counts.from_client, counts.to_backend},
      down_{backend, client, counts.from_backend, counts.to_client} {}

tunnel::~tunnel() {
    if (!down_.has_end) down_.to.abort();
    if (!up_.has_end) up_.to.abort();
}

task<void> tunnel::run(cancel_source& stop, byte_buffer from_client, byte_buffer from_backend) {
    scope pumps(&stop);
    pumps.spawn(pump(pumps, down_, up_, std::move(from_backend)));
    co_await pump(pumps, up_, down_, std::move(from_client)).under(pumps.source());
    co_await pumps.join();
    if (!stop.requested()) co_await end();
}

/// Forwards until the sender's end, which is passed on, or a failure of either side; then, while
/// the other direction runs, drops what the receiver does not take, which keeps it from resetting
/// the sender's connection. Catches std::bad_alloc: the other direction must be awaited. All of it
/// is in one frame, without a task or an allocation for each piece.
task<void> tunnel::pump(scope& both, direction& way, const direction& other, byte_buffer begun) {
    using state = direction::state;
    try {
        bool is_taken = true;
        if (!begun.empty()) {
            const std::size_t size = begun.size();
            is_taken = (co_await way.to.write_all(begun.bytes())).has_value();
            way.sent_at = owner_.touch();
            if (is_taken) way.sent += size;
            begun = {};
        }
        for (;;) {
            if (!is_taken) {
                if (both.source().requested()) co_return;
                way.now = state::drops;
                way.dropped_since = loop::current().now();
                // The receiver's own bytes may still be on their way, an error message perhaps.
                if (other.is_over()) {
                    both.cancel();
                    co_return;
                }
                is_taken = true;
            }
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
            const time_point now = owner_.touch();
            const result<std::size_t> taken = way.to.try_write(got->bytes());
            is_taken = taken.has_value();
            if (!taken) continue;
            EDDY_ASSERT(*taken <= got->size());
            way.sent += *taken;
            way.sent_at = now;
            if (*taken == got->size()) continue;
            held_piece rest(buffers_, std::move(*got), *taken);
            while (is_taken && !rest.empty()) {
                const const_bytes next = rest.front();
                const result<> written = co_await way.to.write_all(next);
                is_taken = written.has_value();
                if (!is_taken) break;
                way.sent_at = owner_.touch();
                way.sent += next.size();
                rest.consume(next.size());
            }
        }
    } catch (const std::bad_alloc&) {
        owner_.note_no_memory();
        way.now = state::failed;
        both.cancel();
    }
}

/// The sender has finished, or its connection has failed.
void tunnel::end_input(scope& both, direction& way, const direction& other,
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
task<void> tunnel::end() {
    const bool is_client_over = up_.is_over();
    const bool is_backend_over = down_.is_over();
    if (is_client_over && is_backend_over && up_.now == down_.now) co_return;
    if (!owner_.may_linger()) co_return;
    stream& client = up_.from;
    stream& backend = up_.to;
    if (!is_backend_over || (is_client_over && up_.now == direction::state::failed)) {
        client.abort();
        co_await part(backend, up_, {.whole = last_words_time, .idle = last_words_time});
    } else {
        backend.abort();
        linger_limits limits;
        if (!down_.has_end) limits = {.whole = longest_cut_linger, .idle = last_words_time};
        co_await part(client, down_, limits);
    }
}

/// Waits until one side can have read its last bytes, which came by `way`. A side that is reset is
/// reset soon: at once, unless bytes have just been sent.
task<void> tunnel::part(stream& side, const direction& way, linger_limits limits) {
    loop& here = loop::current();
    const time_point soon = way.sent_at + last_words_time;
    if (!way.has_end && soon <= here.now()) co_return;
    co_await eddy::linger(side, limits);
    // A side that has finished sending may not have received it all.
    if (!way.has_end && here.now() < soon)
        static_cast<void>(co_await here.sleep_for(soon - here.now()));
}

}  // namespace eddy::proxy
