// Log file of a runtime with several loops.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/task.hpp>

#include "runtime/host/loop_notifier.hpp"
#include "runtime/logs/line_log.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

namespace eddy::runtime {

/// A line_log that several loops append to. It belongs to the home loop; other loops collect what
/// is for it here, and wake that loop once.
class shared_log {
public:
    /// On the home loop; `to` outlives it. `is_shared`: several loops append.
    shared_log(line_log& to, bool is_shared) : log_(to), is_shared_(is_shared) {}

    /// Takes whole messages; false when there was no room (line_log::max_waiting bytes) and they
    /// were dropped. Any thread if it is shared, else the home loop's.
    bool append(std::string_view messages, std::uint64_t count);
    /// Passes on what other loops have collected, until it is cancelled. The home loop's thread.
    task<void> run();
    /// The same for what is there now. Returns how many messages were dropped so far.
    std::uint64_t flush();

private:
    line_log& log_;
    bool is_shared_;
    std::mutex guard_;
    byte_buffer waiting_;
    std::uint64_t messages_ = 0;  // in it
    std::uint64_t dropped_ = 0;   // of them, the home loop's
    const std::shared_ptr<loop_notifier> came_ = std::make_shared<loop_notifier>();
};

}  // namespace eddy::runtime
