// Name resolution: numbers, localhost, the hosts file, and DNS.
#include <eddy/net/resolver.hpp>

#include <eddy/io/timeout.hpp>

#include "net/address_order.hpp"
#include "net/dns_query.hpp"
#include "net/host_names.hpp"
#include "net/hosts_file.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace eddy {
class resolver::impl {
public:
    explicit impl(resolver_options options)
        : options_(std::move(options)), hosts_(options_.hosts_file, max_hosts_file) {
        EDDY_PRECONDITION(options_.max_concurrent > 0,
                          "a resolver of no question: max_concurrent is at least 1");
    }
    ~impl() {
        EDDY_PRECONDITION(
            running_ == 0 && waiting_ == 0,
            "a resolver was destroyed while a coroutine waits for it: await that first");
    }

    task<result<std::vector<endpoint>>> resolve(std::string host, std::uint16_t port);
    task<result<host_addresses>> look_up(std::string host);
    task<result<service_records>> look_up_service(std::string name);

    const resolver_options& options() const noexcept { return options_; }
    std::size_t running() const noexcept { return running_; }
    std::size_t waiting() const noexcept { return waiting_; }

private:
    /// Waits until fewer than max_concurrent queries run, and counts as one of them from then on.
    class slot_operation final : public operation, public list_link<impl> {
    public:
        explicit slot_operation(impl& queue) noexcept : queue_(&queue) {}
        void set_error(std::error_code error) noexcept override { error_ = error; }
        result<> take_result() const noexcept {
            if (error_) return fail(error_);
            return {};
        }

    private:
        bool start() override {
            if (queue_->running_ < queue_->options_.max_concurrent) {
                ++queue_->running_;
                return true;
            }
            if (queue_->waiting_ >= queue_->options_.max_waiting) {
                error_ = errc::limit_reached;
                return true;
            }
            ++queue_->waiting_;
            queue_->waiters_.push_back(*this);
            return false;
        }
        void on_cancel() noexcept override {
            list_link<impl>::unlink();
            --queue_->waiting_;
            error_ = errc::cancelled;
            complete_later();
        }

        impl* queue_;
        std::error_code error_;
    };

    /// Releases a slot, however its query ends.
    class slot_release {
    public:
        explicit slot_release(impl& queue) noexcept : queue_(&queue) {}
        ~slot_release() { queue_->release_slot(); }
        slot_release(const slot_release&) = delete;
        slot_release& operator=(const slot_release&) = delete;

    private:
        impl* queue_;
    };

    result<std::vector<endpoint>> find_here(const std::string& host);
    static bool has_no_dns() noexcept { return loop::current().kind() == io_backend_kind::sim; }

    void release_slot() noexcept {
        if (waiters_.empty()) {
            --running_;
            return;
        }
        --waiting_;
        waiters_.pop_front().complete_later();
    }

    resolver_options options_;
    hosts_file hosts_;
    intrusive_list<slot_operation, impl> waiters_;
    std::size_t running_ = 0;
    std::size_t waiting_ = 0;
};

/// Addresses that need no DNS, with port 0; empty for names that it has to be asked for.
/// errc::bad_address for what is no name.
result<std::vector<endpoint>> resolver::impl::find_here(const std::string& host) {
    // endpoint::ip() would take these for the wildcard.
    if (host.empty() || host == "*") return fail(errc::bad_address);
    if (const auto numeric = endpoint::ip(host, 0)) return std::vector<endpoint>(1, *numeric);
    if (!is_host_name(host)) return fail(errc::bad_address);
    std::vector<endpoint> known;
    if (is_localhost(host)) {
        for (const char* loopback : {"::1", "127.0.0.1"})
            known.push_back(*endpoint::ip(loopback, 0));
        return known;
    }
    known = hosts_.find(host.ends_with('.') ? std::string_view(host).substr(0, host.size() - 1)
                                            : std::string_view(host));
    if (known.size() > max_addresses) known.resize(max_addresses);
    return known;
}

task<result<std::vector<endpoint>>> resolver::impl::resolve(std::string host, std::uint16_t port) {
    result<std::vector<endpoint>> known = find_here(host);
    if (!known) co_return known;
    if (known->empty()) {
        if (has_no_dns()) co_return fail(errc::name_not_found);
        auto slot = co_await awaiting<slot_operation>(*this);
        if (!slot) co_return fail(slot.error());
        const slot_release ended(*this);
        auto found = co_await query_addresses(std::move(host), options_.servers, max_addresses,
                                              resolution_delay);
        if (!found) co_return fail(found.error());
        find_sources(found->routes);
        order_routes(found->routes);
        for (const address_route& route : found->routes) known->push_back(route.to);
        if (known->size() > max_addresses) known->resize(max_addresses);
    }
    for (endpoint& one : *known) one.set_port(port);
    co_return known;
}

task<result<host_addresses>> resolver::impl::look_up(std::string host) {
    result<std::vector<endpoint>> known = find_here(host);
    if (!known) co_return fail(known.error());
    if (!known->empty()) co_return host_addresses{std::move(*known), hosts_file_time};
    if (has_no_dns()) co_return fail(errc::name_not_found);
    auto slot = co_await awaiting<slot_operation>(*this);
    if (!slot) co_return fail(slot.error());
    const slot_release ended(*this);
    auto found =
        co_await query_addresses(std::move(host), options_.servers, max_looked_up, look_up_delay);
    if (!found) co_return fail(found.error());
    find_sources(found->routes);
    const auto has_source = [](const address_route& route) { return route.from.size() > 0; };
    if (std::ranges::any_of(found->routes, has_source))
        std::erase_if(found->routes,
                      [&](const address_route& route) { return !has_source(route); });
    host_addresses made{{}, found->valid_for};
    for (const address_route& route : found->routes) made.all.push_back(route.to);
    co_return made;
}

task<result<service_records>> resolver::impl::look_up_service(std::string name) {
    if (!is_host_name(name)) co_return fail(errc::bad_address);
    if (has_no_dns()) co_return fail(errc::name_not_found);
    auto slot = co_await awaiting<slot_operation>(*this);
    if (!slot) co_return fail(slot.error());
    const slot_release ended(*this);
    co_return co_await query_services(std::move(name), options_.servers);
}

resolver::resolver(resolver_options options) : impl_(std::make_unique<impl>(std::move(options))) {}
resolver::~resolver() = default;

resolver& resolver::of_this_thread() {
    static thread_local resolver instance;
    return instance;
}

task<result<std::vector<endpoint>>> resolver::resolve(std::string host, std::uint16_t port) {
    return with_timeout(impl_->options().timeout, impl_->resolve(std::move(host), port));
}

task<result<host_addresses>> resolver::look_up(std::string host) {
    return with_timeout(impl_->options().timeout, impl_->look_up(std::move(host)));
}

task<result<service_records>> resolver::look_up_service(std::string name) {
    return with_timeout(impl_->options().timeout, impl_->look_up_service(std::move(name)));
}

std::size_t resolver::running() const noexcept { return impl_->running(); }
std::size_t resolver::waiting() const noexcept { return impl_->waiting(); }

}  // namespace eddy
