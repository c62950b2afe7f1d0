// Readings of the process, and malloc_trim(3).
#include "daemon/idle_memory.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace eddy::daemon {
namespace {

duration length_of(const timeval& time) noexcept {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

std::uint64_t resident_bytes() noexcept {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"),
                                                               std::fclose);
    unsigned long long all = 0;
    unsigned long long resident = 0;
    if (!file || std::fscanf(file.get(), "%llu %llu", &all, &resident) != 2) return 0;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

idle_memory::reading idle_memory::now() noexcept {
    rusage used{};
    static_cast<void>(::getrusage(RUSAGE_SELF, &used));
    return {std::chrono::steady_clock::now().time_since_epoch(),
            length_of(used.ru_utime) + length_of(used.ru_stime), resident_bytes()};
}

bool idle_memory::is_due(const reading& next) noexcept {
    EDDY_ASSERT(next.at >= last_.at && next.processor_time >= last_.processor_time);
    const duration used = next.processor_time - last_.processor_time;
    const bool is_idle = has_last_ && used * idle_part <= next.at - last_.at;
    interval_ =
        has_last_ && used <= nothing ? std::min(2 * interval_, most_interval) : least_interval;
    last_ = next;
    has_last_ = true;
    if (next.resident_bytes == 0) return false;
    floor_ = std::min(floor_, next.resident_bytes);
    const std::uint64_t growth = std::max(least_growth, next.resident_bytes / 8);
    return is_idle && next.resident_bytes - floor_ >= growth;
}

task<void> return_idle_memory(blocking_pool& threads) {
    idle_memory memory;
    while (co_await loop::current().sleep_for(memory.interval())) {
        if (!memory.is_due(idle_memory::now())) continue;
        const auto left = co_await run_blocking(threads, [] {
            ::malloc_trim(0);
            return resident_bytes();
        });
        if (left) memory.note_returned(*left);
    }
}

}  // namespace eddy::daemon
