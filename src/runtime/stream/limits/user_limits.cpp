// Limits of users.
#include "runtime/stream/limits/user_limits.hpp"

#include <eddy/base/assert.hpp>

#include "base/sha1.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace eddy::runtime::stream {
namespace {

/// Name under which a user is kept: its id, or the digest of a long one.
std::string name_of(std::string_view id) {
    return id.size() <= user_limits::max_name ? std::string(id) : hexadecimal(sha1(id));
}

/// The same in all processes.
std::uint64_t hash_of(std::string_view id) {
    std::uint64_t hash = 0;
    std::memcpy(&hash, sha1(id).data(), sizeof(hash));
    return std::max<std::uint64_t>(hash, 1);
}

/// Idle users that are forgotten in a row, so that a new minute takes the loop no time.
constexpr std::size_t forgotten_at_a_time = 4;

}  // namespace

std::uint32_t user_limits::minute_of(time_point now) noexcept {
    return static_cast<std::uint32_t>(now.time_since_epoch() / minute);
}

std::chrono::seconds user_limits::until_next_minute(time_point now) noexcept {
    const duration left = minute - now.time_since_epoch() % minute;
    return std::chrono::ceil<std::chrono::seconds>(left);
}

void user_limits::set(limits to) noexcept {
    limits_ = to;
    if (!limits_events()) forget_idle(UINT32_MAX, max_idle_users);
}

user_limits::verdict user_limits::admit(std::string_view id, time_point now) {
    EDDY_ASSERT(admitted_ == nullptr);
    if ((limits_.streams == 0 && limits_.events == 0) || id.empty()) return verdict::fits;
    const std::uint32_t this_minute = minute_of(now);
    forget_idle(this_minute, forgotten_at_a_time);
    user& its = find_or_add(id);
    // Its own stream is there for other workers before it adds them up, as in worker_share::take().
    ++its.streams;
    publish_streams(its);
    admitted_ = &its;
    const user_count all = count_of(its, this_minute);
    const verdict found =
        limits_.streams > 0 && all.streams > limits_.streams ? verdict::too_many_streams
        : limits_events() && all.events >= limits_.events    ? verdict::too_many_events
                                                             : verdict::fits;
    if (found != verdict::fits) drop(now);
    return found;
}

void user_limits::drop(time_point now) noexcept {
    if (admitted_ != nullptr) leave(*std::exchange(admitted_, nullptr), now);
}

void user_limits::begin(std::uint32_t stream) {
    if (admitted_ == nullptr) return;
    if (stream >= by_stream_.size()) by_stream_.resize(stream + 1);
    EDDY_ASSERT(by_stream_[stream] == nullptr);
    by_stream_[stream] = std::exchange(admitted_, nullptr);
}

void user_limits::end(std::uint32_t stream, time_point now) noexcept {
    if (stream >= by_stream_.size() || by_stream_[stream] == nullptr) return;
    leave(*std::exchange(by_stream_[stream], nullptr), now);
}

void user_limits::note_events(std::uint32_t stream, std::uint32_t count, time_point now) noexcept {
    if (stream >= by_stream_.size() || by_stream_[stream] == nullptr) return;
    user& its = *by_stream_[stream];
    const std::uint32_t this_minute = minute_of(now);
    if (its.minute != this_minute) its.events = 0;
    its.minute = this_minute;
    its.events += std::min(count, UINT32_MAX - its.events);
    if (its.shared == nullptr) return;
    its.shared->events.store(its.events);
    its.shared->minute.store(its.minute);
}

user_limits::user& user_limits::find_or_add(std::string_view id) {
    const auto [at, is_new] = users_.try_emplace(name_of(id));
    user& its = at->second;
    if (is_new) {
        its.name = &at->first;
        if (share_ != nullptr) {
            its.hash = hash_of(id);
            its.shared = share_->add_user(its.hash);
        }
    } else if (its.linked()) {
        its.unlink();
        --idle_count_;
    }
    return its;
}

/// With those of other workers.
user_count user_limits::count_of(const user& its, std::uint32_t in_minute) const noexcept {
    user_count sum = {its.streams, its.minute == in_minute ? its.events : 0};
    if (share_ == nullptr) return sum;
    const user_count others = share_->others_of(its.hash, in_minute);
    sum.streams += others.streams;
    sum.events += others.events;
    return sum;
}

/// It has one stream less.
void user_limits::leave(user& its, time_point now) noexcept {
    EDDY_ASSERT(its.streams > 0);
    --its.streams;
    publish_streams(its);
    if (its.streams > 0) return;
    const bool has_events = its.events > 0 && its.minute == minute_of(now);
    if (!limits_events() || !has_events) return forget(its);
    if (idle_count_ == max_idle_users) forget(idle_.front());
    idle_.push_back(its);
    ++idle_count_;
}

void user_limits::forget(user& its) noexcept {
    if (its.linked()) {
        its.unlink();
        --idle_count_;
    }
    if (its.shared != nullptr) user_table::remove(*its.shared);
    users_.erase(users_.find(*its.name));
}

/// Forgets idle users whose events are not of this minute, at most so many.
void user_limits::forget_idle(std::uint32_t in_minute, std::size_t most) noexcept {
    for (; most > 0 && !idle_.empty() && idle_.front().minute != in_minute; --most)
        forget(idle_.front());
}

void user_limits::publish_streams(const user& its) noexcept {
    if (its.shared != nullptr) its.shared->streams.store(its.streams);
}

}  // namespace eddy::runtime::stream
