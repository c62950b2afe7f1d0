// Share of a stream runtime that is one of several processes: their counts of live streams and of
// users, in memory that they share, so that one limit holds for all of them.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>

#include "runtime/stream/limits/user_table.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace eddy::runtime::stream {

/// Worker processes of one stream daemon at most.
inline constexpr std::size_t max_workers = 64;

/// Counts of the streams of all workers: a mapping of a file in memory (memfd_create(2)), which a
/// supervisor makes and its workers open by the descriptor. Any thread of any of these processes.
class worker_board {
public:
    /// With no worker. Errors are memfd_create(2)'s, ftruncate(2)'s and mmap(2)'s.
    static result<std::shared_ptr<worker_board>> make();
    /// The one of another process, by its descriptor. EINVAL for another file; mmap(2)'s errors.
    static result<std::shared_ptr<worker_board>> open(unique_fd from);
    ~worker_board();
    worker_board(const worker_board&) = delete;
    worker_board& operator=(const worker_board&) = delete;

    int descriptor() const noexcept { return memory_.get(); }

    /// Streams of all workers now, and the most at a time so far.
    std::uint64_t streams() const noexcept;
    std::uint64_t peak_streams() const noexcept;
    /// Streams of the worker in slot `number`, below max_workers.
    std::uint32_t streams_of(std::size_t number) const noexcept;
    /// Empties the slot of a worker that has ended; returns the streams that it had.
    std::uint32_t clear(std::size_t number) noexcept;

private:
    friend class worker_share;
    struct counts;
    worker_board(unique_fd memory, counts* mapped) noexcept;
    static result<std::shared_ptr<worker_board>> map(unique_fd memory);

    unique_fd memory_;
    counts* counts_;
};

/// Slot of one worker on the board. One loop's thread.
class worker_share {
public:
    /// Takes the slot `number` of the board, below max_workers, which no other process has.
    worker_share(std::shared_ptr<worker_board> of, std::size_t number) noexcept;
    /// Leaves the slot.
    ~worker_share();
    worker_share(const worker_share&) = delete;
    worker_share& operator=(const worker_share&) = delete;

    /// Adds a stream; false if the workers have `limit` of them. Never exceeds the limit; of
    /// several workers that add the last one at the same time, none may succeed.
    bool take(std::uint64_t limit) noexcept;
    /// A stream that take() added has ended.
    void give_back() noexcept;
    /// All of them have.
    void give_all_back() noexcept;

    /// True when this worker has noticeably more streams than the others on average.
    bool is_ahead() const noexcept;

    /// Publishes a user by its hash, which is not 0, and is not published yet. Null where there is
    /// no room: the other workers do not count it.
    user_table::entry* add_user(std::uint64_t hash) noexcept;
    /// Sum of a user's counts in the other workers, with the events of that minute.
    user_count others_of(std::uint64_t hash, std::uint32_t minute) const noexcept;
    /// Most streams of all workers at a time so far.
    std::uint64_t peak_streams() const noexcept { return board_->peak_streams(); }

private:
    std::shared_ptr<worker_board> board_;
    std::size_t number_;
    std::uint32_t streams_ = 0;
};

}  // namespace eddy::runtime::stream
