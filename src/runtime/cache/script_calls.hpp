// Commands of the scripts of other runtimes to a cache, without a socket: sessions of the engine
// that have no connection, and the waits of their commands.
//
// Most commands are executed while the script calls. A reply waits as one of a client would: for a
// pause, a script that is late, a value that --hooks loads, or the append-only file.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/timer.hpp>

#include "cache/clients/client_session.hpp"
#include "runtime/cache/cache_context.hpp"
#include "runtime/cache/files/append_file.hpp"
#include "runtime/host/local_cache.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::cache {

/// Commands of scripts that wait at a time, and sessions without work that are kept.
inline constexpr std::size_t max_waiting_script_calls = 1000;
inline constexpr std::size_t max_idle_script_sessions = 16;
/// Limit of a command's wait.
inline constexpr duration script_call_patience = std::chrono::seconds(5);

/// One for each start of a cache. The home loop's thread, but for what local_cache says otherwise.
class script_calls final : public local_cache {
public:
    /// `of` outlives end(). `name` is the cache's.
    script_calls(cache_context& of, std::string name);
    ~script_calls() override;

    std::optional<task<std::string>> begin(const login& by, const resp::command& what,
                                           byte_buffer& out) override;

    /// Ends all waits and sessions; commands that come later are refused.
    task<void> end();

    std::uint64_t count() const noexcept { return count_; }

private:
    struct session final : eddy::cache::client_session {
        explicit session(eddy::cache::engine& of) : client_session(of, "script:0", "script:0") {}
        void wake() noexcept override { changed.set(); }
        void close_now() noexcept override { changed.set(); }

        login by;
        event changed;
    };
    struct give_back {
        script_calls* to = nullptr;
        void operator()(session* used) const noexcept { to->take_back(used); }
    };
    using used_session = std::unique_ptr<session, give_back>;

    used_session take(const login& by, byte_buffer& out);
    std::unique_ptr<session> take_idle(const login& by);
    bool log_in(session& as, const login& by, byte_buffer& out);
    void take_back(session* used) noexcept;
    std::size_t execute(session& by, const resp::command& what, byte_buffer& out);
    bool must_wait(session& of) const noexcept;
    std::string obstacle_of(const session& of) const;
    task<std::string> finish(used_session its, std::vector<std::string> rest, std::string reply);
    task<bool> await_change(session& of, time_point last);
    task<bool> await_file(session& of);

    cache_context* context_;
    const std::string name_;
    std::vector<std::unique_ptr<session>> idle_;
    std::vector<session*> used_;
    event all_back_;
    std::uint64_t count_ = 0;
};

}  // namespace eddy::runtime::cache
