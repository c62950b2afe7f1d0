// Cache of the daemon for scripts of its other runtimes: commands without a socket. The cache is
// offered and found through host.hpp.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/task.hpp>
#include <eddy/wire/resp/command.hpp>

#include <atomic>
#include <optional>
#include <string>

namespace eddy::runtime {

/// Held by std::shared_ptr, also after the cache has stopped.
class local_cache {
public:
    /// User and password of its commands; without both, those of a client that gives none.
    struct login {
        std::string user = {};
        std::string password = {};

        bool is_given() const noexcept { return !user.empty() || !password.empty(); }
        friend bool operator==(const login&, const login&) = default;
    };

    /// A cache of the calling thread's loop.
    local_cache() noexcept : home_(executor::current()) {}
    local_cache(const local_cache&) = delete;
    local_cache& operator=(const local_cache&) = delete;
    virtual ~local_cache() = default;

    /// The cache's loop. Any thread.
    const executor& home() const noexcept { return home_; }
    /// True once it executes nothing more: a restarted cache is another object. Any thread.
    bool is_closed() const noexcept { return is_closed_.load(std::memory_order_acquire); }

    /// Executes a command about data (data_commands.hpp), and appends its reply to `out`, in RESP2;
    /// a refusal is a reply, too. Where the reply has to wait, `out` gets nothing, and the task
    /// that is returned yields the reply. Home's thread. Throws std::bad_alloc.
    virtual std::optional<task<std::string>> begin(const login& by, const resp::command& what,
                                                   byte_buffer& out) = 0;

protected:
    void close() noexcept { is_closed_.store(true, std::memory_order_release); }

private:
    const executor home_;
    std::atomic<bool> is_closed_{false};
};

}  // namespace eddy::runtime
