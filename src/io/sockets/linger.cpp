// Lingering close: the loop that drops input, and the list of lingering connections of a loop.
#include "io/sockets/linger.hpp"

#include <eddy/base/intrusive_list.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include <algorithm>
#include <atomic>
#include <new>

namespace eddy {
namespace {

/// Pause when none of the loop's buffers is free. A time, not an event: any connection of the loop
/// may return a buffer, and take it again before others.
constexpr duration starved_pause = std::chrono::milliseconds(5);

std::atomic<std::uint64_t> lingering_now{0};

/// One lingering connection, in the list of its loop until its end.
class lingering final : public list_link<> {
public:
    explicit lingering(cancel_source* parent) noexcept : over_(parent) {
        list& all = of_this_thread();
        if (all.size == max_lingering) {
            lingering& oldest = all.members.front();
            oldest.leave();
            oldest.over_.request();
        }
        all.members.push_back(*this);
        ++all.size;
        lingering_now.fetch_add(1, std::memory_order_relaxed);
    }
    ~lingering() { leave(); }
    lingering(const lingering&) = delete;
    lingering& operator=(const lingering&) = delete;

    cancel_source& source() noexcept { return over_; }

private:
    struct list {
        intrusive_list<lingering> members;  // the oldest in front
        std::size_t size = 0;
    };

    static list& of_this_thread() noexcept {
        thread_local list all;
        return all;
    }
    void leave() noexcept {
        if (!linked()) return;
        unlink();
        --of_this_thread().size;
        lingering_now.fetch_sub(1, std::memory_order_relaxed);
    }

    cancel_source over_;
};

task<void> drop_input(stream& from, linger_limits limits) {
    loop& here = loop::current();
    const time_point end = here.after(limits.whole);
    // A peer that sends without a pause completes each read at once: the deadline is checked, too.
    while (here.now() < end) {
        const result<lease> dropped =
            co_await with_deadline(std::min(end, here.after(limits.idle)), from.read());
        if (dropped) continue;
        if (dropped.error() != errc::no_buffers) co_return;
        if (!co_await here.sleep_for(starved_pause)) co_return;
    }
}

}  // namespace

task<void> linger(stream& from, linger_limits limits) {
    lingering one(co_await current_source());
    co_await drop_input(from, limits).under(one.source());
}

task<void> linger_and_close(stream peer, linger_limits limits) {
    try {
        co_await linger(peer, limits);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is closed
    }
}

std::uint64_t lingering_connections() noexcept {
    return lingering_now.load(std::memory_order_relaxed);
}

}  // namespace eddy
