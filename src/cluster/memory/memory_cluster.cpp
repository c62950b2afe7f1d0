// Rows of the memory, and their way to the members.
#include "cluster/memory/memory_cluster.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include <algorithm>
#include <vector>

namespace eddy::cluster {
namespace {

std::unexpected<problem> away() { return refuse(503, "the memory of a test is away"); }
std::unexpected<problem> cancelled() { return refuse(503, "the call was cancelled"); }

}  // namespace

// --- memory_cluster ---------------------------------------------------------------------------

void memory_cluster::cut(std::string_view one, std::string_view other) {
    const auto freeze = [this](std::string_view reader, std::string_view writer) {
        const auto found = rows_.find(writer);
        cuts_.try_emplace({std::string(reader), std::string(writer)},
                          found != rows_.end() ? found->second : nullptr);
    };
    freeze(one, other);
    freeze(other, one);
}

void memory_cluster::heal() { cuts_.clear(); }

void memory_cluster::replace() {
    rows_.clear();
    cuts_.clear();
    ++place_;
}

std::optional<beat> memory_cluster::holder_against(const beat_request& request) const {
    const auto found = rows_.find(request.name);
    if (found == rows_.end() || found->second->its.id == request.its.id) return std::nullopt;
    const beat& there = found->second->its;
    if (request.is_yielding || outranks(there, request.its)) return there;
    return std::nullopt;
}

void memory_cluster::put(const beat_request& request) {
    row& its = rows_[request.name];
    const bool is_new =
        !its || its->its.id != request.its.id || its->its.sequence != request.its.sequence;
    if (is_new) ++texts_;
    auto next = std::make_shared<sighting>();
    next->name = request.name;
    next->its = request.its;
    next->info = request.info;
    its = std::move(next);
}

sightings memory_cluster::read_by(const std::string& reader) const {
    sightings seen;
    seen.reserve(rows_.size());
    for (const auto& each : rows_) {
        const auto frozen = cuts_.empty() ? cuts_.end() : cuts_.find({reader, each.first});
        const row& its = frozen == cuts_.end() ? each.second : frozen->second;
        if (its) seen.push_back(its);
    }
    return seen;
}

duration memory_cluster::draw_delay() {
    const duration range = faults_.max_delay - faults_.min_delay;
    EDDY_ASSERT(range >= duration::zero());
    return faults_.min_delay +
           duration(random_.below(static_cast<std::uint64_t>(range.count()) + 1));
}

// --- memory_store -----------------------------------------------------------------------------

/// A message's way, and this process's stops. False: cancelled.
task<bool> memory_store::travel() {
    const duration delay = of_.draw_delay();
    if (delay > duration::zero()) {
        const result<> slept = co_await sleep_for(delay);
        if (!slept) co_return false;
    }
    const result<> resumed = co_await running_.wait();
    co_return resumed.has_value();
}

task<outcome<>> memory_store::prepare(std::string name) {
    name_ = std::move(name);
    if (of_.is_away_) co_return away();
    co_return outcome<>();
}

task<outcome<std::optional<beat>>> memory_store::write(beat_request request) {
    ++of_.messages_;
    const bool has_gone = co_await travel();
    if (!has_gone) co_return cancelled();
    if (of_.is_away_ || of_.is_read_only_) co_return away();
    const std::optional<beat> holder = of_.holder_against(request);
    if (holder) co_return holder;
    // The store has no locks: others write between the check and the write.
    const bool has_come = co_await travel();
    if (!has_come) co_return cancelled();
    if (of_.is_away_ || of_.is_read_only_) co_return away();
    if (!is_killed_ && !of_.random_.chance(of_.faults_.lost)) of_.put(request);
    co_return std::optional<beat>();
}

task<outcome<store_view>> memory_store::read() {
    ++of_.messages_;
    const bool has_gone = co_await travel();
    if (!has_gone) co_return cancelled();
    if (of_.is_away_) co_return away();
    store_view view;
    view.seen = of_.read_by(name_);
    view.place = of_.place_;
    of_.messages_ += of_.texts_ - texts_;
    texts_ = of_.texts_;
    const bool has_come = co_await travel();
    if (!has_come) co_return cancelled();
    co_return view;
}

task<void> memory_store::erase(std::string name, beat last) {
    const bool has_gone = co_await travel();
    if (!has_gone || is_killed_ || of_.is_away_ || of_.is_read_only_) co_return;
    const auto found = of_.rows_.find(name);
    if (found == of_.rows_.end()) co_return;
    const beat& there = found->second->its;
    if (there.id == last.id && there.count <= last.count) of_.rows_.erase(found);
}

task<void> memory_store::watch(event& /*changed*/) { co_return; }

}  // namespace eddy::cluster
