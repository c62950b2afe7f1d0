// Lane: the parallel executor of one thread. Several lanes execute commands of one engine at a
// time.
//
// Most commands touch nothing but the values of their keys. A lane locks the buckets that may hold
// the key (dictionary::holding), and executes the command. It never waits for a bucket locked by
// another lane: such a command, and each that may need more than its keys, is left to the exclusive
// path, which runs while no lane does. So a lane executes what it can from the beginning of a
// batch, in order, and engine::execute() the rest.
//
//   shared by lanes                  protected by
//   keys and their values            the buckets' own locks
//   number of keys                   each segment's count by atomic additions, their sum as
//                                    INFO's counters
//   memory                           a stock of blocks for each lane
//   INFO's counters                  counters of each lane, merged by merge_lanes()
//   time, settings, clients, rest    constant while lanes run
//
// While changes are observed or persisted, write commands take the exclusive path: replicas, the
// append-only file, a snapshot while it is written, MIGRATE, WATCH, CLIENT TRACKING, keyspace
// notifications, clients that wait for a key. With hooks or MONITOR, reads take it as well.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/resp/command.hpp>

#include "cache/engine/call.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/slow_log.hpp"
#include "cache/keyspace/dictionary.hpp"
#include "cache/memory/slab.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace eddy::cache {

struct command_spec;
struct planned;

/// Lane of one thread. Made, destroyed and merged exclusively; the engine must outlive it.
class alignas(64) lane {
public:
    /// Databases with fewer keys take the exclusive path: lanes would contend for their few
    /// buckets.
    static constexpr std::size_t least_keys = engine::min_prefetch_keys;

    explicit lane(engine& of);
    ~lane();
    lane(const lane&) = delete;
    lane& operator=(const lane&) = delete;

    struct outcome {
        std::size_t executed = 0;
        bool is_over = true;  ///< false: engine::execute() must execute the next command
    };
    /// As engine::execute(), as far as possible in parallel with other lanes; nothing else uses the
    /// engine meanwhile. The session belongs to this thread.
    outcome execute(client_session& who, std::span<const resp::command> commands, byte_buffer& out);

    /// Checked before each batch, with a monotonic time that is the same for all lanes: false when
    /// the batch should take the exclusive path at once. That holds for a while after a lane has
    /// been of no use, and for all lanes when batches often contend for the same key: exclusive
    /// execution is cheaper then.
    bool is_of_use(std::chrono::nanoseconds now) noexcept {
        if (batches_left_ > 0) {
            --batches_left_;
            return false;
        }
        now_ = now;
        return now >= state_.lanes_take_turns_until.load(std::memory_order_relaxed);
    }

private:
    friend class engine;
    // A run of the same command whose calls are not counted yet.
    struct repeated {
        const command_spec* what = nullptr;
        std::uint32_t calls = 0;
    };
    struct turn;
    struct sample {
        const command_spec* what;
        std::uint64_t took_ns;
    };
    static constexpr std::size_t most_samples = 32;
    struct large_command {
        slow_log::record made;
        command_sizes its;
    };
    // At most so many that merge_counters() adds to COMMANDLOG; further ones take the exclusive
    // path.
    static constexpr std::size_t most_large = 32;
    // At most so many commands whose buckets are locked together.
    static constexpr std::size_t most_taken = 4;
    // Contention score: a contended batch adds a weight, a larger one if all of the batch is for
    // one key; any other batch subtracts one. At the limit all lanes take the exclusive path for
    // turns_last.
    static constexpr std::uint32_t contention_weight = 8;
    static constexpr std::uint32_t same_key_weight = 32;
    static constexpr std::uint32_t most_contention = 64;
    static constexpr std::chrono::milliseconds turns_last{20};
    // After so many batches in a row without a command for a lane, or after one without permission,
    // so many batches take the exclusive path before the next try.
    static constexpr std::uint32_t most_useless = 16;
    static constexpr std::uint32_t batches_without_use = 32;
    // At most so many segments that wait to be resized, and so many resized when all lanes are
    // merged: some ten microseconds each.
    static constexpr std::size_t most_noted = 4;
    static constexpr std::size_t most_resized = 8;
    struct segment_of {
        unsigned database;
        std::uint64_t hash;
    };

    enum class permitted : std::uint8_t { nothing, reads, all };

    permitted may_run(const client_session& who, const keyspace* keys) const noexcept;
    bool is_permitted(const command_spec* what) const noexcept;
    std::size_t take_some(const call& c, std::span<const planned> next,
                          dictionary::holding& held) noexcept;
    bool run(call& c, const resp::command& what, const planned& plan, dictionary::holding& held);
    bool take_keys(call& c, dictionary::holding& held);
    bool note_taken(bool taken, const dictionary::holding& held) noexcept;
    bool may_use(const call& c, std::string_view key, std::uint64_t hash, dictionary::holding& held,
                 keyspace::slot*& place);
    void run_first(call& c);
    void note_large(const call& c) noexcept;
    void note_size(unsigned database, std::uint64_t hash) noexcept;
    void count_running() noexcept;
    void note_contention() noexcept;
    void note_use(const outcome& of) noexcept;
    void merge_counters() noexcept;
    void resize(std::size_t& left) noexcept;

    // Read on the exclusive path; changed by the lane's runs.
    bool has_run_ = false;  // since merge_counters()
    std::size_t noted_count_ = 0;
    std::size_t room_ = 0;  // bytes that it may allocate until merge_counters()

    engine_state& state_;
    slab::stock stock_;
    own_counts counts_;
    std::array<dictionary::holding::counts, engine_databases> keys_;
    std::chrono::nanoseconds now_{};
    permitted permitted_ = permitted::nothing;  // in this batch
    bool is_contended_ = false;
    bool is_of_one_key_ = false;
    std::uint32_t contention_ = 0;
    std::uint32_t useless_ = 0;  // batches in a row
    std::uint32_t batches_left_ = 0;
    repeated running_;
    std::vector<std::uint32_t> calls_;    // of each command since merge_counters()
    std::vector<std::uint32_t> untimed_;  // of each command, calls until the next timed one
    std::vector<std::uint16_t> called_;   // commands with calls
    std::array<sample, most_samples> samples_;
    std::size_t sample_count_ = 0;
    std::vector<large_command> large_;
    std::array<segment_of, most_noted> noted_;
};

}  // namespace eddy::cache
