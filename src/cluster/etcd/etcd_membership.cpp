// Own key and lease of a member in etcd, and the watch of the others.
#include "cluster/etcd/etcd_membership.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "base/text/terminal_text.hpp"
#include "cluster/etcd/etcd_value.hpp"
#include "cluster/member_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::cluster {
namespace {

using namespace std::chrono_literals;

// A renewal that an endpoint does not answer leaves time for another endpoint before the lease
// ends; a write takes longer, since etcd waits for its disks.
constexpr etcd_patience renewal_patience{etcd_membership::renewal_interval,
                                         etcd_membership::lease_time};
constexpr etcd_patience write_patience{3s, 3s};
constexpr etcd_patience list_patience{5s, 10s};
constexpr etcd_patience watch_patience{3s, 6s};
constexpr duration farewell_time = 1s;
/// Between looks at the lease of a member that may be dead.
constexpr duration lease_check_interval = 200ms;
/// Attempts of one claim: each meets a key that another write has changed.
constexpr int claim_attempts = 4;
/// Attempts of one list: each meets a compaction between two pages.
constexpr int list_attempts = 4;

problem refusal_of(const etcd_problem& from) {
    const bool is_for_operator =
        from.kind == etcd_fault::denied || from.kind == etcd_fault::too_large;
    return {is_for_operator ? 400 : 503, from.message};
}

std::string shown(std::string_view name) { return in_quotes(name, max_name); }

/// The first key behind `key`.
std::string next_key(std::string key) {
    key += '\0';
    return key;
}

}  // namespace

etcd_membership::etcd_membership(etcd_address where, observer& notes)
    : notes_(notes), client_(where, notes), others_(where.prefix + "/members/", notes) {}

etcd_membership::~etcd_membership() { EDDY_ASSERT(!has_joined_ || has_ended_); }

// --- Joining and leaving ---

task<outcome<>> etcd_membership::join(member_info self) {
    EDDY_PRECONDITION(!has_joined_ && !has_ended_, "join() of a membership that has joined");
    if (auto valid = check_member(self); !valid)
        co_return refuse(400, fmt::format("the member {} cannot join: {}", shown(self.name),
                                          valid.error().message));
    self_ = std::make_shared<const member_info>(std::move(self));
    own_key_ = others_.key_of(self_->name);
    outcome<> joined = co_await take_name();
    if (joined) {
        const auto listed = co_await list();
        if (!listed) joined = std::unexpected(refusal_of(listed.error()));
    }
    if (!joined) {
        co_await release(farewell_time);
        co_return joined;
    }
    has_joined_ = true;
    show();
    tasks_.spawn(keep());
    tasks_.spawn(follow());
    tasks_.spawn(announce());
    co_return outcome<>();
}

/// Makes the own key. The key of a member that is dead is awaited to go with its lease.
task<outcome<>> etcd_membership::take_name() {
    const time_point deadline = loop::current().after(takeover_time);
    for (;;) {
        const auto claimed = co_await claim();
        if (!claimed && claimed.error().kind == etcd_fault::too_large && halves_value()) continue;
        if (!claimed) co_return std::unexpected(refusal_of(claimed.error()));
        if (!*claimed) co_return outcome<>();
        const etcd_entry by = **claimed;
        co_await release(farewell_time);
        const auto has_ended = co_await awaits_end(by.lease, deadline);
        if (!has_ended) co_return std::unexpected(has_ended.error());
        if (*has_ended) continue;
        const auto other = read_etcd_value(self_->name, by.value);
        if (!other)
            co_return refuse(409, fmt::format("the key {} of etcd is taken, but by no member that "
                                              "can be read ({}): delete it, or choose another name",
                                              shown(own_key_), other.error().message));
        co_return refuse(409, fmt::format("the name {} is taken by a living member at {}: choose "
                                          "another name, or stop that one",
                                          shown(self_->name), shown(other->host)));
    }
}

/// Awaits the end of a lease that is not renewed. False for one that is, or lasts beyond the
/// deadline.
task<outcome<bool>> etcd_membership::awaits_end(std::int64_t lease, time_point deadline) {
    std::int64_t before = INT64_MAX;
    while (lease != 0 && loop::current().now() < deadline) {
        const auto slept = co_await loop::current().sleep_for(lease_check_interval);
        if (!slept) co_return refuse(503, "joining was cancelled");
        const auto left = co_await client_.time_to_live(lease, write_patience);
        if (!left) co_return std::unexpected(refusal_of(left.error()));
        // Also one that is about to be removed: the key shows when it is.
        if (left->ttl <= 0) co_return true;
        const auto seconds = std::min(left->ttl, std::int64_t{2} * takeover_time.count());
        if (left->ttl > before) co_return false;
        if (loop::current().after(std::chrono::seconds(seconds)) > deadline) co_return false;
        before = left->ttl;
    }
    co_return false;
}

/// Ends the lease, and the key with it, if etcd answers in time.
task<void> etcd_membership::release(duration time) {
    const std::int64_t lease = lease_;
    if (lease == 0) co_return;
    lose_lease();
    const etcd_patience patience{time, time};
    static_cast<void>(co_await client_.revoke(lease, patience));
}

task<void> etcd_membership::stop(bool leaves) {
    if (has_ended_) co_return;
    has_ended_ = true;
    tasks_.cancel();
    co_await tasks_.join();
    if (leaves) co_await release(farewell_time);
    client_.close();
    feed_.close();
    co_await feed_.drained();
}

task<void> etcd_membership::end() { return stop(true); }

/// The lease ends by itself. The other process puts the key under one of its own before.
task<void> etcd_membership::pass_on() { return stop(false); }

void etcd_membership::publish(member_info self) {
    EDDY_PRECONDITION(has_joined_ && self.name == self_->name,
                      "publish() of another name than the one that joined");
    if (has_ended_ || self == *self_) return;
    self_ = std::make_shared<const member_info>(std::move(self));
    is_dirty_ = true;
    work_.set();
    changes_.set();
}

// --- The own key ---

time_point etcd_membership::next_work() const noexcept {
    time_point next = others_.next_drop();
    if (lease_ != 0) next = std::min(next, next_renewal_);
    if (needs_write()) next = std::min(next, next_write_);
    return next;
}

/// One coroutine for all that concerns the own key, so that lease and key change in order.
task<void> etcd_membership::keep() {
    for (;;) {
        const auto woken = co_await with_deadline(next_work(), work_.wait());
        if (!woken && woken.error() == errc::cancelled) co_return;
        work_.reset();
        if (others_.drop_missing(loop::current().now())) changes_.set();
        if (lease_ != 0 && loop::current().now() >= next_renewal_) co_await renew_lease();
        if (needs_write() && loop::current().now() >= next_write_) co_await write_self();
    }
}

task<void> etcd_membership::renew_lease() {
    const auto renewed = co_await client_.keep_alive(lease_, renewal_patience);
    if (!renewed) {
        next_renewal_ = loop::current().after(renewal_pauses_.next());
        // A server that is silent is noticed here first.
        if (renewed.error().kind != etcd_fault::cancelled && !is_watching_)
            set_away(renewed.error());
        co_return;
    }
    renewal_pauses_.reset();
    next_renewal_ = loop::current().after(renewal_interval);
    if (renewed->ttl <= 0) lose_lease();
}

void etcd_membership::lose_lease() noexcept {
    lease_ = 0;
    lose_key();
}

void etcd_membership::lose_key() noexcept {
    is_ours_ = false;
    next_write_ = loop::current().now();
    work_.set();
}

task<void> etcd_membership::write_self() {
    if (is_ours_) {
        const auto updated = co_await update();
        if (!updated) note_refusal(updated.error());
        co_return;
    }
    const auto claimed = co_await claim();
    if (!claimed)
        note_refusal(claimed.error());
    else if (*claimed)
        note_taken(**claimed);
}

/// The value of self_, within the limit. Reports once that runtimes are left out.
outcome<std::string> etcd_membership::make_value() {
    auto made = write_etcd_value(*self_, value_limit_);
    if (!made) return std::unexpected(std::move(made.error()));
    const bool is_cut = made->shown < self_->runtimes.size();
    if (is_cut && !is_cut_)
        notes_.note_trouble(
            fmt::format("this member shows {} of its {} runtimes to the others: "
                        "etcd takes at most {} bytes of it",
                        made->shown, self_->runtimes.size(), value_limit_));
    if (is_cut_ && !is_cut) notes_.note_recovery("this member shows all of its runtimes again");
    is_cut_ = is_cut;
    return std::move(made->text);
}

bool etcd_membership::is_own(const etcd_entry& entry) const {
    if (lease_ != 0 && entry.lease == lease_) return true;
    const auto read = read_etcd_value(self_->name, entry.value);
    return read && read->id == self_->id;
}

/// Makes the key under the lease, which is made first where there is none; a key of this start of
/// the daemon under an earlier lease is taken over.
task<etcd_result<etcd_membership::holder>> etcd_membership::claim() {
    if (lease_ == 0) {
        const auto granted = co_await client_.grant(lease_time, write_patience);
        if (!granted) co_return std::unexpected(granted.error());
        lease_ = granted->id;
        next_renewal_ = loop::current().after(renewal_interval);
    }
    etcd_condition on;
    on.is_absent = true;
    for (int attempt = 1;; ++attempt) {
        const auto self = self_;
        const auto value = make_value();
        if (!value)
            co_return std::unexpected(etcd_problem{etcd_fault::refused, value.error().message});
        const auto written = co_await client_.write(own_key_, *value, lease_, on, write_patience);
        if (!written) co_return std::unexpected(written.error());
        if (written->is_written) {
            note_written(written->header.revision, self);
            co_return holder();
        }
        on = etcd_condition();
        if (!written->found)
            on.is_absent = true;  // the key has gone meanwhile
        else if (is_own(*written->found))
            on.mod_revision = written->found->mod_revision;
        else
            co_return holder(*written->found);
        if (attempt == claim_attempts)
            co_return std::unexpected(etcd_problem{
                etcd_fault::unreachable,
                fmt::format("the key {} of etcd changes all the time", shown(own_key_))});
    }
}

/// Writes the value, as long as the key has the own lease.
task<etcd_result<>> etcd_membership::update() {
    const auto self = self_;
    const auto value = make_value();
    if (!value) co_return std::unexpected(etcd_problem{etcd_fault::refused, value.error().message});
    etcd_condition on;
    on.lease = lease_;
    const auto written = co_await client_.write(own_key_, *value, lease_, on, write_patience);
    if (!written) co_return std::unexpected(written.error());
    if (written->is_written)
        note_written(written->header.revision, self);
    else
        lose_key();
    co_return etcd_result<>();
}

void etcd_membership::note_written(std::int64_t revision,
                                   const std::shared_ptr<const member_info>& what) {
    own_revision_ = revision;
    is_ours_ = removed_revision_ < revision;
    is_dirty_ = self_ != what;
    if (std::exchange(is_taken_, false)) {
        others_.remove(own_key_);
        changes_.set();
    }
    next_write_ = loop::current().after(publish_interval);
    write_pauses_.reset();
    set_trouble({});
}

/// Lowers the limit on the value. False if it is the least one.
bool etcd_membership::halves_value() noexcept {
    if (value_limit_ <= least_max_value) return false;
    value_limit_ = std::max(value_limit_ / 2, least_max_value);
    is_cut_ = false;  // it is reported again
    return true;
}

void etcd_membership::note_refusal(const etcd_problem& why) {
    next_write_ = loop::current().now();
    switch (why.kind) {
        case etcd_fault::cancelled: return;
        case etcd_fault::missing: return lose_lease();
        case etcd_fault::too_large:
            if (halves_value()) return;
            break;
        case etcd_fault::unreachable:
        case etcd_fault::compacted:
            next_write_ = loop::current().after(write_pauses_.next());
            return;
        case etcd_fault::refused:
        case etcd_fault::denied: break;
    }
    next_write_ = loop::current().after(refused_pause);
    set_trouble("this member cannot be published: " + why.message);
}

void etcd_membership::note_taken(const etcd_entry& by) {
    is_taken_ = true;
    others_.put(by);
    changes_.set();
    next_write_ = loop::current().after(refused_pause);
    const auto other = read_etcd_value(self_->name, by.value);
    set_trouble(fmt::format(
        "this member is not published: its name {} was taken by {} while its "
        "lease had ended",
        shown(self_->name), other ? "a member at " + shown(other->host) : "a foreign value"));
}

/// Reports a trouble once, and its end.
void etcd_membership::set_trouble(std::string sentence) {
    if (sentence == trouble_) return;
    trouble_ = std::move(sentence);
    if (trouble_.empty())
        notes_.note_recovery("this member is published in etcd again");
    else
        notes_.note_trouble(trouble_);
}

// --- The others ---

task<void> etcd_membership::follow() {
    cancel_source* const source = co_await current_source();
    for (;;) {
        const time_point begun = loop::current().now();
        const auto ended = co_await watch_changes();
        if (source->requested()) co_return;
        if (!ended) set_away(ended.error());
        if (loop::current().now() - begun >= least_watch_time)
            follow_pauses_.reset();
        else
            static_cast<void>(co_await loop::current().sleep_for(follow_pauses_.next()));
        for (;;) {
            const auto listed = co_await list();
            if (source->requested()) co_return;
            if (listed) break;
            set_away(listed.error());
            static_cast<void>(co_await loop::current().sleep_for(follow_pauses_.next()));
            if (source->requested()) co_return;
        }
    }
}

/// Follows the changes behind the last list until a new one is needed. Fails where no watch can be
/// made.
task<etcd_result<>> etcd_membership::watch_changes() {
    etcd_range keys;
    keys.key = others_.folder();
    keys.end = etcd_prefix_end(others_.folder());
    keys.revision = revision_ + 1;
    const auto made = co_await client_.watch(std::move(keys), watch_patience);
    if (!made && made.error().kind == etcd_fault::compacted) co_return etcd_result<>();
    if (!made) co_return std::unexpected(made.error());
    etcd_watch& changes = **made;
    // A server that is behind the list would skip what lies between: it is of another history, or
    // will have caught up by the next list.
    if (changes.created().revision < revision_) co_return etcd_result<>();
    set_back();
    is_watching_ = true;
    const struct at_end {
        bool& is_watching;
        ~at_end() { is_watching = false; }
    } ended{is_watching_};
    for (;;) {
        const auto line = co_await changes.next();
        if (!line) co_return etcd_result<>();
        revision_ = std::max(revision_, line->header.revision);
        for (const etcd_event& each : line->events) note_event(each);
        if (!line->events.empty()) changes_.set();
        const bool has_removal = std::ranges::any_of(line->events, &etcd_event::is_removal);
        if (has_removal && others_.is_over_full()) co_return etcd_result<>();
    }
}

/// All members, page by page as they were at one revision.
task<etcd_result<>> etcd_membership::list() {
    etcd_range all;
    all.key = others_.folder();
    all.end = etcd_prefix_end(others_.folder());
    etcd_range keys = all;
    for (int attempt = 1;;) {
        keys.limit = page_;
        const auto has_more = co_await list_page(keys);
        if (has_more && !*has_more) co_return etcd_result<>();
        if (has_more) continue;
        if (has_more.error().kind != etcd_fault::compacted || attempt++ == list_attempts)
            co_return std::unexpected(has_more.error());
        keys = all;
    }
}

/// The next page of a list. False after the last one.
task<etcd_result<bool>> etcd_membership::list_page(etcd_range& keys) {
    const auto page = co_await client_.range(keys, list_patience);
    if (!page && page.error().kind == etcd_fault::too_large) {
        if (page_ == 1) co_return co_await skip_large(keys);
        page_ = page_ / 2;
        co_return true;
    }
    if (!page) co_return std::unexpected(page.error());
    if (keys.revision == 0) begin_list(page->header);
    if (keys.revision == 0) keys.revision = page->header.revision;
    for (const etcd_entry& each : page->entries) note_entry(each);
    if (page->has_more && !page->entries.empty() && !others_.is_over_full()) {
        keys.key = next_key(page->entries.back().key);
        co_return true;
    }
    etcd_header as = page->header;
    as.revision = keys.revision;
    end_list(as);
    co_return false;
}

/// Passes over a key whose value alone is too large.
task<etcd_result<bool>> etcd_membership::skip_large(etcd_range& keys) {
    etcd_range one = keys;
    one.is_keys_only = true;
    const auto page = co_await client_.range(std::move(one), list_patience);
    if (!page) co_return std::unexpected(page.error());
    if (keys.revision == 0) begin_list(page->header);
    if (keys.revision == 0) keys.revision = page->header.revision;
    if (page->entries.empty()) {
        end_list(page->header);
        co_return false;
    }
    // Read as an empty value, which is reported once.
    etcd_entry large = page->entries.front();
    large.value.clear();
    note_entry(large);
    keys.key = next_key(large.key);
    page_ = page_size;
    co_return true;
}

void etcd_membership::begin_list(const etcd_header& by) {
    const bool is_other = cluster_id_ != 0 && by.cluster_id != cluster_id_;
    const bool is_older = !is_other && by.revision < revision_;
    if (is_older)
        notes_.note_trouble(
            fmt::format("etcd went back from revision {} to {}, as after a restored "
                        "backup: its members are listed anew",
                        revision_, by.revision));
    if (is_other || is_older) {
        others_.distrust_revisions();
        own_revision_ = removed_revision_ = 0;
    }
    cluster_id_ = by.cluster_id;
    revision_ = by.revision;
    is_own_listed_ = false;
    others_.begin_list();
}

void etcd_membership::end_list(const etcd_header& by) {
    others_.end_list(!away_reason_.empty(), loop::current().after(lease_time));
    if (is_ours_ && !is_own_listed_ && by.revision >= own_revision_) lose_key();
    changes_.set();
}

void etcd_membership::note_entry(const etcd_entry& entry) {
    if (entry.key == own_key_)
        note_own(entry);
    else
        others_.put(entry);
}

/// The own key as another sees it: written by this member, now or before, or by another one.
void etcd_membership::note_own(const etcd_entry& entry) {
    is_own_listed_ = true;
    if (entry.mod_revision <= own_revision_ || is_own(entry)) return;
    if (is_taken_) return others_.put(entry);
    lose_key();
}

void etcd_membership::note_event(const etcd_event& change) {
    if (!change.is_removal) return note_entry(change.entry);
    if (change.entry.key != own_key_) return others_.remove(change.entry.key);
    removed_revision_ = std::max(removed_revision_, change.entry.mod_revision);
    if (is_taken_) others_.remove(own_key_);
    if (change.entry.mod_revision > own_revision_) lose_key();
}

void etcd_membership::set_away(const etcd_problem& why) {
    if (!away_reason_.empty()) return;
    away_reason_ = "etcd is away: " + why.message;
    notes_.note_trouble(away_reason_ + "; the members of the cluster stay as they were known last");
    changes_.set();
}

void etcd_membership::set_back() {
    if (away_reason_.empty()) return;
    away_reason_.clear();
    notes_.note_recovery("etcd is back");
    changes_.set();
}

std::string etcd_membership::stale_reason() const {
    if (!away_reason_.empty()) return away_reason_;
    if (others_.missing() == 0) return {};
    return fmt::format("etcd is back, and {} members have {} s to come back, too",
                       others_.missing(), lease_time.count());
}

task<void> etcd_membership::announce() {
    while (co_await changes_.wait()) {
        changes_.reset();
        show();
        static_cast<void>(co_await loop::current().sleep_for(snapshot_interval));
    }
}

void etcd_membership::show() {
    auto members = others_.all();
    const auto place =
        std::ranges::lower_bound(members, self_->name, {},
                                 [](const auto& each) -> const std::string& { return each->name; });
    const bool is_there = place != members.end() && (*place)->name == self_->name;
    if (!is_there) {
        if (!is_taken_) members.insert(place, self_);
    } else if (!is_taken_) {
        *place = self_;
    }
    feed_.show(std::move(members), stale_reason());
}

}  // namespace eddy::cluster
