// Commands of a server's clients to a cache of the same daemon.
#include "runtime/server/modes/cache_link.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/transport/transport.hpp>
#include <eddy/wire/resp.hpp>

#include "runtime/host/local_address.hpp"
#include "runtime/server/modes/cache_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::runtime::server {
namespace {

void append_error(byte_buffer& out, std::string_view why) {
    out.append("error: ");
    out.append(why);
    out.append('\n');
}

}  // namespace

void cache_link::set_cache(const std::string& name) {
    if (name == name_) return;
    name_ = name;
    ++generation_;
    unused_.clear();
}

/// The address of the cache. The refusal is a line for the client.
outcome<transport::address> cache_link::find() const {
    const auto none = [this] {
        return refuse(404, fmt::format("there is no running cache \"{}\"", name_));
    };
    if (daemon_.is_alone()) return none();
    auto where = find_local_address(daemon_, name_, self_);
    if (!where) return none();
    return where;
}

cache_link::batch cache_link::encode(const std::vector<std::string>& commands) const {
    EDDY_ASSERT(commands.size() <= max_cache_batch);
    batch made;
    for (const std::string& each : commands) {
        made.refusals.push_back(encode_cache_command(each, made.requests));
        if (made.refusals.back().empty()) ++made.unanswered_requests;
    }
    return made;
}

/// Answers the refused commands up to the next one that was sent.
void cache_link::answer_refusals(batch& what, byte_buffer& out) const {
    while (what.answered < what.refusals.size() && !what.refusals[what.answered].empty())
        append_error(out, what.refusals[what.answered++]);
}

std::unique_ptr<cache_link::connection> cache_link::take_unused() {
    const time_point now = loop::current().now();
    std::erase_if(unused_,
                  [&](const auto& each) { return now - each->used_at >= unused_cache_time; });
    if (unused_.empty()) return nullptr;
    auto taken = std::move(unused_.back());
    unused_.pop_back();
    return taken;
}

void cache_link::keep(std::unique_ptr<connection> unused) {
    if (unused->generation != generation_ || !unused->received.empty()) return;
    EDDY_ASSERT(unused_.size() < max_cache_connections);
    unused->used_at = loop::current().now();
    unused->received.release_if_empty();
    unused_.push_back(std::move(unused));
}

/// Null, and the reason in `fault`, when there is no connection. errc::cancelled.
task<result<std::unique_ptr<cache_link::connection>>> cache_link::connect(std::string& fault) {
    auto made = std::make_unique<connection>();
    made->generation = generation_;
    auto where = find();
    if (!where) {
        fault = std::move(where.error().message);
        co_return nullptr;
    }
    result<stream> connected =
        co_await with_timeout(cache_patience, transport::connect(std::move(*where), {}));
    if (!connected && connected.error() == errc::cancelled) co_return fail(connected.error());
    if (!connected) {
        fault = fmt::format("the cache \"{}\" cannot be reached: {}", name_,
                            connected.error().message());
        co_return nullptr;
    }
    made->socket = std::move(*connected);
    co_return made;
}

/// Sends the requests and reads the replies.
task<result<>> cache_link::exchange(std::unique_ptr<connection> over, batch& what,
                                    byte_buffer& out) {
    const result<> written = co_await over->socket.write_all(what.requests.bytes());
    if (!written) co_return written;
    resp::reply_limits limits;
    limits.max_bulk = limits.max_line = most_reply_;
    resp::reply_parser parser(limits);
    reply_lines lines(most_reply_);
    EDDY_ASSERT(over->received.empty());
    while (what.unanswered_requests > 0) {
        const resp::reply_outcome next = parser.next(over->received.text());
        if (next.status == resp::parse_status::error) co_return fail(errc::limit_reached);
        if (next.status == resp::parse_status::need_more) {
            const result<lease> got = co_await over->socket.read();
            if (!got) co_return fail(got.error());
            over->received.append(got->text());
            continue;
        }
        const bool is_whole = lines.take(next.event, out);
        over->received.consume(next.consumed);
        if (!is_whole) continue;
        --what.unanswered_requests;
        ++what.answered;
        answer_refusals(what, out);
    }
    keep(std::move(over));
    co_return result<>();
}

task<result<>> cache_link::run(std::vector<std::string> commands, byte_buffer& out) {
    commands_.fetch_add(commands.size(), std::memory_order_relaxed);
    batch work = encode(commands);
    answer_refusals(work, out);
    if (work.unanswered_requests == 0) co_return result<>();
    const result<permit> place = co_await places_.acquire();
    if (!place) co_return fail(place.error());
    std::string fault;
    std::unique_ptr<connection> over = take_unused();
    if (!over) {
        auto made = co_await connect(fault);
        if (!made) co_return fail(made.error());
        over = std::move(*made);
    }
    if (over) {
        const result<> done =
            co_await with_timeout(cache_patience, exchange(std::move(over), work, out));
        if (done) co_return done;
        if (done.error() == errc::cancelled) co_return done;
        // The others may have been cut, too.
        unused_.clear();
        if (done.error() == errc::timed_out)
            fault = fmt::format("the cache \"{}\" has not answered; the command may be executed",
                                name_);
        else if (done.error() == errc::limit_reached)
            fault = fmt::format("the cache \"{}\" has sent more than {} bytes, or no reply", name_,
                                most_reply_);
        else
            fault = fmt::format(
                "the connection to the cache \"{}\" was lost; the command may be executed", name_);
    }
    failures_.fetch_add(work.unanswered_requests, std::memory_order_relaxed);
    for (; work.answered < work.refusals.size(); ++work.answered) {
        const std::string& own = work.refusals[work.answered];
        append_error(out, own.empty() ? fault : own);
    }
    co_return result<>();
}

}  // namespace eddy::runtime::server
