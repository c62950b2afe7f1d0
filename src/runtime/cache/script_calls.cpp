// Commands of scripts of other runtimes.
#include "runtime/cache/script_calls.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "cache/clients/engine_clients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace eddy::runtime::cache {
namespace {

/// A refusal, as a reply.
void refuse_by_reply(byte_buffer& out, std::string_view why) {
    out.append('-');
    out.append(why);
    out.append("\r\n");
}
std::string refusal_reply(std::string_view why) { return fmt::format("-{}\r\n", why); }

}  // namespace

script_calls::script_calls(cache_context& of, std::string name)
    : context_(&of), name_(std::move(name)) {}

script_calls::~script_calls() { EDDY_ASSERT(used_.empty() && idle_.empty()); }

// --- Sessions ---------------------------------------------------------------------------------

std::unique_ptr<script_calls::session> script_calls::take_idle(const login& by) {
    // A password may have been set since: that of a session without one counts no longer.
    const eddy::cache::engine_clients clients(context_->engine);
    const auto is_over = [&](const std::unique_ptr<session>& each) {
        return each->closing ||
               (!each->by.is_given() && each->authenticated && clients.need_password());
    };
    std::erase_if(idle_, is_over);
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                    [&](const auto& each) { return each->by == by; });
    if (found == idle_.rend()) return nullptr;
    std::unique_ptr<session> taken = std::move(*found);
    idle_.erase(std::next(found).base());
    return taken;
}

/// Null, with the refusal as a reply, where there is none.
script_calls::used_session script_calls::take(const login& by, byte_buffer& out) {
    if (used_.size() >= max_waiting_script_calls) {
        refuse_by_reply(out, fmt::format("{} commands of scripts wait for the cache \"{}\", which "
                                         "is the limit",
                                         max_waiting_script_calls, name_));
        return {};
    }
    std::unique_ptr<session> one = take_idle(by);
    if (!one) {
        one = std::make_unique<session>(context_->engine);
        one->by = by;
        if (!log_in(*one, by, out)) return {};
    }
    used_.push_back(one.get());
    return {one.release(), give_back{this}};
}

bool script_calls::log_in(session& as, const login& by, byte_buffer& out) {
    if (!by.is_given()) {
        if (as.authenticated || !eddy::cache::engine_clients(context_->engine).need_password())
            return true;
        refuse_by_reply(out, fmt::format("the cache \"{0}\" wants a password: eddy.cache(\"{0}\", "
                                         "{{password = \"…\"}})",
                                         name_));
        return false;
    }
    std::vector<std::string_view> words = {"AUTH"};
    if (!by.user.empty()) words.emplace_back(by.user);
    words.emplace_back(by.password);
    byte_buffer reply;
    const resp::command command{.argv = words.data(), .argc = words.size()};
    static_cast<void>(context_->engine.execute(as, std::span(&command, 1), reply));
    if (reply.text() == "+OK\r\n") return true;
    out.append(reply.text());
    return false;
}

void script_calls::take_back(session* used) noexcept {
    EDDY_ASSERT(used != nullptr && std::ranges::count(used_, used) == 1);
    std::unique_ptr<session> one(used);
    std::erase(used_, used);
    // One that waits still would get the reply of its last command.
    if (!is_closed() && !one->closing && !one->blocked && idle_.size() < max_idle_script_sessions)
        idle_.push_back(std::move(one));
    if (used_.empty()) all_back_.set();
}

task<void> script_calls::end() {
    close();
    idle_.clear();
    for (session* const each : used_) each->changed.set();
    while (!used_.empty()) {
        all_back_.reset();
        // Also an end that is cancelled waits for them.
        if (!co_await all_back_.wait()) co_await loop::current().yield();
    }
    context_ = nullptr;
}

// --- Commands ---------------------------------------------------------------------------------

std::size_t script_calls::execute(session& by, const resp::command& what, byte_buffer& out) {
    EDDY_ASSERT(!is_closed() && !by.blocked && what.argc > 0);
    context_->update_time();
    context_->ask_upkeep();
    const std::size_t executed = context_->engine.execute(by, std::span(&what, 1), out);
    if (context_->engine.is_behind() && !context_->is_behind.is_set()) context_->is_behind.set();
    return executed;
}

/// True if the reply must wait for the append-only file, which may have failed.
bool script_calls::must_wait(session& of) const noexcept {
    return context_->append != nullptr &&
           (context_->append->holds_replies() || context_->append->was_given_up(of));
}

std::optional<task<std::string>> script_calls::begin(const login& by, const resp::command& what,
                                                     byte_buffer& out) {
    EDDY_ASSERT(home().is_current() && what.argc > 0);
    if (is_closed()) {
        refuse_by_reply(out, fmt::format("the cache \"{}\" has stopped", name_));
        return std::nullopt;
    }
    used_session its = take(by, out);
    if (!its) return std::nullopt;
    ++count_;
    const std::size_t before = out.size();
    const std::size_t executed = execute(*its, what, out);
    if (executed == 1 && !its->blocked && !its->closing && !must_wait(*its)) [[likely]]
        return std::nullopt;
    std::string reply(out.text().substr(before));
    out.truncate(before);
    std::vector<std::string> rest;
    if (executed == 0) rest.assign(what.args().begin(), what.args().end());
    return finish(std::move(its), std::move(rest), std::move(reply));
}

/// Why the session executes nothing more; empty if it does.
std::string script_calls::obstacle_of(const session& of) const {
    if (is_closed())
        return fmt::format("the cache \"{}\" is stopping; the command may be executed", name_);
    if (of.closing) return fmt::format("the cache \"{}\" has closed the session", name_);
    return {};
}

/// False at its end, or after a cancellation.
task<bool> script_calls::await_change(session& of, time_point last) {
    using std::chrono::microseconds;
    of.changed.reset();
    time_point until = last;
    const std::int64_t due_us = eddy::cache::engine::deadline_us(of);
    if (due_us != eddy::cache::client_session::no_deadline)
        until =
            std::min(until, loop::current().after(std::max(
                                microseconds(due_us) - context_->clock.steady(), microseconds(1))));
    const result<> woken = co_await with_deadline(until, of.changed.wait());
    if (!woken && woken.error() == errc::cancelled) co_return false;
    if (is_closed()) co_return true;
    context_->update_time();
    context_->engine.end_wait(of);
    co_return loop::current().now() < last;
}

/// Waits until the append-only file, or the disk, has what the reply reports.
task<bool> script_calls::await_file(session& of) {
    append_file& file = *context_->append;
    if (file.was_given_up(of)) co_return false;
    if (!file.holds_replies()) co_return true;
    const append_file::mark until = file.present();
    if (!until.waits_for_disk) {
        // One write for all of this turn.
        co_await loop::current().yield();
        if (file.write_now(until)) co_return true;
    }
    co_return co_await file.await_written(until);
}

task<std::string> script_calls::finish(used_session its, std::vector<std::string> rest,
                                       std::string reply) {
    session& own = *its;
    const time_point last = loop::current().after(script_call_patience);
    const auto late = [this] {
        return refusal_reply(
            fmt::format("the cache \"{}\" has not answered; the command may be executed", name_));
    };
    for (;;) {
        while (own.blocked && !own.closing && !is_closed())
            if (!co_await await_change(own, last)) co_return late();
        if (const std::string why = obstacle_of(own); !why.empty()) co_return refusal_reply(why);
        byte_buffer more;
        context_->engine.take_output(own, more);
        if (!rest.empty()) {
            const std::vector<std::string_view> words(rest.begin(), rest.end());
            if (execute(own, {.argv = words.data(), .argc = words.size()}, more) == 1) rest.clear();
        }
        reply.append(more.text());
        if (rest.empty() && !own.blocked) break;
        if (loop::current().now() >= last) co_return late();
    }
    if (context_->append != nullptr && !co_await await_file(own))
        co_return refusal_reply(fmt::format(
            "the append-only file of \"{}\" could not be written; the change may be lost", name_));
    co_return reply;
}

}  // namespace eddy::runtime::cache
