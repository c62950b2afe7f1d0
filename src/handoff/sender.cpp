// Drivers of a handoff: the coroutine and the blocking call.
#include <eddy/handoff/sender.hpp>

#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "handoff/send_attempt.hpp"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace eddy::handoff {
namespace {

using steady = std::chrono::steady_clock;

/// The message as it is sent: some byte must carry the descriptor.
std::string_view bytes_of(const std::string& message) noexcept {
    return message.empty() ? std::string_view("\0", 1) : std::string_view(message);
}

/// The error of a handoff at its timeout.
std::error_code late(const send_attempt& sending) noexcept {
    if (sending.reason() == ETOOMANYREFS) return errno_code(ETOOMANYREFS);
    return make_error_code(errc::timed_out);
}

time_point deadline_of(time_point now, duration timeout) noexcept {
    return timeout < time_point::max() - now ? now + timeout : time_point::max();
}

timespec to_timespec(duration time) noexcept {
    return {static_cast<time_t>(time.count() / 1'000'000'000),
            static_cast<long>(time.count() % 1'000'000'000)};
}

/// Performs the wait of the last step, at most until the deadline.
void wait_blocking(const send_attempt& sending, send_attempt::wait what, retry_pause& pauses,
                   duration left) noexcept {
    if (what == send_attempt::wait::pause) {
        const timespec time = to_timespec(std::min(pauses.next(), left));
        ::nanosleep(&time, nullptr);
        return;
    }
    pollfd watched{sending.socket(), POLLOUT, 0};
    const timespec time = to_timespec(left);
    // An interrupted wait only makes the next step early.
    ::ppoll(&watched, 1, left == duration::max() ? nullptr : &time, nullptr);
}

}  // namespace

task<result<>> finish(send_attempt& sending, send_attempt::wait next, time_point deadline) {
    loop& here = loop::current();
    retry_pause pauses;
    while (next != send_attempt::wait::none) {
        if (here.now() >= deadline) co_return fail(late(sending));
        result<> waited;
        if (next == send_attempt::wait::pause)
            waited = co_await here.sleep_until(std::min(here.after(pauses.next()), deadline));
        else
            waited = co_await with_deadline(deadline, here.wait_writable(sending.socket()));
        // One more step follows a wait that the deadline ended.
        if (!waited && waited.error() != errc::timed_out) co_return fail(waited.error());
        const auto stepped = sending.step();
        if (!stepped) co_return fail(stepped.error());
        next = *stepped;
    }
    co_return {};
}

task<result<>> hand_over(std::string receiver, std::string message, int client,
                         sender_options options) {
    loop& here = loop::current();
    if (here.kind() == io_backend_kind::sim) co_return fail(errc::unsupported);
    const auto to = endpoint::unix_path(receiver);
    if (!to) co_return fail(to.error());
    send_attempt sending(*to, options.kind, bytes_of(message), client);
    const auto begun = sending.step();
    if (!begun) co_return fail(begun.error());
    co_return co_await finish(sending, *begun, here.after(options.timeout));
}

result<> hand_over_blocking(const std::string& receiver, const std::string& message, int client,
                            const sender_options& options) {
    const auto to = endpoint::unix_path(receiver);
    if (!to) return fail(to.error());
    const time_point deadline = deadline_of(steady::now(), options.timeout);
    send_attempt sending(*to, options.kind, bytes_of(message), client);
    retry_pause pauses;
    for (;;) {
        const auto next = sending.step();
        if (!next) return fail(next.error());
        if (*next == send_attempt::wait::none) return {};
        const time_point now = steady::now();
        if (now >= deadline) return fail(late(sending));
        const duration left = deadline == time_point::max() ? duration::max() : deadline - now;
        wait_blocking(sending, *next, pauses, left);
    }
}

}  // namespace eddy::handoff
