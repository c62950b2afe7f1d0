// Ring of events, and its followers.
#include "daemon/journal/event_feed.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "daemon/control/json.hpp"
#include "runtime/host/registry.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace eddy::daemon {
namespace {

using clock = std::chrono::system_clock;

constexpr std::array<std::string_view, 14> kind_names = {
    "created",   "started",  "stopped",   "failed",  "edited", "renamed", "reloaded",
    "restarted", "degraded", "recovered", "removed", "joined", "leaving", "left"};

/// Bits of a number that count events of one daemon; those above are the second of its start.
constexpr unsigned counted_bits = 20;

std::uint64_t first_number() {
    const auto now = std::chrono::floor<std::chrono::seconds>(clock::now());
    const auto seconds = std::max<std::int64_t>(now.time_since_epoch().count(), 1);
    return static_cast<std::uint64_t>(seconds) << counted_bits;
}

std::string time_text(clock::time_point when) {
    const auto second = std::chrono::floor<std::chrono::seconds>(when);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(when - second);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(second), ms.count());
}

std::string lost_json(std::uint64_t count) {
    return dump_json({{"event", "lost"}, {"count", count}});
}

/// Cuts a text at a character's beginning.
void cut(std::string& text, std::size_t limit) {
    if (text.size() <= limit) return;
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80U) --limit;
    text.resize(limit);
    text += "...";
}

}  // namespace

std::string_view to_string(event_kind kind) noexcept {
    EDDY_ASSERT(static_cast<std::size_t>(kind) < kind_names.size());
    return kind_names[static_cast<std::size_t>(kind)];
}

std::optional<event_kind> parse_event_kind(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(kind_names, name);
    if (found == kind_names.end()) return {};
    return static_cast<event_kind>(found - kind_names.begin());
}

std::span<const std::string_view> event_kind_names() noexcept { return kind_names; }

std::string event_json(const runtime_event& of) {
    return dump_json({{"number", of.number},
                      {"time", time_text(of.when)},
                      {"event", to_string(of.kind)},
                      {"name", of.name},
                      {"id", of.id},
                      {"type", of.type},
                      {"owner", of.owner},
                      {"group", of.group},
                      {"detail", of.detail}});
}

bool event_filter::has(const runtime_event& event) const {
    if (since && event.when < *since) return false;
    if (until && event.when > *until) return false;
    const auto is_chosen = [](const auto& of, const auto& value) {
        return of.empty() || std::ranges::find(of, value) != of.end();
    };
    if (!is_chosen(types, event.type) || !is_chosen(owners, event.owner) ||
        !is_chosen(groups, event.group) || !is_chosen(kinds, event.kind))
        return false;
    return matches.empty() || std::ranges::any_of(matches, [&event](const std::string& each) {
               return runtime::is_match(each, event.name, event.id, event.group);
           });
}

event_feed::event_feed() : first_(first_number()), last_(first_) {}

void event_feed::note(runtime_event event) {
    cut(event.detail, detail_bytes_limit);
    event.number = ++last_;
    event.when = clock::now();
    events_.push_back(std::move(event));
    if (events_.size() > event_limit) events_.pop_front();
    EDDY_ASSERT(!events_.empty() && events_.size() <= event_limit);
    EDDY_ASSERT(events_.front().number + events_.size() == last_ + 1);
    changed_.set();
}

event_feed::part event_feed::read(std::uint64_t after) const {
    part made;
    made.last = last_;
    // A number of another daemon says nothing about what was missed here.
    const bool is_known = after >= first_ && after <= last_;
    const std::uint64_t wanted = last_ - (is_known ? after : first_);
    const auto kept = std::min<std::uint64_t>(wanted, events_.size());
    if (is_known) made.lost = wanted - kept;
    for (auto each = events_.end() - static_cast<std::ptrdiff_t>(kept); each != events_.end();
         ++each)
        made.events.push_back(&*each);
    return made;
}

task<result<>> event_feed::changed(std::uint64_t after) {
    for (;;) {
        changed_.reset();
        if (last_ > after) co_return result<>();
        if (is_closed_) co_return fail(errc::closed);
        const auto woken = co_await changed_.wait();
        if (!woken) co_return woken;
    }
}

void event_feed::begin_following() noexcept {
    ++followers_;
    unfollowed_.reset();
    followed_.set();
}

void event_feed::end_following() noexcept {
    EDDY_ASSERT(followers_ > 0);
    if (--followers_ > 0) return;
    followed_.reset();
    unfollowed_.set();
}

task<result<>> event_feed::followed() { co_return co_await followed_.wait(); }

task<void> event_feed::close(duration patience) {
    is_closed_ = true;
    changed_.set();
    if (has_followers()) static_cast<void>(co_await with_timeout(patience, unfollowed_.wait()));
}

/// Position of one query. It keeps the feed.
class event_feed::cursor {
public:
    cursor(std::shared_ptr<event_feed> from, event_query query)
        : from_(std::move(from)), query_(std::move(query)) {
        const bool shows_past = query_.after || query_.filter.since || !query_.follows;
        seen_ = query_.after.value_or(shows_past ? 0 : from_->last_number());
        from_->begin_following();
    }
    ~cursor() { from_->end_following(); }
    cursor(const cursor&) = delete;
    cursor& operator=(const cursor&) = delete;

    /// Calls `lost` with the number of events that were missed, if any, and `each` for those of the
    /// query.
    template <class Lost, class Each>
    void take(Lost lost, Each each) {
        const part got = from_->read(seen_);
        EDDY_ASSERT(got.last >= seen_ || seen_ > from_->last_number());
        seen_ = got.last;
        if (got.lost > 0) lost(got.lost);
        for (const runtime_event* const one : got.events)
            if (query_.filter.has(*one)) each(*one);
    }

    /// Waits for more; errc::closed where there will be none.
    task<result<>> more() {
        if (!query_.follows) co_return fail(errc::closed);
        // The clock may be set back; what is new is shown.
        query_.filter.since.reset();
        if (!query_.filter.until) co_return co_await from_->changed(seen_);
        const auto left = *query_.filter.until - clock::now();
        if (left <= left.zero()) co_return fail(errc::closed);
        auto woken = co_await with_timeout(std::chrono::duration_cast<duration>(left),
                                           from_->changed(seen_));
        if (!woken && woken.error() == errc::timed_out) co_return fail(errc::closed);
        co_return woken;
    }

private:
    const std::shared_ptr<event_feed> from_;
    event_query query_;
    std::uint64_t seen_ = 0;
};

class event_feed::line_follower final : public http::body_producer {
public:
    line_follower(std::shared_ptr<event_feed> from, event_query query)
        : at_(std::move(from), std::move(query)) {}

    task<result<>> produce(http::body_writer& to) override {
        for (;;) {
            std::string text;
            at_.take([&](std::uint64_t count) { text += lost_json(count) + '\n'; },
                     [&](const runtime_event& each) { text += event_json(each) + '\n'; });
            const auto sent = co_await to.write(text);
            if (!sent) co_return sent;
            const auto woken = co_await at_.more();
            if (!woken && woken.error() == errc::closed) co_return result<>();
            if (!woken) co_return woken;
        }
    }

private:
    cursor at_;
};

class event_feed::sse_follower final : public http::event_producer {
public:
    sse_follower(std::shared_ptr<event_feed> from, event_query query)
        : at_(std::move(from), std::move(query)) {}

    task<result<>> produce(http::event_writer& out) override {
        for (;;) {
            byte_buffer text;
            const auto add = [&text](std::string data, std::string_view type,
                                     std::optional<std::string> id) {
                const auto written = sse::write_event(
                    text,
                    {.data = std::move(data), .type = std::string(type), .id = std::move(id)});
                EDDY_ASSERT(written);
            };
            at_.take([&](std::uint64_t count) { add(lost_json(count), "lost", {}); },
                     [&](const runtime_event& each) {
                         add(event_json(each), to_string(each.kind), std::to_string(each.number));
                     });
            const auto sent = co_await out.write_encoded(text.text());
            if (!sent) co_return sent;
            const auto woken = co_await at_.more();
            if (!woken && woken.error() == errc::closed) co_return result<>();
            if (!woken) co_return woken;
        }
    }

private:
    cursor at_;
};

std::unique_ptr<http::body_producer> event_feed::lines(event_query query) {
    return std::make_unique<line_follower>(shared_from_this(), std::move(query));
}

std::unique_ptr<http::event_producer> event_feed::server_sent(event_query query) {
    return std::make_unique<sse_follower>(shared_from_this(), std::move(query));
}

}  // namespace eddy::daemon
