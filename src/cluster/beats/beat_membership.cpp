// Rounds of beats and polls.
#include "cluster/beats/beat_membership.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/select.hpp>

#include "base/text/terminal_text.hpp"
#include "cluster/member_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <variant>

namespace eddy::cluster {
namespace {

/// A joining member polls more often, so many times a beat.
constexpr int polls_a_beat = 4;

/// Time that a joining member may take to make sure of its name, in times of silence.
constexpr int patience = 3;

std::string quoted_name(std::string_view name) { return in_quotes(name, max_name); }

/// Where a member is, for people: " at db1.example".
std::string place_of(const sighting* of) {
    if (!of || !of->info) return ", whose entry cannot be read";
    if (of->info->host.empty()) return "";
    return fmt::format(" at {}", printable(of->info->host));
}

/// True if the first operation of a select has not failed.
bool is_good(const std::variant<result<>, result<>>& first) {
    return std::visit([](const result<>& its) { return its.has_value(); }, first);
}

}  // namespace

/// Declares the store to be away while a read takes too long.
struct beat_membership::stall_timer final : timer {
    explicit stall_timer(beat_membership& its) : of(its) {
        loop::current().arm(*this, loop::current().after(its.rules_.silence));
    }
    ~stall_timer() { loop::current().disarm(*this); }

    void fire() noexcept override {
        try {
            of.note_read(refuse(503, fmt::format("{} does not answer", of.store_->description())));
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the read may yet end
        }
    }

    beat_membership& of;
};

beat_membership::beat_membership(std::unique_ptr<beat_store> store, observer& reports,
                                 const beat_rules& rules)
    : store_(std::move(store)),
      observer_(reports),
      rules_(rules),
      table_(rules.silence, rules.memory) {
    EDDY_ASSERT(store_ && rules_.pause <= rules_.beat && 2 * rules_.beat <= rules_.silence);
}

beat_membership::~beat_membership() {
    EDDY_PRECONDITION(standing_ == standing::outside || standing_ == standing::ended,
                      "a membership was destroyed before its end()");
}

/// Takes over what this member shows, once it has been checked.
outcome<> beat_membership::set_self(member_info self) {
    auto text = encode_member(self);
    if (!text)
        return refuse(text.error().status,
                      fmt::format("the member {} cannot be shown to the cluster: {}",
                                  quoted_name(self.name), text.error().message));
    self_ = std::make_shared<const member_info>(std::move(self));
    text_ = std::make_shared<const std::string>(std::move(*text));
    ++sequence_;
    return {};
}

// --- Join and end -----------------------------------------------------------------------------

task<outcome<>> beat_membership::join(member_info self) {
    EDDY_PRECONDITION(standing_ == standing::outside, "a membership joins once: make another one");
    sort_runtimes(self);
    if (auto valid = set_self(std::move(self)); !valid) co_return valid;
    standing_ = standing::joining;
    outcome<> joined = co_await join_store();
    if (!joined) {
        co_await withdraw();
        standing_ = standing::outside;
        co_return joined;
    }
    standing_ = standing::member;
    show();
    tasks_.spawn(run_beats());
    tasks_.spawn(run_reads());
    tasks_.spawn(store_->watch(changed_));
    co_return joined;
}

task<outcome<>> beat_membership::join_store() {
    auto ready = co_await store_->prepare(self_->name);
    if (!ready) co_return ready;
    const time_point begun = loop::current().now();
    auto claimed = co_await claim_name();
    if (!claimed) co_return claimed;
    co_return co_await confirm_name(begun);
}

/// Waits until the name is free, and writes the first beat.
task<outcome<>> beat_membership::claim_name() {
    own_ = beat{.id = self_->id};
    for (;;) {
        auto read = co_await read_once();
        if (!read) co_return read;
        const sighting* const seen = table_.find(self_->name);
        if (is_name_free() || seen->its.id == own_.id) break;
        if (auto refused = check_holder(); !refused) co_return refused;
        const result<> slept = co_await sleep_for(rules_.beat / polls_a_beat);
        if (!slept) co_return refuse(503, "joining the cluster was cancelled");
    }
    take_term();
    co_return co_await beat_for_name();
}

/// Waits until another start would have been seen that took the name at the same time, and until
/// the other members have been seen to live.
task<outcome<>> beat_membership::confirm_name(time_point begun) {
    loop& here = loop::current();
    const time_point latest = here.now() + patience * rules_.silence;
    time_point claimed = here.now();
    while (here.now() < latest) {
        const result<> slept = co_await sleep_for(rules_.beat / polls_a_beat);
        if (!slept) co_return refuse(503, "joining the cluster was cancelled");
        auto read = co_await read_once();
        if (!read) co_return read;
        const sighting* const seen = table_.find(self_->name);
        const bool is_own = seen && seen->its.id == own_.id;
        if (seen && !is_own && outranks(seen->its, own_))
            if (auto refused = check_holder(); !refused) co_return refused;
        const bool is_proven = !table_.has_unproven() || here.now() - begun >= 2 * rules_.beat;
        if (is_own && is_proven && here.now() - claimed >= rules_.beat) co_return outcome<>();
        if (is_own && here.now() - last_try_ < rules_.beat) continue;
        if (!is_own) claimed = here.now();
        auto written = co_await beat_for_name();
        if (!written) co_return written;
    }
    co_return refuse(503,
                     fmt::format("the name {} could not be taken in {}: other daemons want it, "
                                 "too, or what is written there is not read back",
                                 quoted_name(self_->name), store_->description()));
}

/// A beat of a member that is not yet one.
task<outcome<>> beat_membership::beat_for_name() {
    const outcome<bool> written = co_await beat_once();
    if (!written) co_return std::unexpected(written.error());
    if (*written) co_return outcome<>();
    co_return refuse(409, fmt::format("the name {} was taken by another daemon at the same time: "
                                      "choose another name, or end that daemon",
                                      quoted_name(self_->name)));
}

/// Undoes a join that was refused.
task<void> beat_membership::withdraw() {
    cancel_source uncancelled;
    if (std::exchange(has_written_, false))
        co_await store_->erase(self_->name, own_).under(uncancelled);
    table_ = member_table(rules_.silence, rules_.memory);
    has_place_ = false;
    read_fault_.clear();
}

task<void> beat_membership::stop() {
    EDDY_PRECONDITION(standing_ != standing::joining, "end() while join() runs: cancel that first");
    tasks_.cancel();
    co_await tasks_.join();
}

task<void> beat_membership::end() {
    if (standing_ == standing::ended) co_return;
    co_await stop();
    cancel_source uncancelled;
    if (standing_ == standing::member) co_await store_->erase(self_->name, own_).under(uncancelled);
    standing_ = standing::ended;
    feed_.close();
    co_await feed_.drained();
}

/// The last beat stays: the other process follows it within the time of silence.
task<void> beat_membership::pass_on() {
    if (standing_ == standing::ended) co_return;
    co_await stop();
    standing_ = standing::ended;
    feed_.close();
    co_await feed_.drained();
}

// --- The name ---------------------------------------------------------------------------------

/// True if no start beats under the name, as far as was read.
bool beat_membership::is_name_free() const {
    return table_.state_of(self_->name) == liveness::gone;
}

/// The own beat follows the one that is there.
void beat_membership::take_term() {
    const sighting* const seen = table_.find(self_->name);
    const std::uint64_t before = seen ? seen->its.term : 0;
    if (seen && seen->its.id == own_.id) {
        // Such as the remains of a join that could not be undone, or of the process before.
        own_.term = std::max(own_.term, before);
        own_.count = std::max(own_.count, seen->its.count);
        sequence_ = std::max(sequence_, seen->its.sequence + 1);
    } else {
        own_.term = std::max(own_.term, before) + 1;
    }
}

/// Refuses if a living start has the name.
outcome<> beat_membership::check_holder() const {
    if (table_.state_of(self_->name) != liveness::alive) return {};
    return refuse(409,
                  fmt::format("the name {} belongs to a living member of the cluster{}: choose "
                              "another name, or end that daemon",
                              quoted_name(self_->name), place_of(table_.find(self_->name))));
}

void beat_membership::lose_name() {
    EDDY_ASSERT(standing_ == standing::member);
    standing_ = standing::nameless;
    lost_at_ = loop::current().now();
    has_read_since_loss_ = false;
    is_loss_reported_ = false;
}

/// Compares the beat under the own name with the own one.
void beat_membership::check_own(const sighting* own) {
    const bool is_foreign = own && own->its.id != own_.id;
    if (standing_ == standing::member && is_foreign) {
        if (outranks(own->its, own_))
            lose_name();
        else
            news_.set();  // it was written over the own one, which comes back at once
    }
    if (standing_ != standing::nameless) return;
    // A read that began before may show the time before.
    has_read_since_loss_ = has_read_since_loss_ || last_read_ > lost_at_;
    if (!is_foreign || std::exchange(is_loss_reported_, true)) return;
    observer_.note_trouble(fmt::format(
        "another daemon{} has the name {} in the cluster now, and this one is not seen there any "
        "more: end one of them, or give one another name",
        place_of(own), quoted_name(self_->name)));
}

// --- Beats ------------------------------------------------------------------------------------

/// Writes a beat. False: another start keeps the name, and nothing was written.
task<outcome<bool>> beat_membership::beat_once() {
    ++own_.count;
    own_.sequence = sequence_;
    has_written_ = true;
    last_try_ = loop::current().now();
    const time_point begun = store_->now();
    beat_request request;
    request.name = self_->name;
    request.its = own_;
    request.info = self_;
    request.text = text_;
    request.is_yielding = standing_ == standing::member && begun - last_written_ > rules_.silence;
    const auto written = co_await store_->write(std::move(request));
    if (!written) co_return std::unexpected(written.error());
    if (written->has_value()) co_return false;
    last_written_ = begun;
    co_return true;
}

task<void> beat_membership::run_beats() {
    for (;;) {
        const bool is_due = co_await wait_for_beat();
        if (!is_due) co_return;
        co_await beat_or_return();
    }
}

/// False: cancelled.
task<bool> beat_membership::wait_for_beat() {
    loop& here = loop::current();
    const auto first = co_await select(here.sleep_until(last_try_ + rules_.beat), news_.wait());
    if (!is_good(first)) co_return false;
    const result<> slept = co_await here.sleep_until(last_try_ + rules_.pause);
    news_.reset();
    co_return slept.has_value();
}

/// A beat, or the return of a member that had lost its name.
task<void> beat_membership::beat_or_return() {
    if (standing_ == standing::nameless) {
        last_try_ = loop::current().now();
        if (!has_read_since_loss_ || !read_fault_.empty() || !is_name_free()) co_return;
        take_term();
    }
    const outcome<bool> written = co_await beat_once();
    if (tasks_.source().requested()) co_return;
    write_fault_ = written ? "" : written.error().message;
    if (written && !*written && standing_ == standing::member) lose_name();
    if (written && *written && standing_ == standing::nameless) {
        standing_ = standing::member;
        if (is_loss_reported_)
            observer_.note_recovery(fmt::format("this daemon has its name {} in the cluster again",
                                                quoted_name(self_->name)));
    }
    report_faults();
    show();
}

void beat_membership::publish(member_info self) {
    EDDY_PRECONDITION(standing_ != standing::outside && standing_ != standing::joining,
                      "publish() before join() has succeeded");
    if (standing_ == standing::ended) return;
    EDDY_PRECONDITION(self.name == self_->name && self.id == self_->id,
                      "publish() of another member than the one that joined");
    sort_runtimes(self);
    if (self == *self_) return;
    if (auto valid = set_self(std::move(self)); !valid) {
        if (!std::exchange(is_oversized_reported_, true))
            observer_.note_trouble(valid.error().message + ". The others see it as it was before");
        return;
    }
    is_oversized_reported_ = false;
    news_.set();
    show();
}

// --- Reads ------------------------------------------------------------------------------------

task<outcome<>> beat_membership::read_once() {
    last_read_ = loop::current().now();
    const stall_timer stall(*this);
    auto view = co_await store_->read();
    if (!view) co_return std::unexpected(std::move(view.error()));
    read_fault_.clear();
    take_view(std::move(*view));
    co_return outcome<>();
}

void beat_membership::take_view(store_view view) {
    for (std::string& each : view.troubles) observer_.note_trouble(std::move(each));
    for (std::string& each : view.recoveries) observer_.note_recovery(std::move(each));
    const time_point now = store_->now();
    if (std::exchange(has_place_, true) && view.place != place_) table_.doubt();
    place_ = view.place;
    // Others may be unable to write, too.
    if (!write_fault_.empty()) table_.skip(now);
    table_.judge(view.seen, now);
    check_own(table_.find(self_->name));
}

task<void> beat_membership::run_reads() {
    for (;;) {
        const bool is_due = co_await wait_for_read();
        if (!is_due) co_return;
        const outcome<> read = co_await read_once();
        if (tasks_.source().requested()) co_return;
        if (!read) table_.skip(store_->now());
        note_read(read);
        co_await remove_forgotten();
    }
}

/// False: cancelled.
task<bool> beat_membership::wait_for_read() {
    loop& here = loop::current();
    duration pause = rules_.poll;
    // A member that is silent is judged on time. Without own beats, none is.
    if (write_fault_.empty() && read_fault_.empty()) pause = std::min(pause, table_.next_end());
    pause = std::max(pause, rules_.pause);
    const auto first = co_await select(here.sleep_until(last_read_ + pause), changed_.wait());
    if (!is_good(first)) co_return false;
    if (first.index() == 1) {
        const result<> slept = co_await here.sleep_until(last_read_ + rules_.pause);
        if (!slept) co_return false;
    }
    changed_.reset();
    co_return true;
}

task<void> beat_membership::remove_forgotten() {
    for (const auto& each : table_.take_forgotten())
        if (each->name != self_->name) co_await store_->erase(each->name, each->its);
}

// --- Faults and snapshots ---------------------------------------------------------------------

void beat_membership::note_read(const outcome<>& done) {
    read_fault_ = done ? "" : done.error().message;
    report_faults();
    show();
}

/// Reports the begin and the end of an outage, once each.
void beat_membership::report_faults() {
    const bool has_fault = !read_fault_.empty() || !write_fault_.empty();
    if (has_fault == is_fault_reported_ || standing_ == standing::joining) return;
    is_fault_reported_ = has_fault;
    if (has_fault)
        observer_.note_trouble(fmt::format("{}. The members of the cluster stay as known last",
                                           read_fault_.empty() ? write_fault_ : read_fault_));
    else
        observer_.note_recovery(fmt::format("{} can be used again", store_->description()));
}

void beat_membership::show() {
    if (standing_ != standing::member && standing_ != standing::nameless) return;
    member_list all = table_.members();
    const auto at = std::ranges::lower_bound(
        all, self_->name, {}, [](const auto& each) -> const std::string& { return each->name; });
    const bool is_there = at != all.end() && (*at)->name == self_->name;
    if (standing_ == standing::member && is_there)
        *at = self_;
    else if (standing_ == standing::member)
        all.insert(at, self_);
    else if (is_there && (*at)->id == self_->id)
        all.erase(at);
    feed_.show(std::move(all), read_fault_.empty() ? write_fault_ : read_fault_);
}

}  // namespace eddy::cluster
