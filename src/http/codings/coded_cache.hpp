// Cache of small encoded contents, for responses whose content has a strong tag.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace eddy::http {

/// Texts by key, bounded in bytes; the least recently used go first. One thread.
class coded_cache {
public:
    /// It holds at most `bytes`, keys and what stands around them included; 0 for nothing at all.
    explicit coded_cache(std::size_t bytes) noexcept : limit_(bytes) {}

    /// The text of that key, until the next insert(); null when there is none.
    const std::string* find(std::string_view key);
    /// Keeps a text whose key is not there, and removes others until there is room; one that is
    /// larger than the limit is left out.
    void insert(std::string key, std::string text);

    std::size_t bytes() const noexcept { return bytes_; }

private:
    struct entry {
        std::string key;
        std::string text;
        /// A node of the list, one of the table, and blocks of the heap around each.
        std::size_t cost() const noexcept { return 256 + key.size() + text.size(); }
    };

    std::size_t limit_;
    std::size_t bytes_ = 0;
    std::list<entry> by_use_;  // least recently used first
    std::unordered_map<std::string_view, std::list<entry>::iterator> by_key_;
};

}  // namespace eddy::http
