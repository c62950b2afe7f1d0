// Session: the state of one client of the cache between its commands.
//
// The room clients holds sessions and their interactions. Files in reading order:
//
//   session.hpp            state of every client; session_extras.hpp rarely used state
//   client_state.hpp       what all sessions of an engine share
//   name_registry.hpp      names, each with its sessions
//   messages.hpp           pub/sub, MONITOR, output limits
//   notifications.hpp      changes of keys: WATCH, waits, keyspace events
//   waits.hpp              blocked commands; serving.hpp their execution
//   tracking.hpp           CLIENT TRACKING; tracking_table.hpp its tables
//   client_memory.hpp      maxmemory-clients; buffer_bytes.hpp sums for INFO
//   client_line.hpp        CLIENT LIST; closing.hpp closes a session; retiring.cpp removes its
//                          references
//
// It stands on keyspace and wire, and on the engine's floor for the state that all sessions share.
#pragma once

#include <eddy/base/intrusive_list.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::cache {

class engine;
struct session_extras;
namespace acl {
class user;
}

/// Lives as long as its connection, on the engine's thread, and no longer than the engine. The
/// connection checks `closing` after each engine::execute(), sends the replies and closes; it
/// checks `blocked`, and executes no more until wake() was called. Only the engine changes the
/// other members. Some 250 bytes; rarely used state is in `extras`.
struct client_session : list_link<> {
    /// Bits of `special`: reasons for a session's commands to take the slow path.
    enum mode : std::uint16_t {
        in_transaction = 1,      ///< commands are queued, until EXEC
        subscriber = 2,          ///< to channels or patterns
        reply_off = 4,           ///< CLIENT REPLY OFF
        reply_skip_next = 8,     ///< CLIENT REPLY SKIP: for the next command,
        reply_skip = 16,         ///< and that command
        monitoring = 32,         ///< MONITOR
        no_touch = 64,           ///< CLIENT NO-TOUCH
        tracking = 128,          ///< CLIENT TRACKING
        replica = 256,           ///< another server that replicates from this one
        master = 512,            ///< the master of this server, or the append-only file
        redirect_target = 1024,  ///< of another session's CLIENT TRACKING
    };
    static constexpr std::int64_t no_deadline = std::numeric_limits<std::int64_t>::max();

    /// `address` and `local_address` as CLIENT LIST shows them, "127.0.0.1:4711" or a socket's
    /// path.
    explicit client_session(engine& home, std::string_view address = {},
                            std::string_view local_address = {});
    client_session(const client_session&) = delete;
    client_session& operator=(const client_session&) = delete;
    virtual ~client_session();

    /// Tag of the engine's own sessions, which CLIENT LIST leaves out.
    struct internal {};

    /// Called by the engine, also while another session's command runs: there is output for
    /// engine::take_output(), or `blocked` has ended. Neither executes nor destroys a session
    /// inside the call.
    virtual void wake() noexcept {}
    /// Called by the engine, in the same way: the connection must be closed at once, without
    /// waiting for the peer to take its output.
    virtual void close_now() noexcept {}
    /// Called by the engine, in the same way, for a replica: there is more to be sent to it.
    virtual void feed_grew() noexcept {}
    /// Called by the engine within execute(), for a session of the master: the command is not one
    /// that masters send to replicas. It had no effect, and the session is closing.
    virtual void strayed(std::string_view command) { static_cast<void>(command); }

    /// Bytes held by the connection: of incomplete or waiting commands, and of replies taken from
    /// the engine and not sent yet.
    struct buffers {
        std::size_t input = 0;
        std::size_t output = 0;
    };
    virtual buffers held() const noexcept { return {}; }

    /// True if other clients may cause output for it at any time, or it is blocked: it is not idle.
    bool waits_for_others() const noexcept {
        constexpr std::uint16_t modes =
            subscriber | monitoring | tracking | replica | redirect_target;
        return blocked || (special & modes) != 0;
    }

    engine& home;
    std::uint64_t id;
    std::int64_t created_us;
    std::int64_t last_used_us;
    /// End of the replication stream after the session's last write: for WAIT.
    std::uint64_t written_offset = 0;
    std::string address;
    std::string local_address;
    /// CLIENT SETNAME and SETINFO. Null until the first of them, as an idle client has a kibibyte.
    struct introduction {
        std::string name;
        std::string library_name;
        std::string library_version;
    };
    std::unique_ptr<introduction> introduced;
    introduction& introduce() {
        if (!introduced) introduced = std::make_unique<introduction>();
        return *introduced;
    }
    std::string_view name() const noexcept {
        return introduced ? std::string_view(introduced->name) : std::string_view();
    }
    const char* last_command = "NULL";  ///< its lower-case name, a static text
    std::unique_ptr<session_extras> extras;
    acl::user* user = nullptr;  ///< never null after construction
    std::uint16_t special = 0;  ///< of mode
    std::uint8_t protocol = 2;  ///< 2 or 3
    std::uint8_t db = 0;
    /// False while a password is required and was not given: then the request limits are small, see
    /// resp::request_limits.
    bool authenticated = true;
    /// No password is required, or it was given, and the user has all permissions.
    bool unlimited = true;
    /// QUIT was answered, or the client was killed: no further command is executed.
    bool closing = false;
    /// The connection is closed at once; CLIENT LIST leaves it out.
    bool killed = false;
    /// A command waits for a key, the end of a pause or the like; later ones wait behind it.
    bool blocked = false;
    bool no_evict = false;
    /// CLIENT CAPA REDIRECT: a replica answers commands on data with the address of its master,
    bool redirects = false;
    /// but READONLY lets this one read.
    bool reads_replica = false;

protected:
    client_session(engine& home, internal);
};

}  // namespace eddy::cache
