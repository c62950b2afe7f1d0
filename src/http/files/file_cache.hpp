// Cache of resources: bounded in bytes, the least recently used go first.
#pragma once

#include <eddy/base/intrusive_list.hpp>
#include <eddy/io/timer.hpp>

#include "base/text/text.hpp"
#include "http/files/media_types.hpp"
#include "http/files/representation.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eddy::http {

/// A file, and the precompressed ones beside it.
struct resource {
    std::string name;  ///< below the root, of the file without a coding
    media_type type;
    std::vector<representation> variants;  ///< identity first
    time_point checked;                    ///< when the files were last known to be these

    /// The variant of a coding; null when there is none.
    representation* find(content_coding coding) noexcept;
    const representation* find(content_coding coding) const noexcept {
        return const_cast<resource*>(this)->find(coding);
    }
    /// Bytes that it takes in a cache: contents, names, and what stands around them.
    std::size_t cost() const noexcept;
    /// Number of the contents that have a descriptor.
    std::size_t descriptors() const noexcept;
};

/// Resources by name. One thread.
class file_cache {
public:
    /// It holds at most `bytes` of cost; 0 for nothing at all.
    explicit file_cache(std::size_t bytes) noexcept : limit_(bytes) {}

    std::size_t limit() const noexcept { return limit_; }
    /// The cost of all entries, in bytes.
    std::size_t bytes() const noexcept { return bytes_; }

    /// The resource of that name, which is then the most recently used; null when there is none.
    std::shared_ptr<resource> find(std::string_view name);
    /// Adds a resource in place of one of the same name, and removes others until there is room;
    /// one that costs more than the limit is left out.
    void insert(std::shared_ptr<resource> added);
    /// Removes the resource of that name.
    void erase(std::string_view name);
    /// So many contents at most are read at a time; meanwhile other responses read their files in
    /// slices, so that requests for many large files do not fill memory.
    static constexpr std::size_t load_limit = 4;
    /// Reading of a content into the cache; false beyond load_limit. The cache must outlive it.
    class load {
    public:
        explicit load(std::size_t* count) noexcept : count_(count) {
            if (count_) ++*count_;
        }
        ~load() {
            if (count_) --*count_;
        }
        load(const load&) = delete;
        load& operator=(const load&) = delete;
        explicit operator bool() const noexcept { return count_ != nullptr; }

    private:
        std::size_t* count_;
    };
    load begin_load() noexcept { return load(loads_ < load_limit ? &loads_ : nullptr); }

    /// Contents with a descriptor: at most so many, further ones are texts.
    static constexpr std::size_t descriptor_limit = 256;
    /// True if one more descriptor fits.
    bool has_descriptor() const noexcept { return descriptors_ < descriptor_limit; }

    /// Updates the cost of a resource whose variants were filled. It, or others, may be evicted.
    void recount(const std::shared_ptr<resource>& changed);

private:
    struct entry : list_link<file_cache> {
        std::shared_ptr<resource> what;
        std::size_t cost = 0;
        std::size_t descriptors = 0;
    };
    using table = std::unordered_map<std::string, entry, string_hash, std::equal_to<>>;

    void erase(table::iterator at);
    void make_room();

    std::size_t limit_;
    std::size_t bytes_ = 0;
    std::size_t loads_ = 0;
    std::size_t descriptors_ = 0;
    table entries_;
    intrusive_list<entry, file_cache> by_use_;  // least recently used first
};

}  // namespace eddy::http
