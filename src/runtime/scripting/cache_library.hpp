// Functions of scripts for the caches of the daemon, without a socket: eddy.cache(NAME).
//
// A command to a cache of the script's own loop is executed within the call; to one of another loop
// it goes as a task, which the call awaits.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "runtime/host/host.hpp"
#include "runtime/scripting/waiting_reply.hpp"
#include "script/library.hpp"

#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {

/// Different arguments of eddy.cache() in a script at most.
inline constexpr std::size_t max_script_caches = 100;
/// Bytes of a reply, and values in a list, at most.
inline constexpr std::size_t max_cache_reply = std::size_t{16} << 20;
inline constexpr std::size_t max_cache_elements = 100'000;

/// Caches that one state uses. It must outlive the state's host. One loop's thread.
class script_caches {
public:
    /// `daemon` finds the caches; null: there is none.
    explicit script_caches(std::shared_ptr<host> daemon) noexcept : daemon_(std::move(daemon)) {}

    /// Table `caches`, for cache_prelude().
    script::library functions() noexcept;

private:
    friend struct cache_functions;
    struct used_cache {
        std::string name;
        local_cache::login by;
        std::shared_ptr<local_cache> at = nullptr;  // as it was found last
    };

    std::expected<local_cache*, std::string> find(used_cache& which) const;

    const std::shared_ptr<host> daemon_;
    std::vector<std::unique_ptr<used_cache>> all_;  // their numbers count from 1
    byte_buffer replies_;
    const reply_bytes waiting_ = std::make_shared<std::atomic<std::size_t>>(0);
};

/// Values of a reply in RESP2 for a script: nil for null, false for null in a list. The error is
/// that of the cache, or of a limit.
std::expected<script::value, std::string> read_cache_reply(std::string_view reply);

/// Defines in Lua `eddy.cache()`, and the methods of what it returns. Behind
/// script_caches::functions().
std::string_view cache_prelude() noexcept;

}  // namespace eddy::runtime
