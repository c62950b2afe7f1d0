// Parts of each process of a stream daemon: its loop, its journal on standard error, and the port
// of its status pages.
#pragma once

#include <eddy/http/router.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>

#include "daemon/control/control_server.hpp"
#include "daemon/control/metrics.hpp"
#include "daemon/journal/output_writer.hpp"
#include "serving/journal.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::daemon {

/// Journal of a stream daemon: lines on standard error.
class stderr_journal final : public serving::journal {
public:
    /// Each line begins with `prefix`.
    explicit stderr_journal(std::string prefix = {});
    void write(std::string_view line) override;
    /// A line about what the process could not do, with the program's name.
    void complain(std::string_view line);

private:
    std::string prefix_;
    output_writer out_;
};

/// A loop of this kind; null after a complaint about why there is none.
std::unique_ptr<loop> make_stream_loop(io_backend_kind kind, stderr_journal& journal);

/// Source of the pages /metrics and /healthz. One loop's thread.
class status_source {
public:
    /// The page /metrics.
    virtual task<std::string> metrics_text() = 0;
    /// Why it cannot serve; empty while it can.
    virtual std::string_view fault() const noexcept { return {}; }

protected:
    ~status_source() = default;
};

/// GET /metrics and /healthz of `of`, which outlives it.
class status_pages final : public http::request_handler {
public:
    explicit status_pages(status_source& of);
    task<http::response> handle(http::request& request) override;
    http::response reject(int status, std::string_view what) override;

private:
    static task<http::response> metrics_of(status_source& of);
    static task<http::response> health_of(status_source& of);

    http::router router_;
};

/// The port of the pages. One loop's thread.
class status_server {
public:
    /// `of` outlives it.
    explicit status_server(status_source& of) : pages_(of) {}

    /// Serves at `where` as a task of `services`, which is joined before this dies; nowhere without
    /// an address. Writes the address, or why it cannot listen there: false then.
    bool open(const std::optional<endpoint>& where, stderr_journal& journal, scope& services);

private:
    status_pages pages_;
    daemon_counters counted_;
    std::optional<control_server> server_;
};

}  // namespace eddy::daemon
