// Costs, and the order of use.
#include "http/codings/coded_cache.hpp"

#include <utility>

namespace eddy::http {

const std::string* coded_cache::find(std::string_view key) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    by_use_.splice(by_use_.end(), by_use_, found->second);
    return &found->second->text;
}

void coded_cache::insert(std::string key, std::string text) {
    std::list<entry> made;
    made.push_back({std::move(key), std::move(text)});
    const std::size_t cost = made.front().cost();
    if (cost > limit_) return;
    while (bytes_ + cost > limit_) {
        bytes_ -= by_use_.front().cost();
        by_key_.erase(by_use_.front().key);
        by_use_.pop_front();
    }
    by_key_.emplace(made.front().key, made.begin());
    by_use_.splice(by_use_.end(), made);
    bytes_ += cost;
}

}  // namespace eddy::http
