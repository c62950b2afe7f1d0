// Cache of the scripts that EVAL and SCRIPT LOAD have brought, and the sandbox in which they run.
#pragma once

#include <eddy/base/intrusive_list.hpp>

#include "cache/script/runner.hpp"
#include "lua/sandbox.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace eddy::cache {

/// Lets maps be searched by views.
struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
        return std::hash<std::string_view>()(text);
    }
};

struct cached_script : list_link<> {
    std::string name;  // its SHA-1
    std::string text;
    int function = 0;  // in the sandbox
    std::uint32_t flags = 0;
    bool loaded = false;  // by SCRIPT LOAD: it stays
};

/// One thread. The runner must outlive it.
class script_cache {
public:
    /// The text of all cached scripts together. Beyond it those go that EVAL brought and that were
    /// not run for longest; SCRIPT LOAD is refused when there are none.
    static constexpr std::size_t max_bytes = std::size_t{32} << 20;
    static constexpr std::size_t max_count = 64 * 1024;

    explicit script_cache(script_runner& runner);
    script_cache(const script_cache&) = delete;
    script_cache& operator=(const script_cache&) = delete;
    ~script_cache();

    /// The script, or null. Its place in the order of use is the newest then.
    cached_script* find(std::string_view name) noexcept;
    /// The same, compiled if it is new; null with the error replied.
    cached_script* add(call& c, std::string_view text, bool loaded);
    std::size_t count() const noexcept { return by_name_.size(); }
    std::size_t bytes() const noexcept { return bytes_; }
    /// SCRIPT FLUSH.
    void flush();

    lua::sandbox& sandbox() noexcept { return sandbox_; }
    const lua::sandbox& sandbox() const noexcept { return sandbox_; }

private:
    void remove(cached_script& gone);

    script_runner& runner_;
    lua::sandbox sandbox_;
    std::unordered_map<std::string, std::unique_ptr<cached_script>, text_hash, std::equal_to<>>
        by_name_;
    intrusive_list<cached_script> evictable_;  // the oldest first
    std::size_t bytes_ = 0;
};

}  // namespace eddy::cache
