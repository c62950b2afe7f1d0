// Sessions with replay.
#include "runtime/stream/replay/replay_sessions.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "base/rollback.hpp"
#include "runtime/stream/answer.hpp"
#include "runtime/stream/due_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <new>
#include <optional>
#include <utility>

namespace eddy::runtime::stream {
namespace {

constexpr std::string_view replaced = "client_replaced";

/// At most a day, so that is_before() is right.
std::uint32_t in_ms(duration time) noexcept {
    constexpr duration most = std::chrono::hours(24);
    return static_cast<std::uint32_t>(std::min(time, most) / std::chrono::milliseconds(1));
}

/// An id of ours.
std::optional<std::uint64_t> id_of(std::string_view text) noexcept {
    std::uint64_t read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error != std::errc{} || end != text.data() + text.size()) return {};
    return read;
}

}  // namespace

replay_sessions::replay_sessions(const session_options& options, handoff::client_table& clients,
                                 sessions::observer& owner)
    : owner_(owner),
      clients_(clients),
      logs_(options.replay_memory),
      kept_ms_(in_ms(options.replay_time)),
      finish_ms_(in_ms(options.finish_time)),
      start_(loop::current().now()) {
    // Address space alone, so that no client is ever without its entry.
    by_client_.reserve(options.capacity);
}

replay_sessions::~replay_sessions() { loop::current().disarm(*this); }

bool replay_sessions::continues_stream(const stream_request& from) {
    if (from.last_event_id.empty()) return false;
    const replay_log* const log = logs_.find(replay_logs::name_of(from));
    const auto id = id_of(from.last_event_id);
    return log != nullptr && !log->is_over && id && log->covers(*id);
}

bool replay_sessions::has_missed(const stream_request& from) {
    if (from.last_event_id.empty()) return false;
    const replay_log* const log = logs_.find(replay_logs::name_of(from));
    const auto id = id_of(from.last_event_id);
    return log != nullptr && id && log->covers(*id);
}

bool replay_sessions::has_whole(const stream_request& from) {
    if (from.last_event_id.empty()) return false;
    const replay_log* const log = logs_.find(replay_logs::name_of(from));
    return log != nullptr && log->is_over && id_of(from.last_event_id) == log->next();
}

result<sessions::beginning> replay_sessions::begin(unique_fd client, const stream_request& from,
                                                   std::string head, std::string_view first) {
    std::string name = replay_logs::name_of(from);
    const bool has_name = !name.empty();
    const bool asks_replay = has_name && !from.last_event_id.empty();
    if (replay_log* const known = has_name ? logs_.find(name) : nullptr) {
        const auto id = id_of(from.last_event_id);
        if (asks_replay && id && known->covers(*id))
            return resume(std::move(client), *known, *id, std::move(head));
        replace(*known);
    }
    sessions::beginning made;
    made.stream = take();
    made.is_reset = asks_replay;
    session& its = sessions_[made.stream];
    rollback begun([this, number = made.stream] { end_session(number); });
    if (has_name) its.log = logs_.make(std::move(name));
    if (its.log != nullptr) its.log->session = made.stream;
    if (asks_replay) head += reset_event;
    if (!first.empty() && its.log != nullptr)
        head += logs_.append(*its.log, first);
    else
        head += first;
    const result<std::uint32_t> added = clients_.add(std::move(client), head);
    if (!added) return fail(added.error());
    begun.keep();
    attach(made.stream, *added);
    return made;
}

result<sessions::beginning> replay_sessions::resume(unique_fd client, replay_log& log,
                                                    std::uint64_t behind, std::string head) {
    head += logs_.read_behind(log, behind);
    sessions::beginning made;
    made.is_new = false;
    // The client that it has is one whose end has not been noticed.
    if (log.session != none) detach(log.session, replaced);
    if (!log.is_over) {
        made.stream = log.session;
        const auto added = clients_.add(std::move(client), head);
        if (!added) return fail(added.error());
        attach(made.stream, *added);
        logs_.move(log, log_stage::followed);
        return made;
    }
    made.stream = take();
    rollback taken([this, number = made.stream] { release(number); });
    const result<std::uint32_t> added = clients_.add(std::move(client), head);
    if (!added) return fail(added.error());
    taken.keep();
    attach(made.stream, *added);
    session& its = sessions_[made.stream];
    its.is_over = true;
    its.log = &log;
    log.session = made.stream;
    logs_.move(log, log_stage::replayed, clock_ms() + finish_ms_);
    // One client at a time is passed a log of an ended stream, so that its copies have a limit.
    if (clients_.is_writing(*added))
        clients_.notify_when_idle(*added);
    else
        finish_replay(made.stream);
    arm();
    return made;
}

/// A stream of that name begins anew.
void replay_sessions::replace(replay_log& log) {
    // A client of an ended stream does not continue: the log's deadline is its own.
    if (log.session != none && at(log.session).is_over) detach(log.session, replaced);
    const std::uint32_t stream = log.session;
    logs_.erase(log);
    if (stream == none) return;
    session& its = at(stream);
    its.log = nullptr;
    // A present client continues, without replay.
    if (its.client != none) return;
    release(stream);
    owner_.on_expiry(stream);
}

bool replay_sessions::send(std::uint32_t stream, std::string_view event) {
    session& its = at(stream);
    if (its.log == nullptr) return clients_.send_owned(its.client, std::string(event));
    std::string bytes = logs_.append(*its.log, event);
    // The stream may lose the client here, and continues.
    if (its.client != none) clients_.send_owned(its.client, std::move(bytes));
    return true;
}

bool replay_sessions::send_comment(std::uint32_t stream, std::string_view comment) {
    session& its = at(stream);
    if (its.client == none || clients_.is_writing(its.client)) return true;
    return clients_.send(its.client, comment);
}

bool replay_sessions::finish(std::uint32_t stream, std::string last) {
    session& its = at(stream);
    replay_log* const log = its.log;
    if (log != nullptr && !last.empty()) last.insert(0, fmt::format("id: {}\n", log->next()));
    if (its.client != none && !last.empty() && !clients_.send_owned(its.client, last) &&
        log == nullptr)
        return false;
    if (its.client != none) {
        clients_.finish(its.client);
        by_client_[its.client] = none;
    }
    if (log != nullptr) {
        log->last = std::move(last);
        log->is_over = true;
        end_log(*log);
    }
    release(stream);
    return true;
}

void replay_sessions::abandon(std::uint32_t stream) {
    session& its = at(stream);
    if (its.client != none) {
        clients_.abandon(its.client);
        by_client_[its.client] = none;
    }
    end_session(stream);
}

bool replay_sessions::cut(std::uint32_t stream) {
    session& its = at(stream);
    if (its.log == nullptr) {
        abandon(stream);
        return false;
    }
    detach(stream, handoff::to_string(handoff::loss::too_slow));
    return true;
}

bool replay_sessions::is_writing(std::uint32_t stream) {
    session& its = at(stream);
    return its.client != none && clients_.is_writing(its.client);
}

void replay_sessions::notify_when_idle(std::uint32_t stream) {
    clients_.notify_when_idle(at(stream).client);
}

void replay_sessions::on_loss(std::uint32_t client, handoff::loss why) noexcept {
    const std::uint32_t stream = by_client_[client];
    session& its = at(stream);
    by_client_[client] = its.client = none;
    leave_log(stream);
    if (its.log != nullptr && !its.is_over)
        return owner_.on_detach(stream, handoff::to_string(why));
    release(stream);
    owner_.on_loss(stream, why);
}

void replay_sessions::on_idle(std::uint32_t client) {
    const std::uint32_t stream = by_client_[client];
    at(stream).is_over ? finish_replay(stream) : owner_.on_idle(stream);
}

void replay_sessions::finish_replay(std::uint32_t stream) {
    session& its = at(stream);
    EDDY_ASSERT(its.is_over && its.client != none);
    clients_.finish(its.client);
    by_client_[its.client] = none;
    leave_log(stream);
    release(stream);
    owner_.on_expiry(stream);
}

/// Closes the session's client, if it has one. A session whose stream has ended goes with it.
void replay_sessions::detach(std::uint32_t stream, std::string_view why) {
    session& its = at(stream);
    if (its.client == none) return;
    clients_.abandon(its.client);
    by_client_[its.client] = none;
    its.client = none;
    leave_log(stream);
    const bool is_over = its.is_over;
    if (is_over) release(stream);
    owner_.on_detach(stream, why);
    if (is_over) owner_.on_expiry(stream);
}

/// The log of a session that has no client any more waits for one.
void replay_sessions::leave_log(std::uint32_t stream) noexcept {
    session& its = at(stream);
    if (its.log == nullptr) return;
    if (its.is_over) return end_log(*its.log);
    logs_.move(*its.log, log_stage::awaited, clock_ms() + kept_ms_);
    arm();
}

void replay_sessions::end_log(replay_log& log) noexcept {
    log.session = none;
    logs_.move(log, log_stage::ended, clock_ms() + kept_ms_);
    arm();
}

void replay_sessions::end_session(std::uint32_t stream) noexcept {
    if (replay_log* const log = at(stream).log) logs_.erase(*log);
    release(stream);
}

void replay_sessions::fire() noexcept {
    const std::uint32_t now = clock_ms();
    const auto due = [&](log_stage stage) -> replay_log* {
        replay_log* const first = logs_.first_of(stage);
        return first != nullptr && !is_before(now, first->due_ms) ? first : nullptr;
    };
    unsigned left = burst;
    for (; left > 0; --left) {
        replay_log* const log = due(log_stage::awaited);
        if (log == nullptr) break;
        const std::uint32_t stream = log->session;
        EDDY_ASSERT(at(stream).client == none);
        end_session(stream);
        owner_.on_expiry(stream);
    }
    // As a client that does not read the rest of a stream which has ended.
    for (; left > 0; --left) {
        replay_log* const log = due(log_stage::replayed);
        if (log == nullptr) break;
        EDDY_ASSERT(log->is_over && log->session != none);
        detach(log->session, handoff::to_string(handoff::loss::too_slow));
    }
    for (; left > 0; --left) {
        replay_log* const log = due(log_stage::ended);
        if (log == nullptr) break;
        logs_.erase(*log);
    }
    clients_.flush();
    arm();
}

void replay_sessions::arm() noexcept {
    const replay_log* first = nullptr;
    for (const log_stage stage : {log_stage::awaited, log_stage::replayed, log_stage::ended}) {
        const replay_log* const its = logs_.first_of(stage);
        if (its == nullptr) continue;
        if (first == nullptr || is_before(its->due_ms, first->due_ms)) first = its;
    }
    if (first == nullptr) return;
    const auto ahead = static_cast<std::int32_t>(first->due_ms - clock_ms());
    loop& here = loop::current();
    // A whole millisecond more: the count is rounded down.
    const time_point deadline = here.after(std::chrono::milliseconds(ahead > 0 ? ahead + 1 : 0));
    if (armed() && when() <= deadline) return;
    here.disarm(*this);
    here.arm(*this, deadline);
}

replay_sessions::session& replay_sessions::at(std::uint32_t stream) noexcept {
    EDDY_ASSERT(stream < sessions_.size() && sessions_[stream].is_used);
    return sessions_[stream];
}

std::uint32_t replay_sessions::take() {
    if (free_.empty()) {
        // So that release() never allocates.
        if (free_.capacity() <= sessions_.size()) free_.reserve(2 * sessions_.size() + 16);
        sessions_.emplace_back();
        free_.push_back(static_cast<std::uint32_t>(sessions_.size()) - 1);
    }
    const std::uint32_t stream = free_.back();
    free_.pop_back();
    sessions_[stream] = {};
    sessions_[stream].is_used = true;
    return stream;
}

void replay_sessions::release(std::uint32_t stream) noexcept {
    EDDY_ASSERT(sessions_[stream].is_used);
    sessions_[stream] = {};
    free_.push_back(stream);
}

void replay_sessions::attach(std::uint32_t stream, std::uint32_t client) noexcept {
    if (client >= by_client_.size()) by_client_.resize(client + 1, none);
    EDDY_ASSERT(by_client_[client] == none && at(stream).client == none);
    by_client_[client] = stream;
    sessions_[stream].client = client;
}

std::uint32_t replay_sessions::clock_ms() const noexcept {
    return static_cast<std::uint32_t>((loop::current().now() - start_) /
                                      std::chrono::milliseconds(1));
}

}  // namespace eddy::runtime::stream
