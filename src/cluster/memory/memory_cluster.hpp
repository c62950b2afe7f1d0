// Store of beats in this process's memory, with faults from a seed: for tests of clusters, above
// all on the simulator.
#pragma once

#include <eddy/base/random.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "cluster/beats/beat_store.hpp"
#include "cluster/member_table.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::cluster {

/// Faults of the way between a member and the store.
struct memory_faults {
    duration min_delay{};  ///< of each message, drawn evenly
    duration max_delay{};
    double lost = 0;  ///< chance that a beat is lost, from 0 to 1
};

/// The store that members share. It must outlive them. One loop's thread.
class memory_cluster {
public:
    explicit memory_cluster(std::uint64_t seed) : random_(seed) {}

    void set_faults(const memory_faults& faults) { faults_ = faults; }
    /// Neither of two members sees what the other writes from now on.
    void cut(std::string_view one, std::string_view other);
    /// Ends all cuts.
    void heal();
    /// All calls of all members fail, until this is set to false.
    void set_away(bool is_away) noexcept { is_away_ = is_away; }
    /// The same of writes alone.
    void set_read_only(bool is_read_only) noexcept { is_read_only_ = is_read_only; }
    /// Another store, without entries, takes this one's place.
    void replace();

    /// Messages so far: a beat with or without a text; a poll; a text that a poll brought.
    std::uint64_t messages() const noexcept { return messages_; }
    /// Members that have an entry.
    std::size_t size() const noexcept { return rows_.size(); }

private:
    friend class memory_store;
    using row = std::shared_ptr<const sighting>;
    using name_pair = std::pair<std::string, std::string>;  // reader, writer

    /// A beat of another start that keeps the place of this one.
    std::optional<beat> holder_against(const beat_request& request) const;
    void put(const beat_request& request);
    sightings read_by(const std::string& reader) const;
    duration draw_delay();

    random_generator random_;
    memory_faults faults_;
    bool is_away_ = false;
    bool is_read_only_ = false;
    std::map<std::string, row, std::less<>> rows_;
    std::map<name_pair, row> cuts_;  // the row that the reader saw last; null for none
    std::uint64_t place_ = 0;
    std::uint64_t texts_ = 0;  // that were written
    std::uint64_t messages_ = 0;
};

/// One member's access, and the faults of that member's process.
class memory_store final : public beat_store {
public:
    explicit memory_store(memory_cluster& of) : of_(of) { running_.set(); }

    /// As kill -9: nothing is written or removed any more.
    void kill() noexcept { is_killed_ = true; }
    /// As SIGSTOP, for this member's access to the store: its calls stop between any two steps.
    void stop() noexcept { running_.reset(); }
    /// As SIGCONT.
    void resume() noexcept { running_.set(); }
    /// Steps the clock that this member judges by.
    void step_clock(duration by) noexcept { offset_ += by; }

    std::string description() const override { return "the memory of a test"; }
    time_point now() const override { return loop::current().now() + offset_; }
    task<outcome<>> prepare(std::string name) override;
    task<outcome<std::optional<beat>>> write(beat_request request) override;
    task<outcome<store_view>> read() override;
    task<void> erase(std::string name, beat last) override;
    task<void> watch(event& changed) override;

private:
    task<bool> travel();

    memory_cluster& of_;
    std::string name_;
    event running_;
    bool is_killed_ = false;
    duration offset_{};
    std::uint64_t texts_ = 0;  // of the store, as of the last read
};

}  // namespace eddy::cluster
