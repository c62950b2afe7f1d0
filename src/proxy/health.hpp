// Health checks: whether each backend accepts connections, or answers an HTTP request, tried again
// and again beside its clients.
#pragma once

#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "proxy/backend.hpp"
#include "proxy/balancer.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::proxy {

/// Rules of health checks.
struct health_rules {
    enum class kind : std::uint8_t {
        none,  ///< every backend is healthy
        tcp,   ///< it accepts a connection; over TLS, its handshake and certificate count
        http,  ///< it answers GET with a good status
    };
    kind how = kind::none;
    std::string path = "/";                  ///< of http
    std::pair<int, int> statuses{200, 399};  ///< of http: the first and the last good one
    std::string host = {};                   ///< of http, in the field Host; empty: the backend's
    duration interval = std::chrono::seconds(2);  ///< between two checks of a backend
    duration timeout = std::chrono::seconds(2);   ///< of each
    std::uint32_t rise = 2;  ///< good results in a row that bring a backend back
    std::uint32_t fall = 3;  ///< bad ones that take it out; the first result of all counts alone

    friend bool operator==(const health_rules&, const health_rules&) = default;
};

/// Observer of health checks. Called on their loop's thread.
class health_observer {
public:
    virtual void note_down(const backend& which, std::string_view why) noexcept = 0;
    virtual void note_up(const backend& which) noexcept = 0;

protected:
    ~health_observer() = default;
};

/// Checks of the backends of a proxy. end() before the destructor. One loop's thread.
class health_checks {
public:
    explicit health_checks(health_observer& observer) noexcept : observer_(observer) {}
    health_checks(const health_checks&) = delete;
    health_checks& operator=(const health_checks&) = delete;

    /// Checks these backends by these rules from now on. Checks of a backend that stays continue
    /// if the rules stay, too.
    void set(const health_rules& rules, const backend_list& all);
    /// Ends all checks.
    task<void> end();

private:
    struct check;

    task<void> run(std::shared_ptr<check> its);
    void note(check& of, const std::string& failure);

    health_observer& observer_;
    health_rules rules_;
    std::vector<std::shared_ptr<check>> checks_;
    scope tasks_;
};

/// One check. Yields why it has failed; empty for a good result. The backend must live until then.
task<std::string> check_health(const backend& of, health_rules rules);

}  // namespace eddy::proxy
