// Followed names: the addresses of backends that are named in DNS, looked up again when their time
// to live has passed.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/net/resolver.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace eddy::proxy {

/// Source of answers about names. The loop's thread.
class name_lookup {
public:
    virtual ~name_lookup() = default;
    /// As resolver::look_up().
    virtual task<result<host_addresses>> look_up(std::string host) = 0;
    /// As resolver::look_up_service().
    virtual task<result<service_records>> look_up_service(std::string name) = 0;
};

/// Source that has a resolver of its own.
std::shared_ptr<name_lookup> make_name_lookup(resolver_options options);

/// Server of a service, by its SRV record.
struct service_server {
    std::string host;
    std::uint16_t port = 0;
    std::uint32_t weight = 1;  ///< 1 to max_weight
    bool is_backup = false;    ///< its priority is not the first one
    friend bool operator==(const service_server&, const service_server&) = default;
};

/// Observer of names. Called on their loop's thread.
class name_observer {
public:
    /// Addresses or servers have changed, or the first answers are there. Not while is_waiting().
    virtual void note_changed_names() = 0;
    /// A name cannot be looked up: its last addresses, if it `has_addresses`, stay in use. Noted
    /// once until it can, and no more often than followed_names::report_interval.
    virtual void note_failed_name(std::string_view name, std::error_code why,
                                  bool has_addresses) noexcept = 0;
    /// A failure has lasted for followed_names::gone_after.
    virtual void note_gone_name(std::string_view name) noexcept = 0;
    /// A name that was noted can be looked up again.
    virtual void note_found_name(std::string_view name) noexcept = 0;
    /// A name has more addresses or servers than are used. Noted once.
    virtual void note_long_answer(std::string_view name, std::size_t count) noexcept = 0;

protected:
    ~name_observer() = default;
};

/// Hosts and services of a proxy, and what they have stood for last: an answer without addresses,
/// and none, changes nothing. end() before the destructor. One loop's thread.
class followed_names {
public:
    /// Bounds of a time to live.
    static constexpr duration shortest_time = std::chrono::seconds(1);
    static constexpr duration longest_time = std::chrono::minutes(5);
    /// After a failure: the first pause, and the longest; each is twice as long as the one before.
    static constexpr duration first_retry = std::chrono::seconds(1);
    static constexpr duration longest_retry = std::chrono::seconds(30);
    /// A new name is awaited for so long.
    static constexpr duration first_wait = std::chrono::seconds(1);
    static constexpr duration report_interval = std::chrono::seconds(10);
    static constexpr duration gone_after = std::chrono::minutes(10);
    /// Names at most, with those of the servers of services.
    static constexpr std::size_t max_names = 1024;

    followed_names(name_observer& observer, std::shared_ptr<name_lookup> by);
    followed_names(const followed_names&) = delete;
    followed_names& operator=(const followed_names&) = delete;
    ~followed_names();

    /// Lookups that begin from now on are `by` it.
    void set_lookup(std::shared_ptr<name_lookup> by) noexcept;
    /// Follows these, and none else: hosts, and names of SRV records. The ones that stay keep their
    /// addresses. False: there are more than max_names; the last ones are not followed.
    bool follow(std::vector<std::string> hosts, std::vector<std::string> services);

    /// Addresses of a host, with port 0: at most max_backends, in an order of their own.
    std::vector<endpoint> addresses_of(std::string_view host) const;
    /// Servers of a service, at most max_backends; those of the first priority come first.
    std::vector<service_server> servers_of(std::string_view service) const;

    /// True while a new name has no first answer, for at most first_wait; twice that for a service
    /// with new servers.
    bool is_waiting() const noexcept { return waiting_ > 0; }
    /// Awaits that time, or cancellation.
    task<void> wait();
    /// Ends all lookups.
    task<void> end();

private:
    struct followed;
    using followed_pointer = std::shared_ptr<followed>;

    followed_pointer find(bool is_service, std::string_view name) const noexcept;
    bool follow_wanted();
    task<void> run(followed_pointer its);
    task<result<>> try_look_up(followed_pointer its);
    task<result<>> look_up(followed_pointer its, std::shared_ptr<name_lookup> by);
    void keep(followed& its, std::vector<endpoint> found);
    void keep(followed& its, std::vector<service_server> found, std::size_t records);
    void note_excess(followed& its, std::size_t count) noexcept;
    void note_failure(followed& its, std::error_code why) noexcept;
    void note_success(followed& its) noexcept;
    void end_wait(followed& its) noexcept;
    void notify();

    name_observer& observer_;
    std::shared_ptr<name_lookup> lookup_;
    std::vector<std::string> hosts_;     // wanted
    std::vector<std::string> services_;  // wanted
    std::vector<followed_pointer> names_;
    std::size_t waiting_ = 0;
    event answered_;  // set while none waits
    bool has_changed_ = false;
    scope tasks_;
};

/// The servers of records: those of the lowest priority, the others as backups, with weights in
/// the bounds of a balancer. Of too many the first ones by priority, then by weight, are kept.
std::vector<service_server> servers_of_records(std::vector<service_record> records);

}  // namespace eddy::proxy
