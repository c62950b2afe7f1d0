// Pauses in pieces.
#include "runtime/cache/replication/key_delay.hpp"

#include <eddy/io/loop.hpp>

#include <algorithm>
#include <chrono>

namespace eddy::runtime::cache {

task<void> delay_keys(const eddy::cache::server_settings& by,
                      std::int64_t eddy::cache::server_settings::* each_us, std::uint64_t keys) {
    using microseconds = std::chrono::duration<double, std::micro>;
    constexpr duration piece = std::chrono::milliseconds(10);
    const time_point began = loop::current().now();
    for (;;) {
        const auto each = static_cast<double>(by.*each_us);
        if (each == 0 || keys == 0) co_return;
        const auto count = static_cast<double>(keys);
        const microseconds whole(each > 0 ? each * count : count / -each);
        const microseconds left = whole - microseconds(loop::current().now() - began);
        if (left.count() <= 0) co_return;
        const duration pause =
            left < piece ? std::chrono::duration_cast<duration>(left) + duration(1) : piece;
        if (!co_await loop::current().sleep_for(pause)) co_return;
    }
}

}  // namespace eddy::runtime::cache
