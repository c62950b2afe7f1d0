// Receivers of messages by mode, the master, and replies to commands.
#include "runtime/server/modes/client_modes.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "runtime/server/web_peer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace eddy::runtime::server {
namespace {

/// Between two lines of the journal about refused claims of one kind.
constexpr duration refusal_pause = std::chrono::minutes(1);
/// Messages that are forwarded at once have so many times less bytes than others: the prefix may be
/// most of a short line.
constexpr std::size_t forward_factor = longest_forward_prefix + 2;

/// The first whole lines within `most` bytes, or the first line, if there is one; else all.
std::string_view first_lines(std::string_view lines, std::size_t most) noexcept {
    if (lines.size() <= most) return lines;
    const std::size_t last = lines.rfind('\n', most);
    const std::size_t end = last != std::string_view::npos ? last : lines.find('\n', most);
    return end == std::string_view::npos ? lines : lines.substr(0, end + 1);
}

}  // namespace

client_modes::client_modes(server_context& of, const config& chosen, broadcast& out,
                           exchange_end* others)
    : context_(of),
      out_(out),
      others_(others),
      mode_(chosen.mode),
      is_by_line_(chosen.messages == framing::line),
      forwards_(chosen.forwards_to_master),
      longest_line_(chosen.max_line),
      cache_(of.daemon, of.name, chosen.max_queue / 2) {
    apply(chosen);
}

void client_modes::apply(const config& chosen) {
    mode_ = chosen.mode;
    forwards_ = chosen.forwards_to_master;
    rules_ = {.takes_master = chosen.mode == flow::master && is_by_line_,
              .takes_cache = !chosen.cache.empty() && is_by_line_,
              .longest = longest_line_};
    cache_.set_cache(chosen.cache);
    if (master_here_ != nullptr && !context_.claim.is_master(master_here_->id()))
        reply(*std::exchange(master_here_, nullptr), "master: ended\n");
}

client_modes::route client_modes::route_of(const client& of) const noexcept {
    switch (mode_) {
        case flow::inout: return route::others;
        case flow::in:
        case flow::out: return route::none;
        case flow::master: break;
    }
    if (context_.claim.is_master(of.id())) return route::others;
    return forwards_ && context_.claim.has_master() ? route::master : route::none;
}

std::string_view client_modes::bounded(std::string_view lines, route to) const noexcept {
    return to == route::master ? first_lines(lines, out_.piece_limit() / forward_factor) : lines;
}

void client_modes::send_on(client& from, std::string_view messages, std::uint64_t count, route to,
                           time_point arrived) {
    if (to == route::others) return out_.add(&from, messages, count, arrived);
    if (to == route::none) return;
    const master_claim::holder master = context_.claim.master();
    if (master.client == 0) return;
    EDDY_ASSERT(messages.ends_with('\n') && master.client != from.id());
    byte_buffer made;
    made.reserve(messages.size() + count * longest_forward_prefix);
    const std::string prefix = fmt::format("[{}] ", from.id());
    while (!messages.empty()) {
        const std::size_t end = std::min(messages.find('\n'), messages.size() - 1);
        made.append(prefix);
        made.append(messages.substr(0, end + 1));
        messages.remove_prefix(end + 1);
    }
    shared_messages what{std::make_shared<const byte_buffer>(std::move(made)), count};
    what.only = master.client;
    if (others_ == nullptr || master.loop == &others_->own())
        deliver(what);
    else
        master.loop->push(std::move(what));
}

void client_modes::deliver(const shared_messages& what) {
    if (what.only == 0) {
        static_cast<void>(out_.deliver(what, std::nullopt));
    } else if (master_here_ != nullptr && master_here_->id() == what.only) {
        static_cast<void>(out_.deliver_to(*master_here_, what));
    }
}

master_claim::holder client_modes::holder_of(const client& of) const noexcept {
    return {of.id(), others_ != nullptr ? &others_->own() : nullptr};
}

void client_modes::claim(client& by, std::string_view password) {
    EDDY_ASSERT(rules_.takes_master);
    answer(by,
           context_.claim.claim(password, by.socket.peer(), holder_of(by), loop::current().now()));
}

bool client_modes::begin_claim(client& by) {
    if (context_.claim.may_claim(by.socket.peer(), loop::current().now())) return true;
    answer(by, claim_answer::locked);
    return false;
}

void client_modes::decide(client& by, bool is_granted) {
    // The mode may have changed meanwhile.
    if (!rules_.takes_master) return answer(by, claim_answer::wrong);
    answer(by, context_.claim.decide(is_granted, by.socket.peer(), holder_of(by),
                                     loop::current().now()));
}

void client_modes::answer(client& by, claim_answer with) {
    switch (with) {
        case claim_answer::granted:
            if (master_here_ != &by)
                context_.events.write(fmt::format("client {} is the master", by.id()));
            master_here_ = &by;
            return reply(by, "master: ok\n");
        case claim_answer::taken: return reply(by, "master: denied: there is a master\n");
        case claim_answer::wrong: note(refusal::wrong, by); return reply(by, "master: denied\n");
        case claim_answer::locked:
            note(refusal::locked, by);
            return reply(by, "master: denied: too many wrong passwords; try again later\n");
    }
}

void client_modes::leave(const client& gone) {
    if (master_here_ != &gone) return;
    master_here_ = nullptr;
    if (context_.claim.release(gone.id()))
        context_.events.write(fmt::format("client {}, the master, left", gone.id()));
}

void client_modes::note(refusal why, const client& by) {
    const time_point now = loop::current().now();
    std::optional<time_point>& last = noted_at_[static_cast<std::size_t>(why)];
    if (last && now - *last < refusal_pause) return;
    last = now;
    context_.events.write(fmt::format(
        "client {} at {} {}", by.id(), by.socket.peer().to_string(),
        why == refusal::wrong
            ? "gave a wrong password of the master"
            : fmt::format("may not claim the master: {} wrong passwords within a minute came from "
                          "its address",
                          max_wrong_passwords)));
}

/// A reply that does not fit into the client's queue is lost, as other messages are.
void client_modes::reply(client& to, std::string_view lines) const {
    to.become_raw();
    if (!to.listens()) return;
    const auto count = static_cast<std::uint32_t>(std::count(lines.begin(), lines.end(), '\n'));
    if (to.web() == nullptr) {
        static_cast<void>(to.enqueue(as_bytes(lines), count));
    } else {
        byte_buffer frames;
        write_frames(frames, lines, true);
        static_cast<void>(to.enqueue(frames.bytes(), count));
    }
    to.touch();
}

task<result<>> client_modes::run_commands(client& by, std::vector<std::string> commands) {
    EDDY_ASSERT(rules_.any() && !commands.empty());
    byte_buffer replies;
    const result<> done = co_await cache_.run(std::move(commands), replies);
    if (!done) co_return done;
    // Each piece fits beside what is queued below the watermark: a client that reads late loses
    // nothing, and has no further commands executed meanwhile.
    for (std::string_view rest = replies.text(); !rest.empty();) {
        if (by.out.high_watermark_active()) {
            const result<> has_room = co_await by.out.ready();
            if (!has_room) co_return has_room;
        }
        const std::string_view piece = first_lines(rest, out_.piece_limit());
        reply(by, piece);
        rest.remove_prefix(piece.size());
    }
    co_return result<>();
}

}  // namespace eddy::runtime::server
