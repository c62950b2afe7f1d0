// The engine's clients, as the server sees them: answers, held writes, users, memory.
#pragma once

#include "cache/clients/moving.hpp"
#include "cache/clients/write_hold.hpp"
#include "cache/engine/engine.hpp"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace eddy::cache {

/// Reference to the engine, which must outlive it; freely copied. The engine's thread.
class engine_clients {
public:
    explicit engine_clients(engine& of) noexcept : state_(of.internals()) {}

    /// Replies to a session whose command waits for the server, if it still waits: OK, or `fault`
    /// as an error with the prefix "ERR ".
    void answer(std::uint64_t session, std::string_view fault);
    /// The same with an error that has a code of its own.
    void answer_error(std::uint64_t session, const std::string& error);

    /// Write commands of clients wait until all reasons have ended.
    void hold_writes(write_hold why) noexcept;
    void let_write(write_hold why) noexcept;

    /// The client's connection has ended, or will once its last replies are sent: it executes
    /// nothing more, and no command of others finds it. Not while its script is late.
    void retire(client_session& who);

    /// Records that a client's buffers have grown by so many bytes, for maxmemory-clients.
    void note_memory(std::size_t bytes);
    /// Counts a client that was closed over client-query-buffer-limit.
    void count_closed_query() noexcept;

    /// True if the session can continue in another engine, see moved_session.
    bool may_move(const client_session& who) const noexcept;
    /// State of such a session.
    moved_session move_out(const client_session& who) const;
    /// Gives it to a new session. False where its user, or its database, does not exist here.
    bool move_in(client_session& who, const moved_session& from) const;

    /// True if the default user has no password.
    bool are_let_in() const noexcept;
    /// True if a client must authenticate first: the default user has a password or is off.
    bool need_password() const noexcept;
    /// Number of users, including the default one.
    std::size_t users() const noexcept;
    /// Replaces all users by those of an ACL file's text, all or none. Fails with all errors, each
    /// with its line in `file`.
    std::expected<void, std::string> load_users(std::string_view text, std::string_view file);

private:
    engine_state& state_;
};

}  // namespace eddy::cache
