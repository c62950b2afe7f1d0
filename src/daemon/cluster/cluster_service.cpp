// Joining, publishing, and following of the other members.
#include "daemon/cluster/cluster_service.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "cluster/member_codec.hpp"
#include "daemon/cluster/cluster_changes.hpp"
#include "daemon/cluster/engines.hpp"
#include "io/tasks/backoff.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

namespace eddy::daemon {
namespace {

constexpr std::string_view subject = "cluster";

/// Share of the time that gathering of what is published may take, at most.
constexpr int gather_share = 10;
/// Time for each runtime by which counting is put off.
constexpr duration load_pause_a_runtime = std::chrono::milliseconds(2);

/// Status of the refusal of an engine that cannot be reached now.
constexpr int unreachable = 503;

std::string chosen_host(const cluster_options& of) {
    if (!of.advertise.empty()) return of.advertise;
    std::string found = find_own_address();
    const bool has_none = found.empty();
    if (has_none) found = "127.0.0.1";
    log_info(subject, fmt::format("other members reach this one at {}{}; --advertise HOST says "
                                  "another one",
                                  found, has_none ? ", since it has no other address" : ""));
    return found;
}

}  // namespace

member_start begin_member() {
    std::array<std::uint64_t, 2> bits{};
    if (::getrandom(bits.data(), sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
        random_generator random(entropy_seed());
        bits = {random(), random()};
    }
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    return {fmt::format("{:016x}{:016x}", bits[0], bits[1]), now.time_since_epoch().count()};
}

std::string encode_members(const cluster::snapshot& all) {
    std::string text;
    for (const auto& each : all.members)
        if (const auto encoded = cluster::encode_member(*each)) text += *encoded + "\n";
    return text;
}

std::vector<std::shared_ptr<const cluster::member_info>> decode_members(std::string_view text) {
    std::vector<std::shared_ptr<const cluster::member_info>> all;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (auto read = cluster::decode_member(text.substr(0, end)))
            all.push_back(std::make_shared<cluster::member_info>(std::move(*read)));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return all;
}

cluster_service::cluster_service(cluster_options options, std::string name, std::string version,
                                 runtime_parts& runtimes)
    : options_(std::move(options)), runtimes_(runtimes) {
    identity_.name = std::move(name);
    identity_.host = chosen_host(options_);
    identity_.version = std::move(version);
    identity_.label = options_.label;
    shown_ = identity_;
}

cluster_service::~cluster_service() { EDDY_ASSERT(is_ended_); }

// --- Joining --------------------------------------------------------------------------------

outcome<> cluster_service::begin(const engine_factory& make, member_start as,
                                 std::function<void(problem)> on_refusal) {
    EDDY_ASSERT(!engine_ && !as.id.empty());
    auto made = make(*this);
    if (!made) return std::unexpected(std::move(made.error()));
    engine_ = std::move(*made);
    start_ = std::move(as);
    identity_.id = start_.id;
    identity_.started = start_.started;
    on_refusal_ = std::move(on_refusal);
    is_ended_ = false;
    tasks_.spawn(run());
    return {};
}

void cluster_service::inherit(std::vector<std::shared_ptr<const cluster::member_info>> known) {
    EDDY_ASSERT(!engine_);
    auto before = std::make_shared<cluster::snapshot>();
    before->members = known;
    used_ = std::move(before);
    inherited_ = std::move(known);
    use_runtimes();
}

task<void> cluster_service::forget_inherited() {
    if (!co_await loop::current().sleep_for(inheritance_time)) co_return;
    inherited_.clear();
    use_runtimes();
}

task<void> cluster_service::await_answer(duration patience) {
    static_cast<void>(co_await with_timeout(patience, answered_.wait()));
}

task<void> cluster_service::run() {
    if (!co_await join()) co_return;
    log_info(subject, fmt::format("joined {} as {} on {}", engine(), name(), identity_.host));
    if (!inherited_.empty()) tasks_.spawn(forget_inherited());
    tasks_.spawn(follow());
    tasks_.spawn(watch_runtimes());
    tasks_.spawn(watch_events());
    tasks_.spawn(keep_published());
}

/// False at its cancellation, and after a refusal that ends the daemon.
task<bool> cluster_service::join() {
    backoff pauses(first_join_pause, longest_join_pause, entropy_seed());
    for (bool is_first = true;; is_first = false) {
        shown_ = describe_own_member(identity_, runtimes_.registry);
        cluster::member_info self = shown_;
        auto joined = co_await engine_->join(std::move(self));
        if (joined) break;
        if ((co_await current_source())->requested()) co_return false;
        problem& why = joined.error();
        if (is_first && why.status != unreachable && on_refusal_) {
            join_trouble_ = why.message;
            answered_.set();
            std::exchange(on_refusal_, nullptr)(std::move(why));
            co_return false;
        }
        if (join_trouble_ != why.message)
            log_warn(subject, fmt::format("not joined yet, and tried again: {}", why.message));
        join_trouble_ = std::move(why.message);
        answered_.set();
        if (!co_await loop::current().sleep_for(pauses.next())) co_return false;
    }
    EDDY_ASSERT(!has_joined_);
    has_joined_ = true;
    join_trouble_.clear();
    // Members that were there before are no event.
    used_ = engine_->current();
    use_runtimes();
    answered_.set();
    co_return true;
}

// --- This member for the others --------------------------------------------------------------

task<void> cluster_service::watch_runtimes() {
    runtime::address_watch all = runtimes_.registry.published()->watch("*");
    while (co_await all.changed()) dirty_.set();
}

/// Failures, and states on the way, change no address.
task<void> cluster_service::watch_events() {
    const std::shared_ptr<event_feed> events = runtimes_.registry.events();
    for (std::uint64_t known = events->last_number();; known = events->last_number()) {
        if (!co_await events->changed(known)) co_return;
        dirty_.set();
    }
}

duration cluster_service::load_pause() const noexcept {
    return std::max(load_interval,
                    load_pause_a_runtime * static_cast<int>(runtimes_.registry.size()));
}

task<void> cluster_service::keep_published() {
    time_point counted = loop::current().now();
    for (;;) {
        const auto woken = co_await with_deadline(counted + load_pause(), dirty_.wait());
        if (!woken && woken.error() != errc::timed_out) co_return;
        if (woken) {
            const duration pause =
                std::clamp(gather_time_ * gather_share, publish_pause, longest_publish_pause);
            if (!co_await loop::current().sleep_for(pause)) co_return;
        }
        if (loop::current().now() - counted >= load_pause()) {
            co_await runtimes_.lifecycle.refresh_briefly();
            counted = loop::current().now();
        }
        dirty_.reset();
        publish();
    }
}

void cluster_service::publish() {
    EDDY_ASSERT(has_joined_ && engine_);
    if (is_held_) return;
    const auto began = std::chrono::steady_clock::now();
    cluster::member_info now = describe_own_member(identity_, runtimes_.registry);
    keep_similar_loads(now, shown_);
    gather_time_ = std::chrono::steady_clock::now() - began;
    if (now == shown_) return;
    shown_ = now;
    engine_->publish(std::move(now));
    // An address that is served here now may be one that another member has had.
    use_runtimes();
}

// --- The others for this member --------------------------------------------------------------

task<void> cluster_service::follow() {
    for (;;) {
        const std::uint64_t known = used_->number;
        if (!co_await engine_->changed(known)) co_return;
        take(engine_->current());
    }
}

void cluster_service::take(std::shared_ptr<const cluster::snapshot> fresh) {
    EDDY_ASSERT(fresh != nullptr && fresh->number > used_->number);
    const std::shared_ptr<const cluster::snapshot> before = std::exchange(used_, std::move(fresh));
    use_runtimes();
    for (runtime_event& each : changes_between(*before, *used_)) {
        if (is_member_event(each) && each.name != name()) runtimes_.registry.events()->note(each);
        changes_->note(std::move(each));
    }
}

/// Gives the proxies here the runtimes of other members, as far as they have changed.
void cluster_service::use_runtimes() {
    runtime::registry& to = *runtimes_.registry.published();
    std::map<std::string, std::shared_ptr<const cluster::member_info>> now;
    for (const auto& each : used_->members)
        if (each->name != name()) now.emplace(each->name, each);
    for (const auto& each : inherited_)
        if (each->name != name()) now.emplace(each->name, each);
    EDDY_ASSERT(!now.contains(name()));
    own_places own = own_places::of(shown_);
    const bool is_own_changed = own != judged_by_;
    for (const auto& [member, info] : given_)
        if (!now.contains(member)) to.set_remote(member, {});
    for (const auto& [member, info] : now) {
        const auto before = given_.find(member);
        if (!is_own_changed && before != given_.end() && before->second == info) continue;
        to.set_remote(member, usable_runtimes(*info, own));
    }
    given_ = std::move(now);
    judged_by_ = std::move(own);
}

// --- End ------------------------------------------------------------------------------------

void cluster_service::hold_published(bool is_held) {
    is_held_ = is_held;
    dirty_.set();
}

task<void> cluster_service::begin_leaving() {
    if (identity_.is_leaving) co_return;
    identity_.is_leaving = true;
    if (!has_joined_) co_return;
    publish();
    const bool has_others = used_->members.size() > 1 && !used_->is_stale;
    if (has_others) static_cast<void>(co_await loop::current().sleep_for(leave_time));
}

void cluster_service::stay() {
    identity_.is_leaving = false;
    if (has_joined_) publish();
}

task<void> cluster_service::end() {
    co_await changes_->close();
    if (is_ended_) co_return;
    EDDY_ASSERT(engine_);
    tasks_.cancel();
    co_await tasks_.join();
    co_await engine_->end();
    is_ended_ = true;
}

task<void> cluster_service::pass_on() {
    if (is_ended_) co_return;
    EDDY_ASSERT(engine_);
    tasks_.cancel();
    co_await tasks_.join();
    co_await engine_->pass_on();
    is_ended_ = true;
}

// --- Facts ----------------------------------------------------------------------------------

std::shared_ptr<const cluster::snapshot> cluster_service::current() const { return used_; }

std::string cluster_service::engine() const { return shown_engine(options_.engine); }

std::string cluster_service::stale_reason() const {
    if (has_joined_) return used_->stale_reason;
    return join_trouble_.empty() ? "this daemon has not joined yet" : join_trouble_;
}

void cluster_service::note_trouble(std::string sentence) { log_warn(subject, sentence); }

void cluster_service::note_recovery(std::string sentence) { log_info(subject, sentence); }

}  // namespace eddy::daemon
