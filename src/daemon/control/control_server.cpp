// Control server: accept loops and admission.
#include "daemon/control/control_server.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/unix.hpp>

#include "base/files/descriptors.hpp"
#include "daemon/control/control_api.hpp"
#include "net/peer_process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

namespace eddy::daemon {
namespace {

/// Time in which a connection over the limit may read its refusal.
constexpr duration reject_time = std::chrono::seconds(1);

/// At most one log line about unauthorized clients in this time, so that they cannot fill the log.
constexpr duration unauthorized_log_pause = std::chrono::seconds(1);

/// Connections that were replaced, and have not ended yet, at a time. They end in the next turn,
/// and a turn accepts fewer.
constexpr std::size_t most_replaced = 256;

/// http::serve() with a value, as a wait with a timeout needs one.
task<result<>> serve_to_end(stream peer, http::request_handler& handler,
                            http::session_limits limits) {
    co_await http::serve(std::move(peer), handler, limits);
    co_return result<>();
}

}  // namespace

bool may_control(uid_t peer, uid_t own) noexcept { return peer == own || peer == 0; }

/// One served connection. While it is idle another one may replace it.
class control_server::session final : public http::session_observer, public list_link<> {
public:
    session(control_server& of, bool is_root, cancel_source* parent) noexcept
        : cancel(parent), is_root(is_root), of_(of) {
        ++of_.open_;
        ++of_.counted_.connections;
        of_.silent_.push_back(*this);
    }
    ~session() {
        unlink();
        EDDY_ASSERT(of_.open_ > 0 && of_.counted_.connections > 0);
        --of_.counted_.connections;
        --of_.open_;
        if (is_replaced_) --of_.replaced_;
    }
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    void replace() noexcept {
        unlink();
        EDDY_ASSERT(!is_replaced_);
        is_replaced_ = true;
        ++of_.replaced_;
        cancel.request();
    }

    void enter(http::session_state now) noexcept override {
        if (is_replaced_) return;
        if (now == http::session_state::working) has_asked_ = true;
        // The first request's head may take as long as silence does.
        if (!has_asked_ || (linked() && now == http::session_state::idle)) return;
        unlink();
        if (now == http::session_state::idle) of_.idle_.push_back(*this);
    }
    void note(const http::exchange_record&) override {}
    bool is_ending() const noexcept override { return is_replaced_; }

    cancel_source cancel;
    const bool is_root;

private:
    control_server& of_;
    bool has_asked_ = false;
    bool is_replaced_ = false;
};

task<void> control_server::run() {
    scope sessions(co_await current_source());
    for (;;) {
        auto accepted = co_await listener_.accept();
        if (accepted) {
            // Clients of a TCP port have no user id; all of them are served.
            std::optional<uid_t> user = 0;
            bool is_own = false;
            bool is_other = false;
            if (ask_who_) {
                const auto peer = unix_socket::peer_credentials(*accepted);
                user = peer ? std::optional(peer->uid) : std::nullopt;
                const bool is_here = peer && peer->pid == ::getpid();
                is_own = limits_.refuses_own_process && is_here;
                is_other = limits_.refuses_other_processes && !is_here;
            }
            if (is_own) {
                reject_unauthorized(std::move(*accepted), "a runtime of the daemon", sessions);
                continue;
            }
            if (is_other) {
                reject_unauthorized(std::move(*accepted), "another process", sessions);
                continue;
            }
            if (!user || (!may_control(*user, ::geteuid()) && !is_member(*accepted))) {
                std::string name = user ? fmt::format("user id {}", *user) : "an unknown user";
                reject_unauthorized(std::move(*accepted), std::move(name), sessions);
                continue;
            }
            if (const result<> room = co_await wait_for_room(*accepted); !room) break;
            if (starved_) log_info("daemon", "accepting control connections again");
            starved_ = false;
            admit(std::move(*accepted), *user, sessions);
            continue;
        }
        if (accepted.error() == errc::cancelled || accepted.error() == errc::closed) break;
        // A connection that went before it was accepted, or a shortage that will pass: neither
        // may end the daemon.
        if (!co_await wait_for_descriptors(accepted.error())) break;
    }
    is_accepting_ = false;
    // Without a listener the sessions stay until this task is cancelled.
    event never;
    if (sessions.children() > 0) static_cast<void>(co_await never.wait());
    sessions.cancel();
    co_await sessions.join();
}

bool control_server::is_member(const stream& peer) const {
    EDDY_ASSERT(ask_who_);
    return limits_.group && unix_socket::has_peer_in_group(peer.native_handle(), *limits_.group);
}

void control_server::admit(stream peer, uid_t user, scope& sessions) {
    const std::size_t reserved = user == 0 ? 0 : std::min(limits_.for_root, limits_.connections);
    const std::size_t limit = limits_.connections - reserved;
    if (open_ - replaced_ < limit || replace_idle(user == 0)) {
        sessions.spawn(serve(std::move(peer), user == 0));
        return;
    }
    ++counted_.connections_refused;
    // A flood is not worth more memory than the connections that are served.
    if (sessions.children() < 2 * limits_.connections + limits_.unauthorized)
        sessions.spawn(reject(std::move(peer), limit));
}

/// Makes room for a further connection. False if no other may be replaced by it.
bool control_server::replace_idle(bool is_root) noexcept {
    if (replaced_ >= most_replaced) return false;
    for (intrusive_list<session>* const from : {&silent_, &idle_}) {
        session* oldest = nullptr;
        from->for_each([&](session& each) {
            if (oldest == nullptr && (is_root || !each.is_root)) oldest = &each;
        });
        if (oldest == nullptr) continue;
        oldest->replace();
        return true;
    }
    return false;
}

void control_server::reject_unauthorized(stream peer, std::string name, scope& sessions) {
    ++counted_.connections_refused;
    const time_point now = loop::current().now();
    if (unauthorized_logged_ == time_point() ||
        now - unauthorized_logged_ >= unauthorized_log_pause) {
        unauthorized_logged_ = now;
        log_warn("daemon", fmt::format("refused a control connection of {}", name));
    }
    if (unauthorized_ < limits_.unauthorized)
        sessions.spawn(refuse_unauthorized(std::move(peer), std::move(name)));
}

task<result<>> control_server::wait_for_descriptors(std::error_code error) {
    if (!std::exchange(starved_, true)) {
        const std::string shortage = descriptors::explain_shortage(error);
        log_warn("daemon", fmt::format("control connections wait: {}",
                                       shortage.empty() ? error.message() : shortage));
    }
    co_return co_await loop::current().sleep_for(limits_.starved_pause);
}

/// The last descriptors are for the state, files and outgoing connections: a connection that has
/// one of them waits until others have ended. Connections of a TCP port leave more of them free.
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

task<void> control_server::serve(stream peer, bool is_root) {
    session its(*this, is_root, co_await current_source());
    try {
        auto served = http::serve_observed(peer, handler_, limits_.session, its);
        co_await std::move(served).under(its.cancel);
    } catch (const std::exception& failure) {
        // Such as a lack of memory: it ends this connection and nothing else.
        log_error("daemon", fmt::format("a control connection ended: {}", failure.what()));
    }
}

task<void> control_server::refuse_unauthorized(stream peer, std::string name) {
    ++unauthorized_;
    try {
        refusing_handler handler(
            403,
            fmt::format(
                "{} may not control this daemon: only its own user (id {}){} and root may. Use "
                "sudo, or start a daemon of your own",
                name, ::geteuid(),
                limits_.group ? fmt::format(", members of the group with id {},", *limits_.group)
                              : ""));
        static_cast<void>(co_await with_timeout(
            limits_.unauthorized_time, serve_to_end(std::move(peer), handler, limits_.session)));
    } catch (const std::exception& failure) {
        log_error("daemon", fmt::format("a control connection ended: {}", failure.what()));
    }
    EDDY_ASSERT(unauthorized_ > 0);
    --unauthorized_;
}

task<void> control_server::reject(stream peer, std::size_t limit) {
    http::response refusal = error_response(
        503, fmt::format("there are {} control connections, which is the limit; try again later",
                         limit));
    static_cast<void>(
        co_await http::send_and_close(std::move(peer), std::move(refusal), reject_time));
}

}  // namespace eddy::daemon
