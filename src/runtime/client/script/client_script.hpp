// Script of a client: the events of its connection, and what `eddy send` gives it.
//
// The events on_connect, on_message and on_disconnect are handled one after the other. A callback
// that ends at once runs within the code that receives; while one waits, later events queue, and
// the receiver awaits idle() before it reads on. So no more events wait than those of one read.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "runtime/host/host.hpp"
#include "runtime/scripting/script_metrics.hpp"
#include "runtime/scripting/script_rows.hpp"
#include "serving/journal.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::client {

/// Way of a script to its client. One loop's thread.
class script_link {
public:
    /// Queues a message for the server; that of on_connect goes before all others. False when it is
    /// dropped, or the client takes none. Refuses what the transport cannot carry.
    virtual outcome<bool> queue(std::string_view message) = 0;
    virtual bool is_connected() const noexcept = 0;
    /// Closes the connection, after what is queued. False without one.
    virtual bool disconnect() noexcept = 0;
    /// on_connect has ended: other messages may go.
    virtual void end_greeting() noexcept = 0;
    /// Shows a message of the server, as without a script.
    virtual void show(std::string_view message, bool is_cut) = 0;

protected:
    ~script_link() = default;
};

/// Names of a client for its script.
struct script_identity {
    std::string name;
    std::string target;
    std::shared_ptr<host> daemon = nullptr;
};

/// One loop's thread, but for what says otherwise.
class client_script {
public:
    /// Fails in a program without scripts. `lines` and `to` outlive it.
    static outcome<std::unique_ptr<client_script>> make(const script_config& from,
                                                        const script_identity& identity,
                                                        serving::journal& lines, script_link& to);
    virtual ~client_script() = default;

    /// Loads the script, and runs on_start(); their failure is the start's. Before all events.
    virtual task<outcome<>> start() = 0;
    virtual task<outcome<>> replace(script_file by) = 0;
    /// on_stop(), for at most `limit`.
    virtual task<void> stop(duration limit) = 0;
    /// The end of all callbacks, within `limit`. No event may follow.
    virtual task<void> end(duration limit) = 0;

    // Events, in the order in which they come.
    virtual void connect() = 0;
    virtual void message(std::string_view text, bool is_cut) = 0;
    /// The connection that connect() was called for has ended; `reason` is empty at a stop. No
    /// effect without one.
    virtual void disconnect(std::string_view reason) = 0;
    /// True if the script decides about messages.
    virtual bool takes_messages() const noexcept = 0;
    /// Set while all events have been handled.
    virtual event& idle() noexcept = 0;

    /// True if the script decides about what is sent.
    virtual bool takes_sends() const noexcept = 0;
    /// See ask_on_send().
    virtual task<outcome<std::optional<std::string>>> send(std::string text) = 0;

    /// Any thread.
    virtual const script_tallies& counted() const noexcept = 0;
};

/// Loads the script as a trial, with the same errors.
outcome<> try_client_script(const script_config& from);
/// The same in slices, between which other work of the loop runs.
task<outcome<>> try_client_script_in_slices(script_config from);
/// Fields of the table `self` of scripts; none in a build without them.
std::vector<std::string> client_functions();

}  // namespace eddy::runtime::client
