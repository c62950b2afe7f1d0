// One process's part of a load of handoffs.
#include "cli/bench/handoff/handoff_worker.hpp"

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>

#include "cli/bench/handoff/event_stream_check.hpp"
#include "handoff/send_attempt.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

namespace eddy::cli::bench {
namespace {

using namespace std::chrono_literals;

/// Period of the check for streams that have taken too long, and of the report of CPU time.
constexpr duration watch_pause = 100ms;

std::uint64_t nanoseconds(duration time) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
}
double milliseconds(duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

/// Both ends of a client's connection.
struct client_ends {
    unique_fd near;    // the client's
    unique_fd handed;  // what a web server would hand over
};

/// Makes clients: pairs of Unix sockets, or connections to a TCP listener of its own.
class client_maker {
public:
    explicit client_maker(bool over_tcp) {
        if (!over_tcp) return;
        listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in local{};
        local.sin_family = AF_INET;
        local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(local);
        const bool listens =
            listener_ &&
            ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&local), size) == 0 &&
            ::listen(listener_.get(), 16) == 0 &&
            ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&local), &size) == 0;
        if (!listens)
            give_up("cannot listen on TCP for clients: " +
                    std::error_code(errno, std::generic_category()).message());
        address_ = local;
    }

    /// `number` is the stream's.
    result<client_ends> make(std::size_t number) const {
        client_ends made;
        if (!listener_) {
            int ends[2];
            if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
                return fail_errno();
            made.near.reset(ends[0]);
            made.handed.reset(ends[1]);
            return made;
        }
        // On the loopback device the connection is made within the call.
        made.near.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (!made.near) return fail_errno();
        // The kernel looks for a free port by trying them, which takes ever longer as those of an
        // address run out. So each address, all of this machine, has few clients.
        sockaddr_in from{};
        from.sin_family = AF_INET;
        from.sin_addr.s_addr =
            htonl(first_client_address + static_cast<in_addr_t>(number / clients_an_address));
        const int on = 1;
        if (::setsockopt(made.near.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) !=
                0 ||
            ::bind(made.near.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)) != 0)
            return fail_errno();
        if (::connect(made.near.get(), reinterpret_cast<const sockaddr*>(&address_),
                      sizeof(address_)) != 0)
            return fail_errno();
        made.handed.reset(
            ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!made.handed) return fail_errno();
        // As a web server has it.
        static_cast<void>(
            ::setsockopt(made.handed.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
        return made;
    }

private:
    static constexpr in_addr_t first_client_address = 0x7f010001;  // 127.1.0.1
    static constexpr std::size_t clients_an_address = 500;

    unique_fd listener_;
    sockaddr_in address_{};
};

/// One stream. Small: there are thousands.
struct live_stream {
    stream client;
    time_point sent;
    time_point first_byte;  // the epoch before it has come
    bool is_expired = false;
    bool has_ended = false;
};

class worker {
public:
    worker(const handoff_options& wanted, std::size_t index, std::size_t processes,
           handoff_board& board, handoff_share& share)
        : wanted_(wanted),
          index_(index),
          processes_(processes),
          board_(board),
          share_(share),
          counts_(share.counts),
          clients_(wanted.over_tcp),
          kind_(wanted.kind) {
        const auto receiver = endpoint::unix_path(wanted.socket);
        if (!receiver)
            give_up(fmt::format("\"{}\" is no path of a Unix socket: {}", wanted.socket,
                                receiver.error().message()));
        receiver_ = *receiver;
        data_ = wanted.data.empty() ? std::string(1, '\0') : wanted.data;
        streams_.resize(
            index < wanted.connections ? (wanted.connections - index - 1) / processes + 1 : 0);
    }

    task<void> run() {
        board_.ready.fetch_add(1, std::memory_order_release);
        while (board_.start_ns.load(std::memory_order_acquire) == 0)
            static_cast<void>(co_await loop::current().sleep_for(1ms));
        begin_ = time_point(duration(board_.start_ns.load(std::memory_order_relaxed)));
        hold_end_ = begin_ + wanted_.ramp_up + wanted_.hold;
        co_await with_scope([&](scope& background) -> task<void> {
            background.spawn(watch());
            co_await join_scope([&](scope& streams) -> task<void> { co_await start_all(streams); });
        });
        counts_.cpu_seconds = own_cpu_seconds();
    }

private:
    /// Starts each stream at its time.
    task<void> start_all(scope& streams) {
        loop& here = loop::current();
        const double step =
            static_cast<double>(wanted_.ramp_up.count()) / static_cast<double>(wanted_.connections);
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            const std::size_t number = index_ + i * processes_;
            const time_point planned =
                begin_ + duration(static_cast<std::int64_t>(step * static_cast<double>(number)));
            if (planned > steady::now())
                static_cast<void>(co_await here.sleep_until(planned));
            else
                co_await here.yield();  // or late starts would keep answers from being read
            // All at once are as fast as they can be, never late.
            if (step > 0) counts_.lateness.record(nanoseconds(steady::now() - planned));
            streams.spawn(run_stream(streams_[i], number));
        }
    }

    /// Ends streams that have taken too long.
    task<void> watch() {
        for (;;) {
            if (!co_await loop::current().sleep_for(watch_pause)) co_return;
            share_.cpu_ns.store(static_cast<std::int64_t>(own_cpu_seconds() * 1e9),
                                std::memory_order_relaxed);
            end_late_streams(steady::now());
        }
    }

    void end_late_streams(time_point now) noexcept {
        // In the order of their starts, so that the first one that has time left ends the search.
        while (oldest_ < streams_.size() && streams_[oldest_].has_ended) ++oldest_;
        for (std::size_t i = oldest_; i < streams_.size(); ++i) {
            live_stream& each = streams_[i];
            if (each.is_expired || !each.client) continue;
            if (now < each.sent + wanted_.stream_timeout) return;
            each.is_expired = true;
            each.client.close();
        }
    }

    // Starting is a coroutine of its own, so that a stream under way keeps one frame alone.
    task<void> run_stream(live_stream& own, std::size_t number) {
        ++counts_.started;
        board_.begin_stream();
        bool is_right = co_await start(own, number);
        if (is_right) {
            event_stream_check check;
            std::error_code ended;
            for (;;) {
                auto received = co_await own.client.read();
                if (!received) {
                    ended = received.error();
                    break;
                }
                if (own.first_byte == time_point()) own.first_byte = steady::now();
                counts_.bytes += received->size();
                if (!check.feed(received->text())) break;
            }
            const time_point end = steady::now();
            own.client.close();
            is_right = judge(own, number, check, ended, end);
        }
        own.has_ended = true;
        if (!is_right) board_.failed.fetch_add(1, std::memory_order_relaxed);
        board_.end_stream();
    }

    /// Makes the client and hands it over. False after a fault.
    task<bool> start(live_stream& own, std::size_t number) {
        auto ends = clients_.make(number);
        if (!ends) {
            count(number, handoff_fault::connect, "no client can be made", ends.error());
            co_return false;
        }
        handoff::send_attempt sending(receiver_, kind_, data_, ends->handed.get());
        const time_point begin = steady::now();
        auto next = sending.step();
        own.sent = steady::now();
        if (!next || *next != handoff::send_attempt::wait::none) {
            std::error_code error;
            if (next) {
                const time_point until = std::min(begin + wanted_.stream_timeout, hold_end_);
                const auto finished = co_await handoff::finish(sending, *next, until);
                if (!finished) error = finished.error();
            } else {
                error = next.error();
            }
            own.sent = steady::now();
            if (error && sending.is_connected()) {
                count(number, handoff_fault::send, "the client was not sent", error);
                co_return false;
            }
            if (error) {
                count(number, handoff_fault::connect, wanted_.socket, error);
                co_return false;
            }
        }
        counts_.handoff.record(nanoseconds(own.sent - begin));
        kind_ = counts_.socket = sending.kind();
        auto adopted = loop::current().adopt(std::move(ends->near));
        if (!adopted) {
            count(number, handoff_fault::connect, "no client can be made", adopted.error());
            co_return false;
        }
        own.client = std::move(*adopted);
        co_return true;
    }

    bool judge(const live_stream& own, std::size_t number, const event_stream_check& check,
               std::error_code ended, time_point end) {
        const auto fault = [&](handoff_fault kind, std::string_view what) {
            count(number, kind, what, {});
            return false;
        };
        if (own.is_expired)
            return fault(handoff_fault::timeout,
                         fmt::format("no end of the answer after {:.0f} ms and {} events",
                                     milliseconds(end - own.sent), check.events()));
        if (check.status() == 503)
            return fault(handoff_fault::rejected, "the runtime is full: 503");
        if (check.status() != 0 && check.status() != 200)
            return fault(handoff_fault::receive, fmt::format("the status is {}", check.status()));
        if (check.status() == 200)
            counts_.first_byte.record(nanoseconds(own.first_byte - own.sent));
        if (check.error()) return fault(handoff_fault::receive, check.error());
        if (ended != errc::end_of_stream) {
            count(number, handoff_fault::receive, "the answer broke off", ended);
            return false;
        }
        if (check.status() == 0) return fault(handoff_fault::receive, "the client got no answer");
        if (!check.is_done() || check.events() < wanted_.messages) {
            ++counts_.incomplete;
            const std::string what =
                fmt::format("the answer ended after {} events, {} data: [DONE]", check.events(),
                            check.is_done() ? "with" : "without");
            counts_.note(what);
            report(number, what);
            return false;
        }
        ++counts_.completed;
        counts_.stream.record(nanoseconds(end - own.sent));
        if (wanted_.interval > duration::zero()) {
            const auto gaps = static_cast<std::int64_t>(std::max<std::uint64_t>(
                                  wanted_.messages > 0 ? wanted_.messages : check.events(), 1)) -
                              1;
            const duration drift = end - (own.first_byte + gaps * wanted_.interval);
            counts_.drift.record(nanoseconds(drift < duration::zero() ? -drift : drift));
        }
        if (wanted_.is_verbose)
            report(number, fmt::format("first byte after {:.3f} ms, end after {:.3f} ms, {} events",
                                       milliseconds(own.first_byte - own.sent),
                                       milliseconds(end - own.sent), check.events()));
        return true;
    }

    void count(std::size_t number, handoff_fault kind, std::string_view what,
               std::error_code error) {
        const std::string text =
            error ? fmt::format("{}: {}", what, error.message()) : std::string(what);
        counts_.count(kind, text);
        report(number,
               fmt::format("{}: {}", handoff_fault_names[static_cast<std::size_t>(kind)], text));
    }

    void report(std::size_t number, std::string_view what) const {
        // In one call, so that lines of several processes do not mix.
        if (wanted_.is_verbose) fmt::print(stderr, "stream {}: {}\n", number, what);
    }

    const handoff_options& wanted_;
    std::size_t index_;
    std::size_t processes_;
    handoff_board& board_;
    handoff_share& share_;
    handoff_counts& counts_;
    client_maker clients_;
    handoff::socket_kind kind_;  // `automatic` until it is known
    endpoint receiver_;
    std::string data_;
    time_point begin_;
    time_point hold_end_;
    std::vector<live_stream> streams_;
    std::size_t oldest_ = 0;  // first stream that has not ended
};

}  // namespace

void handoff_board::begin_stream() noexcept {
    started.fetch_add(1, std::memory_order_relaxed);
    const std::int64_t now = live.fetch_add(1, std::memory_order_relaxed) + 1;
    std::int64_t most = peak.load(std::memory_order_relaxed);
    while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
}

void run_handoff_worker(const handoff_options& wanted, std::size_t index, std::size_t processes,
                        handoff_board& board, handoff_share& share) {
    loop_options choices;
    choices.kind = wanted.io_backend;
    // Measured: it costs a quarter more CPU, and brings no first byte earlier.
    choices.polling = false;
    auto made = loop::create(choices);
    if (!made) give_up("could not make an event loop: " + made.error().message());
    worker part(wanted, index, processes, board, share);
    (*made)->run(part.run());
}

}  // namespace eddy::cli::bench
