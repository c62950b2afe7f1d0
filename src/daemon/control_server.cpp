// Accepting control connections.
#include "daemon/control_server.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/log.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/unix.hpp>

#include "base/descriptors.hpp"
#include "daemon/control_api.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <utility>

namespace eddy::daemon {
namespace {

/// How long a connection that is one too many may take to hear so.
constexpr duration turn_away_time = std::chrono::seconds(1);

bool is_shortage(std::error_code error) {
    return error == std::errc::too_many_files_open ||
           error == std::errc::too_many_files_open_in_system ||
           error == std::errc::no_buffer_space || error == std::errc::not_enough_memory;
}

task<result<>> transmit(stream& to, const_bytes bytes) { co_return co_await to.write_all(bytes); }

}  // namespace

bool may_control(uid_t peer, uid_t own) noexcept { return peer == own || peer == 0; }

task<void> control_server::run() {
    scope sessions(co_await current_source());
    for (;;) {
        auto accepted = co_await listener_.accept();
        if (accepted) {
            if (const result<> room = co_await wait_for_room(*accepted); !room) break;
            if (starved_) log_info("daemon", "accepting control connections again");
            starved_ = false;
            if (open_ < limits_.connections) {
                sessions.spawn(serve(std::move(*accepted)));
            } else {
                ++counted_.connections_refused;
                // Whoever floods is not worth more memory than the others have.
                if (sessions.children() < 2 * limits_.connections)
                    sessions.spawn(turn_away(std::move(*accepted)));
            }
            continue;
        }
        if (accepted.error() == errc::cancelled || accepted.error() == errc::closed) break;
        // A connection that went before it was accepted, or a shortage that will pass: neither
        // may end the daemon.
        if (!co_await wait_for_descriptors(accepted.error())) break;
    }
    // Without a listener the sessions stay until this task is cancelled.
    event never;
    if (sessions.children() > 0) static_cast<void>(co_await never.wait());
    sessions.cancel();
    co_await sessions.join();
}

task<result<>> control_server::wait_for_descriptors(std::error_code error) {
    if (!std::exchange(starved_, true)) {
        log_warn("daemon",
                 fmt::format("control connections wait: {}{}", error.message(),
                             is_shortage(error) ? "; raise the limit (ulimit -n) or close some "
                                                  "connections"
                                                : ""));
    }
    co_return co_await loop::current().sleep_for(limits_.starved_pause);
}

/// The last descriptors are for the state, files and outgoing connections: a connection that has
/// one of them waits until others have left. Those of other users, on a TCP port, leave more.
task<result<>> control_server::wait_for_room(const stream& accepted) {
    using namespace descriptors;
    const use kind = ask_who_ ? use::control : use::client;
    if (!in_reserve(accepted.native_handle(), kind)) co_return result<>();
    while (!has_room(kind)) {
        const result<> slept = co_await wait_for_descriptors(errno_code(EMFILE));
        if (!slept) co_return slept;
    }
    co_return result<>();
}

task<void> control_server::serve(stream peer) {
    ++open_;
    ++counted_.connections;
    try {
        co_await converse(std::move(peer));
    } catch (const std::exception& failure) {
        // Such as a lack of memory: it ends this connection and nothing else.
        log_error("daemon", fmt::format("a control connection ended: {}", failure.what()));
    }
    --counted_.connections;
    --open_;
}

task<void> control_server::converse(stream peer) {
    if (ask_who_) {
        const auto who = unix_socket::peer_credentials(peer);
        if (!who || !may_control(who->uid, ::geteuid())) {
            const std::string name = who ? fmt::format("user id {}", who->uid) : "an unknown user";
            log_warn("daemon", fmt::format("refused a control connection of {}", name));
            closed_door door(403,
                             fmt::format("{} may not control this daemon: it takes orders from "
                                         "its own user (id {}) and from root. Use sudo, or "
                                         "start a daemon of your own",
                                         name, ::geteuid()));
            co_await serve_http(std::move(peer), door, limits_.session);
            co_return;
        }
    }
    co_await serve_http(std::move(peer), handler_, limits_.session);
}

task<void> control_server::turn_away(stream peer) {
    const http_response refusal = error_response(
        503, fmt::format("there are {} control connections, which is the limit; try again later",
                         limits_.connections));
    byte_buffer out;
    http::head_writer writer(out);
    writer.response(503).field("Content-Type", refusal.content_type).field("Connection", "close");
    const auto written = writer.end(http::body_framing::sized(refusal.body.size()));
    EDDY_ASSERT(written.has_value());
    out.append(refusal.body);
    static_cast<void>(co_await with_timeout(turn_away_time, transmit(peer, out.bytes())));
}

}  // namespace eddy::daemon
