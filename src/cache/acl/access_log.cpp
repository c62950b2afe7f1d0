// Entries that are much the same are found among the latest few.
#include "cache/acl/access_log.hpp"

#include <algorithm>
#include <utility>

namespace eddy::cache {

void access_log::add(entry made, std::size_t limit) {
    ++counts_[static_cast<std::size_t>(made.why)];
    constexpr std::int64_t same_within_ms = 60'000;
    constexpr std::size_t looked_at = 10;
    for (std::size_t i = 0; i < std::min(entries_.size(), looked_at); ++i) {
        entry& old = entries_[i];
        if (old.why != made.why || old.where != made.where || old.object != made.object ||
            old.user != made.user || made.updated_ms - old.updated_ms > same_within_ms) {
            continue;
        }
        ++old.count;
        old.updated_ms = made.updated_ms;
        old.client = std::move(made.client);
        std::rotate(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(i),
                    entries_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return;
    }
    made.id = next_id_++;
    entries_.push_front(std::move(made));
    while (entries_.size() > limit) entries_.pop_back();
}

}  // namespace eddy::cache
