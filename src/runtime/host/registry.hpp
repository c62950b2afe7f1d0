// Registry of a daemon's runtimes: names and groups, resolved to the addresses that are served.
//
// An instance notes each address as it opens it (listening.hpp). An address counts as taken while
// it is noted; it is resolved while its runtime runs, too: from the end of the start to the
// beginning of the stop. Groups also have the runtimes of other members of the daemon's cluster.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/task.hpp>
#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "runtime/host/local_cache.hpp"
#include "runtime/host/loop_notifier.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {

class registry;

/// An address of a running runtime.
struct served_address {
    std::string runtime;  ///< its name; of another member's "MEMBER/NAME"
    /// For transport::connect() on this machine: with the real port, and a loopback address in the
    /// place of "every address". `tls` of a tls address is empty: trust is the client's choice.
    transport::address where;
    bool is_remote = false;  ///< another member of the cluster serves there

    friend bool operator==(const served_address&, const served_address&) = default;
};

using served_addresses = std::vector<served_address>;

/// A runtime that another member of the cluster runs, and where: of TCP, UDP or TLS alone.
struct remote_runtime {
    struct place {
        transport::scheme kind = transport::scheme::tcp;
        std::string host;  ///< a name or numeric address
        std::uint16_t port = 0;

        friend bool operator==(const place&, const place&) = default;
    };
    std::string name;  ///< "MEMBER/NAME"
    std::string group;
    std::vector<place> places;

    friend bool operator==(const remote_runtime&, const remote_runtime&) = default;
};

/// An address that a runtime has opened.
struct opened_address {
    transport::scheme kind = transport::scheme::tcp;
    endpoint bound;
};

/// True when `pattern` names a runtime: a glob pattern of names, "@" and one of groups, or an id.
bool is_match(std::string_view pattern, std::string_view name, std::string_view id,
              std::string_view group) noexcept;

/// The refusal (404) of a name that no runtime has, with the name that was probably meant.
problem unknown_runtime(std::string_view name, std::span<const std::string_view> known);

/// Note that an address is served, for as long as it lives. Any thread.
class address_note {
public:
    address_note() noexcept = default;
    address_note(address_note&& other) noexcept;
    address_note& operator=(address_note&& other) noexcept;
    ~address_note();

private:
    friend class registry;
    address_note(std::shared_ptr<registry> in, std::uint64_t id) noexcept;

    std::shared_ptr<registry> in_;
    std::uint64_t id_ = 0;
};

/// Watch of the addresses of a runtime or group. It belongs to the loop that it was made on, and
/// must outlive its changed().
class address_watch {
public:
    address_watch(address_watch&&) noexcept = default;
    address_watch& operator=(address_watch&& other) noexcept;
    ~address_watch();

    /// Waits until addresses() may differ from those at the last call; the first call returns at
    /// once. All changes before a call are one. errc::cancelled; errc::closed once the instance
    /// that watches has stopped.
    task<result<>> changed();
    /// registry::resolve() of the target.
    outcome<served_addresses> addresses() const;

private:
    friend class registry;
    friend class host;
    struct state {
        std::string target;
        std::shared_ptr<loop_notifier> notifier;
        std::atomic<bool> has_changed{true};
    };
    address_watch(std::shared_ptr<registry> in, std::shared_ptr<state> shared) noexcept;

    std::shared_ptr<registry> in_;
    std::shared_ptr<state> shared_;
};

/// The registry itself. Any thread. Held by std::shared_ptr alone.
class registry : public std::enable_shared_from_this<registry> {
public:
    /// A runtime that does not run yet; one of that name is replaced.
    void add(std::string name, std::string id, std::string group);
    void set_group(std::string_view name, std::string group);
    /// True after a successful start, false before a stop.
    void set_running(std::string_view name, bool is_running);
    void remove(std::string_view name);
    /// The runtime, with all that it serves, has another name from now on, which is free.
    void rename(std::string_view name, std::string to);

    /// The runtime is a cache that scripts of others may use from now on; null: no longer.
    void offer_cache(std::string_view name, std::shared_ptr<local_cache> cache);
    /// The cache of that name or id. Refuses an unknown runtime (404), one that does not run (409),
    /// and one that is no cache (400).
    outcome<std::shared_ptr<local_cache>> find_cache(std::string_view target) const;

    /// The addresses of a runtime, by name or id, or those of all that a pattern names ("web*",
    /// "@group"), in the order of names; behind them those of a group at other members of the
    /// cluster. Empty when none runs. Refuses (404) an unknown runtime, and a pattern that names
    /// none.
    outcome<served_addresses> resolve(std::string_view target) const;
    /// Watches resolve(target). The target may be unknown yet. The calling thread's loop.
    address_watch watch(std::string target);

    /// Notes that the runtime serves on `where`, which was opened as `bound`.
    address_note note(std::string runtime, const transport::address& where, const endpoint& bound);
    /// The runtime that serves on an address which excludes `where`; empty if none does.
    std::string server_at(const endpoint& where, bool is_datagram) const;
    /// Addresses that a runtime has opened, in the order in which it did.
    std::vector<opened_address> opened_by(std::string_view name) const;

    /// Running runtimes of another member of the cluster, in the place of the ones before: only
    /// those of groups count. None: it has left. `member` has no "/".
    void set_remote(std::string_view member, std::vector<remote_runtime> its);

private:
    friend class address_note;
    friend class address_watch;

    struct entry {
        std::string id;
        std::string group;
        bool is_running = false;
        std::shared_ptr<local_cache> cache = nullptr;
    };
    struct noted_address {
        std::string runtime;
        transport::address where;
        endpoint bound;
    };

    void forget(std::uint64_t note);
    void forget(const address_watch::state& watch);
    using entries = std::map<std::string, entry, std::less<>>;

    // These expect the lock.
    outcome<entries::const_iterator> find(std::string_view target) const;
    void add_addresses(served_addresses& to, std::string_view runtime) const;
    bool add_remote(served_addresses& to, std::string_view groups) const;
    void replace_remote(std::string_view member, std::vector<remote_runtime> its);
    void notify_group(std::string_view group) const noexcept;
    void notify(std::string_view name, const entry& of) const noexcept;
    void notify_running(std::string_view name) const noexcept;

    mutable std::mutex mutex_;
    entries runtimes_;
    std::map<std::uint64_t, noted_address> notes_;  // by number, which grows
    /// Numbers of the notes of each runtime: resolving a group walks no other runtime's.
    std::map<std::string, std::vector<std::uint64_t>, std::less<>> notes_of_;
    std::map<std::string, std::vector<remote_runtime>, std::less<>> remote_;  // by member
    /// Runtimes of `remote_` by group and name.
    std::map<std::string, std::map<std::string_view, const remote_runtime*>, std::less<>> groups_;
    std::vector<std::shared_ptr<address_watch::state>> watches_;
    std::uint64_t last_note_ = 0;
};

}  // namespace eddy::runtime
