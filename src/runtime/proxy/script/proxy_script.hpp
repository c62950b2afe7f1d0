// Script of an HTTP proxy on one loop: on_route(request) chooses where each request goes.
#pragma once

#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "proxy/http/forwarder.hpp"
#include "runtime/host/host.hpp"
#include "runtime/scripting/script_metrics.hpp"
#include "runtime/scripting/script_rows.hpp"
#include "serving/journal.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace eddy::runtime::proxy {

/// Names of a proxy for its script.
struct script_identity {
    std::string name;
    std::uint16_t port = 0;
    std::shared_ptr<host> daemon = nullptr;
};

/// The choice is that of on_route: nil is by the routes, a text names a backend or route, false is
/// 403, a number of 200 to 599 a status; other values, and a failure, are 500. One loop's thread,
/// but for what says otherwise.
class proxy_script : public eddy::proxy::route_chooser {
public:
    /// Fails in a program without scripts. `lines` outlives it.
    static outcome<std::unique_ptr<proxy_script>> make(const script_config& from,
                                                       const script_identity& identity,
                                                       serving::journal& lines);
    virtual ~proxy_script() = default;

    /// Loads the script, and runs on_start(); their failure is the start's. Before all requests.
    virtual task<outcome<>> start() = 0;
    /// Replaces the script, in two steps: see loop_script::prepare().
    virtual task<outcome<>> prepare(script_file by) = 0;
    virtual void adopt() = 0;
    virtual void discard() = 0;
    /// on_stop(), for at most `limit`.
    virtual task<void> stop(duration limit) = 0;
    /// The end of all callbacks, within `limit`. No request may be under way.
    virtual task<void> end(duration limit) = 0;

    /// Any thread.
    virtual const script_tallies& counted() const noexcept = 0;
};

/// Loads the script as a trial, with the same errors.
outcome<> try_proxy_script(const script_config& from);
/// The same in slices, between which other work of the loop runs.
task<outcome<>> try_proxy_script_in_slices(script_config from);
/// Fields of the table `self` of scripts; none in a build without them.
std::vector<std::string> proxy_functions();

}  // namespace eddy::runtime::proxy
