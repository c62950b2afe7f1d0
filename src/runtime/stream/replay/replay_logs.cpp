// Replay logs: names, limits, stages.
#include "runtime/stream/replay/replay_logs.hpp"

#include <eddy/base/assert.hpp>

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace eddy::runtime::stream {

std::string replay_logs::name_of(const stream_request& from) {
    if (from.user_id.empty() || from.request_id.empty()) return {};
    // The size keeps apart what would be the same text: users are no part of requests' ids.
    return fmt::format("{}:{}{}", from.user_id.size(), from.user_id, from.request_id);
}

replay_log* replay_logs::find(const std::string& name) noexcept {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
}

replay_log* replay_logs::make(std::string name) {
    const std::size_t bytes = log_overhead + 2 * name.size();
    if (!make_room(bytes, nullptr)) return nullptr;
    std::list<replay_log> made(1);
    replay_log& its = made.front();
    its.name = std::move(name);
    const bool is_new = by_name_.emplace(its.name, &its).second;
    EDDY_ASSERT(is_new);
    its.self = made.begin();
    of(log_stage::followed).splice(of(log_stage::followed).end(), made);
    used_ += bytes;
    return &its;
}

std::string replay_logs::append(replay_log& to, std::string_view event) {
    std::string sent = fmt::format("id: {}\n{}", to.next(), event);
    if (make_room(size_of(sent), &to)) {
        to.events.push_back(sent);
        used_ += size_of(sent);
    } else {
        // No room, so the log is empty: a client that missed this event cannot continue behind the
        // one before.
        ++to.first;
    }
    return sent;
}

std::string replay_logs::read_behind(const replay_log& from, std::uint64_t id) const {
    EDDY_ASSERT(from.covers(id));
    std::string read;
    for (std::size_t i = id + 1 - from.first; i < from.events.size(); ++i) read += from.events[i];
    return read += from.last;
}

void replay_logs::erase(replay_log& what) noexcept {
    while (!what.events.empty()) drop_first(what);
    EDDY_ASSERT(used_ >= base_size_of(what));
    used_ -= base_size_of(what);
    by_name_.erase(what.name);
    of(what.stage).erase(what.self);
}

void replay_logs::move(replay_log& what, log_stage to, std::uint32_t due_ms) noexcept {
    of(to).splice(of(to).end(), of(what.stage), what.self);
    what.stage = to;
    what.due_ms = due_ms;
}

replay_log* replay_logs::first_of(log_stage stage) noexcept {
    return of(stage).empty() ? nullptr : &of(stage).front();
}

bool replay_logs::make_room(std::size_t bytes, replay_log* own) noexcept {
    while (used_ + bytes > max_bytes_) {
        if (replay_log* const oldest = first_of(log_stage::ended))
            erase(*oldest);
        else if (own != nullptr && !own->events.empty())
            drop_first(*own);
        else
            return false;
    }
    return true;
}

void replay_logs::drop_first(replay_log& from) noexcept {
    EDDY_ASSERT(!from.events.empty() && used_ >= size_of(from.events.front()));
    used_ -= size_of(from.events.front());
    from.events.pop_front();
    ++from.first;
}

}  // namespace eddy::runtime::stream
