// Instance: a runtime that exists, as the daemon starts, asks and stops it.
//
// An instance belongs to one loop's thread from start() to the end of stop().
#pragma once

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "runtime/host/host.hpp"
#include "runtime/metrics.hpp"
#include "runtime/options/settings.hpp"
#include "serving/journal.hpp"
#include "serving/passed_client.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace eddy::runtime {

/// Data of a runtime between two of its instances, over a restart: a file without a name.
struct handover {
    unique_fd file;        ///< keeps it
    std::string fault;     ///< why there is none
    std::string folder;    ///< where it is, for messages
    std::string path;      ///< opens it
    bool is_used = false;  ///< an instance has written all that the next one needs
    /// The next instance starts only if its own files, new ones, get the data at once.
    bool has_new_files = false;
};

struct inherited_listeners;
struct passed_listeners;
using serving::passed_client;

/// Parameters of a new instance. `events` outlives it.
struct creation {
    std::string name;
    settings options;
    serving::journal* events;
    /// Never null.
    std::shared_ptr<runtime::host> host = std::make_shared<runtime::host>();
    /// Data of the instance before, which count in place of what files have; null: none.
    std::shared_ptr<const handover> inherited = nullptr;
    /// Listeners of the instance before, which was on the same loop; null: none. start() takes the
    /// ones that it can use, and gives them back when it fails.
    std::shared_ptr<inherited_listeners> listeners = nullptr;
    /// start() accepts no client; instance::open() comes when another process is about to end.
    bool is_held = false;
};

/// Clients of an instance.
struct client_counts {
    std::uint64_t connections = 0;
    std::uint64_t handshakes = 0;  ///< under way
};

/// A runtime that exists. All members are called on its loop.
class instance {
public:
    virtual ~instance() = default;

    /// Opens its listeners; fails without leaving anything behind. After success it serves until
    /// stop().
    virtual task<outcome<>> start() = 0;
    /// Ends a start() or reread() that is under way soon, without success. No effect on one that
    /// takes no time.
    virtual void give_up_start() noexcept {}

    /// First half of a stop that loses nothing: files get what they lack while clients are still
    /// served. After success changes wait until stop() or resume(). Fails with the reason when
    /// something cannot be written; the instance then serves as before. `patience` limits the waits
    /// for others, such as replicas, not the writing itself.
    virtual task<outcome<>> prepare_stop(duration /*patience*/) { co_return outcome<>(); }
    /// In place of prepare_stop() before a restart with other options. Writes the data that the
    /// next instance would not find in its files, if there are any, and sets is_used. Fails with
    /// the reason, naming how much would be lost; the instance then serves as before.
    virtual task<outcome<>> hand_over(settings /*next*/, std::shared_ptr<handover> /*to*/,
                                      duration patience) {
        co_return co_await prepare_stop(patience);
    }
    /// No stop follows: ends prepare_stop() and hand_over(), finished or not; changes resume.
    virtual void resume() noexcept {}

    /// Before a restart: stops accepting, and yields the listeners for the next instance on the
    /// same loop, while present clients are still served. The stop() that follows lets clients
    /// finish as gently as their protocol allows. Null where it has no listeners.
    virtual task<std::shared_ptr<inherited_listeners>> hand_over_listeners() { co_return nullptr; }
    /// The next instance did not start: takes the listeners back, opens closed ones anew, and
    /// accepts again. Fails with the addresses that are not served any more, which it then tries
    /// again until it succeeds, see fault().
    virtual outcome<> take_back(inherited_listeners& /*from*/) { return {}; }

    // An upgrade of the daemon: an instance of another process takes this one's place.

    /// Copies of its sockets for the other instance. This one serves on, and its own sockets end
    /// without effect on the copies. Fails with the reason, such as a lack of descriptors.
    virtual outcome<std::shared_ptr<passed_listeners>> share_listeners() { return nullptr; }
    /// The other instance serves, or will: accepts what its loop has taken from the kernel's queue,
    /// and nothing more. hand_over_listeners() and stop() follow.
    virtual task<void> end_accepting() { co_return; }
    /// Connections that rest, or whose commands have had no effect yet, with their state, for
    /// take_clients(). After end_accepting(). Called repeatedly, until it yields none: a connection
    /// that was busy may rest at a later call. The others stay, and end with stop().
    virtual task<std::vector<passed_client>> hand_over_clients() {
        co_return std::vector<passed_client>();
    }
    /// Serves them, with creation::is_held from open() on.
    virtual void take_clients(std::vector<passed_client> /*from*/) {}
    /// There is no other instance: its sockets are its own again.
    virtual void unshare_listeners() noexcept {}
    /// With creation::is_held: accepts clients, and owns its sockets, from now on.
    virtual void open() {}

    /// Stops accepting, lets connections finish for at most `drain`, then closes the rest. Without
    /// prepare_stop() before, what cannot be written is lost. The instance may be destroyed or
    /// started again afterwards.
    virtual task<void> stop(duration drain) = 0;
    /// Ends the wait for connections of a stop() that is under way.
    virtual void end_drain() noexcept {}
    /// Data that the last stop() has lost, such as "100407 keys: it has no --dir"; empty if none.
    virtual std::string lost() const { return {}; }

    virtual metrics count() const = 0;
    /// Two figures of count(), for lists of many runtimes. To override where count() copies much.
    virtual client_counts count_clients() const {
        const metrics all = count();
        return {all.connections_now, all.handshakes_now};
    }

    /// The address that it serves on, with the real port; empty when it is not running.
    virtual endpoint local() const = 0;
    /// The lack that keeps a running instance from its work, and why: addresses that it has lost
    /// by a take_back() that failed, the connection of a client, the backends of a proxy, or a
    /// script that does not only fail. Empty while it lacks nothing.
    virtual std::string fault() const { return {}; }

    /// State in a few words where the type has more to say than that it runs, such as "process
    /// 4711, healthy"; for `eddy ls`.
    virtual std::string detail() const { return {}; }

    /// `eddy send`, whose meaning depends on the type. Returns the number of peers that got the
    /// message. By default it refuses (400), since the type has no peers to send to.
    virtual task<outcome<std::uint64_t>> send(std::string /*message*/) {
        co_return refuse(
            400, "runtimes of its type have no clients to send to; `eddy send` is for servers");
    }

    /// Checks that it could be started with these options after a stop, as far as that can be known
    /// while it runs: addresses, certificates, scripts, folders. With `discards_data` its own data
    /// may be replaced by that of files which the options name.
    virtual task<outcome<>> check_restart(settings /*next*/, bool /*discards_data*/) {
        co_return outcome<>();
    }
    /// Reads the files that its options name again while it serves. False when that needs a
    /// restart. On failure the files that were read before stay in use.
    virtual task<outcome<bool>> reread() { co_return false; }

    /// Loads its script's file again while it serves. On failure the script stays that it has.
    virtual task<outcome<>> reload_script() {
        co_return refuse(400, "runtimes of its type run no script by --lua");
    }

    /// Applies changed live options (`option::live`) to a running runtime.
    virtual outcome<> apply(const settings& changed) = 0;
};

}  // namespace eddy::runtime
