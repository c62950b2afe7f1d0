// Membership of a cluster: the daemons that belong together, the runtimes of each, and the engine
// that spreads them. An engine is a shared folder, etcd, or memory of this process for tests; none
// of them is a consensus of our own.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cluster {

/// Bounds of what a member may show of itself; what exceeds them is ignored and reported once.
inline constexpr std::size_t max_members = 4096;
inline constexpr std::size_t max_runtimes = 16'384;                 ///< of a member
inline constexpr std::size_t max_addresses = 64;                    ///< of a runtime
inline constexpr std::size_t max_name = 253;                        ///< bytes
inline constexpr std::size_t max_member_bytes = 8UZ * 1024 * 1024;  ///< of a member, encoded

/// A runtime, as its member shows it.
struct runtime_info {
    std::string name;
    std::string id;
    std::string type;                    ///< "cache", "http", …
    std::string group;                   ///< empty: none
    std::string state;                   ///< "running", "stopped", …
    std::vector<std::string> addresses;  ///< URIs that other members connect to
    std::uint64_t connections = 0;       ///< open now

    friend bool operator==(const runtime_info&, const runtime_info&) = default;
};

/// A daemon, as it shows itself to the others.
struct member_info {
    std::string name;
    std::string id;            ///< of this start of the daemon: 32 random hex digits
    std::string host;          ///< name or address at which others reach its runtimes
    std::string control;       ///< URI of its control API for other members; empty: none
    std::string version;       ///< of Eddy
    std::string label;         ///< chosen by its operator; empty: none
    std::int64_t started = 0;  ///< seconds since 1970 by its own clock, shown to people alone
    bool is_leaving = false;   ///< takes no new work: its runtimes are drained
    std::vector<runtime_info> runtimes;  ///< by name

    friend bool operator==(const member_info&, const member_info&) = default;
};

/// The cluster as one member knows it. Never changed once it is published.
struct snapshot {
    /// Counts the snapshots of a membership, from 1.
    std::uint64_t number = 0;
    /// By name, the own one included.
    std::vector<std::shared_ptr<const member_info>> members;
    /// The engine cannot be reached: the members are those known last. Its reason for people.
    bool is_stale = false;
    std::string stale_reason;

    /// Null for none.
    const member_info* find(std::string_view member) const noexcept;
};

/// Observer of what people should know: damaged or foreign entries, an engine that went away or
/// came back. Each is reported once until it has changed. The loop's thread.
class observer {
public:
    /// A sentence for the log.
    virtual void note_trouble(std::string sentence) = 0;
    virtual void note_recovery(std::string sentence) = 0;

protected:
    ~observer() = default;
};

/// One member's part in a cluster, of any engine. One loop's thread. end() before the destructor.
class membership {
public:
    membership() = default;
    membership(const membership&) = delete;
    membership& operator=(const membership&) = delete;
    virtual ~membership() = default;

    /// Joins as `self`, once; the first snapshot is there when it has. Refuses a name that a living
    /// member has (409, with that member's host), and an engine that cannot be used at all, such as
    /// a folder that may not be written (400). One that cannot be reached now (503) may be joined
    /// later by another call.
    virtual task<outcome<>> join(member_info self) = 0;
    /// Replaces what others see of this member. Several in a row are one for the others.
    virtual void publish(member_info self) = 0;
    /// Never null; number 0 before join().
    virtual std::shared_ptr<const snapshot> current() const = 0;
    /// Awaits a snapshot with a number beyond `known`. errc::cancelled; errc::closed after end().
    virtual task<result<>> changed(std::uint64_t known) = 0;
    /// Leaves: the others drop this member at once, where they can be reached. Stops all work; what
    /// waits in changed() ends.
    virtual task<void> end() = 0;
    /// In place of end(): stops all work, and stays a member, since another process takes its place
    /// with the same id, as in an upgrade. An engine that cannot do that leaves.
    virtual task<void> pass_on() { return end(); }
};

}  // namespace eddy::cluster
