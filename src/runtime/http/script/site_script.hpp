// Script of a site on one loop: on_http_request(request) answers requests before files are looked
// up.
#pragma once

#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "runtime/host/host.hpp"
#include "runtime/scripting/script_metrics.hpp"
#include "runtime/scripting/script_rows.hpp"
#include "serving/journal.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace eddy::runtime::http {

/// Names of a site for its script.
struct script_identity {
    std::string name;
    std::uint16_t port = 0;
    std::shared_ptr<host> daemon = nullptr;
};

/// One loop's thread, but for what says otherwise.
class site_script {
public:
    /// Fails in a program without scripts. `lines` outlives it.
    static outcome<std::unique_ptr<site_script>> make(const script_config& from,
                                                      const script_identity& identity,
                                                      serving::journal& lines);
    virtual ~site_script() = default;

    /// Loads the script, and runs on_start(); their failure is the start's.
    virtual task<outcome<>> start() = 0;
    /// Replaces the script by another version, in two steps: see loop_script::prepare().
    virtual task<outcome<>> prepare(script_file by) = 0;
    virtual void adopt() = 0;
    virtual void discard() = 0;
    /// on_stop(), for at most `limit`.
    virtual task<void> stop(duration limit) = 0;
    /// The end of all callbacks, within `limit`. No request may be under way.
    virtual task<void> end(duration limit) = 0;

    /// False while it leaves all requests to the files.
    virtual bool answers() const noexcept = 0;
    /// See answer_by().
    virtual task<std::optional<eddy::http::response>> answer(eddy::http::request& incoming) = 0;

    /// Any thread.
    virtual const script_tallies& counted() const noexcept = 0;
};

/// Loads the script as a trial, with the same errors.
outcome<> try_site_script(const script_config& from);
/// The same in slices, between which other work of the loop runs.
task<outcome<>> try_site_script_in_slices(script_config from);
/// Fields of the table `self` of scripts; none in a build without them.
std::vector<std::string> site_functions();

}  // namespace eddy::runtime::http
