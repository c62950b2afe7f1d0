// Costs, and the order of use.
#include "http/files/file_cache.hpp"

#include <algorithm>
#include <utility>

namespace eddy::http {

representation* resource::find(content_coding coding) noexcept {
    for (representation& each : variants)
        if (each.coding == coding) return &each;
    return nullptr;
}

std::size_t resource::cost() const noexcept {
    // A node of the table, pointers of lists, and blocks of the heap around each.
    constexpr std::size_t around = 256;
    std::size_t sum = around + sizeof(resource) + 2 * name.size();
    for (const representation& each : variants) {
        sum += sizeof(representation) + each.etag.size() + each.last_modified.size();
        if (each.content) sum += each.content->text().size();
    }
    return sum;
}

std::size_t resource::descriptors() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(variants, [](const representation& each) {
        return each.content && each.content->descriptor() >= 0;
    }));
}

std::shared_ptr<resource> file_cache::find(std::string_view name) {
    const auto at = entries_.find(name);
    if (at == entries_.end()) return nullptr;
    at->second.unlink();
    by_use_.push_back(at->second);
    return at->second.what;
}

void file_cache::insert(std::shared_ptr<resource> added) {
    erase(added->name);
    const std::size_t cost = added->cost();
    if (cost > limit_) return;
    entry& made = entries_[added->name];
    made.what = std::move(added);
    made.cost = cost;
    made.descriptors = made.what->descriptors();
    bytes_ += cost;
    descriptors_ += made.descriptors;
    by_use_.push_back(made);
    make_room();
}

void file_cache::erase(std::string_view name) {
    const auto at = entries_.find(name);
    if (at != entries_.end()) erase(at);
}

void file_cache::recount(const std::shared_ptr<resource>& changed) {
    const auto at = entries_.find(changed->name);
    if (at == entries_.end() || at->second.what != changed) return;
    insert(changed);
}

void file_cache::erase(table::iterator at) {
    bytes_ -= at->second.cost;
    descriptors_ -= at->second.descriptors;
    at->second.unlink();
    entries_.erase(at);
}

void file_cache::make_room() {
    while (bytes_ > limit_) erase(by_use_.front().what->name);
}

}  // namespace eddy::http
