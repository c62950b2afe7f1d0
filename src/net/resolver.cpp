// Name resolution: numbers, localhost, the hosts file, and DNS through c-ares.
#include <eddy/net/resolver.hpp>

#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "base/text/text.hpp"
#include "net/address_order.hpp"
#include "net/hosts_file.hpp"

#include <ares.h>
#include <netdb.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace eddy {
namespace {

/// A name server that has not answered for so long is queried again, or the next one is; c-ares
/// doubles the time with each round.
constexpr int server_timeout_ms = 2000;
constexpr int server_tries = 3;

constexpr std::size_t longest_name = 253;
constexpr std::size_t longest_label = 63;

/// Host names as RFC 1123 has them, and underscores, which are in use. A last label of digits
/// alone would be an address, and it is none.
bool is_host_name(std::string_view name) noexcept {
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.empty() || name.size() > longest_name) return false;
    std::string_view label;
    while (true) {
        label = name.substr(0, name.find('.'));
        if (label.empty() || label.size() > longest_label) return false;
        if (label.starts_with('-') || label.ends_with('-')) return false;
        const bool good = std::all_of(label.begin(), label.end(), [](char c) {
            return is_digit(c) || is_letter(c) || c == '-' || c == '_';
        });
        if (!good) return false;
        if (label.size() == name.size()) break;
        name.remove_prefix(label.size() + 1);
    }
    return !std::all_of(label.begin(), label.end(), is_digit);
}

bool is_localhost(std::string_view name) noexcept {
    constexpr std::string_view local = "localhost";
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.size() < local.size()) return false;
    const std::string_view end = name.substr(name.size() - local.size());
    return is_word(end, local) &&
           (end.size() == name.size() || name[name.size() - local.size() - 1] == '.');
}

std::error_code error_of_status(int status) noexcept {
    switch (status) {
        case ARES_SUCCESS: return {};
        case ARES_ENODATA:
        case ARES_ENOTFOUND: return errc::name_not_found;
        case ARES_ETIMEOUT: return errc::timed_out;
        case ARES_EBADNAME: return errc::bad_address;
        case ARES_ECANCELLED:
        case ARES_EDESTRUCTION: return errc::cancelled;
        default: return errc::resolver_failed;
    }
}

/// One lookup: a c-ares channel that queries both families, and the coroutines that watch its
/// sockets and its clock. The families are queried apart, since one may stay unanswered: c-ares
/// keeps what it has of a query for both until it has given the other one up.
class dns_query {
public:
    dns_query(cancel_source* parent, std::uint16_t port) : watchers_(parent), port_(port) {}
    ~dns_query() {
        if (channel_) ares_destroy(channel_);
    }
    dns_query(const dns_query&) = delete;
    dns_query& operator=(const dns_query&) = delete;

    static task<result<std::vector<endpoint>>> run(std::string host, std::uint16_t port,
                                                   std::string servers) {
        dns_query query(co_await current_source(), port);
        if (!query.open(servers)) co_return fail(errc::resolver_failed);
        query.ask(host);
        co_await query.watchers_.join();
        // Cancelled from outside: c-ares still waits for an answer, which is of no use any more.
        // One that has come is an answer all the same, if the time was over while the other was
        // late.
        if (!query.answered_ && query.routes_.empty()) co_return fail(errc::cancelled);
        if (query.error_) co_return fail(query.error_);
        if (query.routes_.empty()) co_return fail(errc::name_not_found);
        co_return query.addresses();
    }

private:
    /// A socket of c-ares'. Numbers are used again, so each opening has an object of its own.
    struct watched_socket {
        watched_socket(int number, cancel_source& parent) : fd(number), open(&parent) {}
        bool& wants(readiness kind) { return kind == readiness::readable ? reads : writes; }
        bool& watched(readiness kind) {
            return kind == readiness::readable ? read_watched : write_watched;
        }

        int fd;
        cancel_source open;  // cancelled before c-ares closes the socket
        bool reads = false;
        bool writes = false;
        bool read_watched = false;
        bool write_watched = false;
    };

    bool open(const std::string& servers) {
        static std::once_flag once;
        std::call_once(once, [] { ares_library_init(ARES_LIB_INIT_ALL); });
        char lookups[] = "b";  // only DNS: the hosts file has been read before
        ares_options options{};
        options.timeout = server_timeout_ms;
        options.tries = server_tries;
        options.lookups = lookups;
        options.sock_state_cb = [](void* self, ares_socket_t fd, int reads, int writes) {
            static_cast<dns_query*>(self)->on_socket(fd, reads != 0, writes != 0);
        };
        options.sock_state_cb_data = this;
        const int chosen =
            ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
        if (ares_init_options(&channel_, &options, chosen) != ARES_SUCCESS) {
            channel_ = nullptr;
            return false;
        }
        return servers.empty() ||
               ares_set_servers_ports_csv(channel_, servers.c_str()) == ARES_SUCCESS;
    }

    void ask(const std::string& host) {
        for (const int family : {AF_INET, AF_INET6}) {
            ares_addrinfo_hints hints{};
            hints.ai_flags = ARES_AI_NOSORT;  // they are sorted when all are there
            hints.ai_family = family;
            hints.ai_socktype = SOCK_STREAM;
            ares_getaddrinfo(
                channel_, host.c_str(), nullptr, &hints,
                [](void* self, int status, int, ares_addrinfo* found) {
                    static_cast<dns_query*>(self)->on_answer(status, found);
                },
                this);
        }
        try {
            watchers_.spawn(keep_time(*this));
        } catch (const std::bad_alloc&) {
            finish(errno_code(ENOMEM));
        }
    }

    void finish(std::error_code error) noexcept {
        answered_ = true;
        error_ = error;
        watchers_.cancel();
    }

    // Callbacks of c-ares must not throw: it is written in C.
    void on_answer(int status, ares_addrinfo* found) noexcept try {
        const std::unique_ptr<ares_addrinfo, decltype(&ares_freeaddrinfo)> owner(
            found, &ares_freeaddrinfo);
        if (answered_) return;
        --unanswered_;
        if (status == ARES_SUCCESS && found)
            keep(*found);
        else
            note_failure(error_of_status(status));
        if (unanswered_ == 0) return finish(routes_.empty() ? error_ : std::error_code());
        if (!routes_.empty()) watchers_.spawn(wait_shortly(*this));
    } catch (const std::bad_alloc&) {
        finish(errno_code(ENOMEM));
    }

    void keep(const ares_addrinfo& found) {
        const std::string_view name = found.name ? found.name : "";
        // With a search list a family may be found under a later domain than the other one, which
        // is another host.
        if (!routes_.empty() && !same_name(name, found_name_)) return;
        found_name_ = name;
        std::size_t count = 0;
        for (const ares_addrinfo_node* node = found.nodes; node && count < resolver::max_addresses;
             node = node->ai_next, ++count) {
            endpoint one(node->ai_addr, node->ai_addrlen);
            one.set_port(port_);
            routes_.push_back({one});
        }
    }

    static bool same_name(std::string_view a, std::string_view b) noexcept {
        return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
    }

    /// A family that does not exist says nothing of the other one; a failure may have hidden it.
    void note_failure(std::error_code error) noexcept {
        if (!error_ || error_ == errc::name_not_found) error_ = error;
    }

    /// All that were found, in the order in which they should be tried.
    std::vector<endpoint> addresses() {
        find_sources(routes_);
        order_routes(routes_);
        if (routes_.size() > resolver::max_addresses) routes_.resize(resolver::max_addresses);
        std::vector<endpoint> found;
        found.reserve(routes_.size());
        for (const address_route& route : routes_) found.push_back(route.to);
        return found;
    }

    /// c-ares names the readiness that it waits for; neither means that it closes the socket.
    void on_socket(int fd, bool reads, bool writes) noexcept try {
        watched_socket* socket = nullptr;
        for (const auto& one : sockets_)
            if (one->fd == fd && !one->open.requested()) socket = one.get();
        if (!socket) {
            if (!reads && !writes) return;
            sockets_.push_back(std::make_unique<watched_socket>(fd, watchers_.source()));
            socket = sockets_.back().get();
        }
        socket->reads = reads;
        socket->writes = writes;
        if (!reads && !writes) socket->open.request();
        for (const readiness kind : {readiness::readable, readiness::writable})
            if (socket->wants(kind) && !std::exchange(socket->watched(kind), true))
                watchers_.spawn(watch(*this, *socket, kind).under(socket->open));
    } catch (const std::bad_alloc&) {
        finish(errno_code(ENOMEM));
    }

    static task<void> watch(dns_query& query, watched_socket& socket, readiness kind) {
        const bool reads = kind == readiness::readable;
        while (socket.wants(kind)) {
            result<> ready;
            if (reads)
                ready = co_await loop::current().wait_readable(socket.fd);
            else
                ready = co_await loop::current().wait_writable(socket.fd);
            if (!ready) break;
            ares_process_fd(query.channel_, reads ? socket.fd : ARES_SOCKET_BAD,
                            reads ? ARES_SOCKET_BAD : socket.fd);
        }
        socket.watched(kind) = false;
    }

    static task<void> keep_time(dns_query& query) {
        while (!query.answered_) {
            timeval room;
            const timeval* left = ares_timeout(query.channel_, nullptr, &room);
            if (!left) break;
            const duration time =
                std::chrono::seconds(left->tv_sec) + std::chrono::microseconds(left->tv_usec);
            if (!co_await loop::current().sleep_for(time)) break;
            ares_process_fd(query.channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
        }
    }

    /// One family is there, the other one is late or will never come.
    static task<void> wait_shortly(dns_query& query) {
        if (co_await loop::current().sleep_for(resolver::resolution_delay)) query.finish({});
    }

    scope watchers_;
    std::vector<std::unique_ptr<watched_socket>> sockets_;
    ares_channel channel_ = nullptr;
    std::vector<address_route> routes_;
    std::string found_name_;  // of those
    std::error_code error_;   // what the lookup ends with, if nothing is found
    int unanswered_ = 2;      // families
    std::uint16_t port_;
    bool answered_ = false;
};

}  // namespace

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

task<result<std::vector<endpoint>>> resolver::impl::resolve(std::string host, std::uint16_t port) {
    // endpoint::ip() would take these for the wildcard.
    if (host.empty() || host == "*") co_return fail(errc::bad_address);
    if (const auto numeric = endpoint::ip(host, port)) co_return std::vector<endpoint>(1, *numeric);
    if (!is_host_name(host)) co_return fail(errc::bad_address);

    std::vector<endpoint> known;
    if (is_localhost(host)) {
        for (const char* loopback : {"::1", "127.0.0.1"})
            known.push_back(*endpoint::ip(loopback, port));
    } else {
        known = hosts_.find(host.ends_with('.') ? std::string_view(host).substr(0, host.size() - 1)
                                                : std::string_view(host));
        if (known.size() > max_addresses) known.resize(max_addresses);
        for (endpoint& one : known) one.set_port(port);
    }
    if (!known.empty()) co_return known;
    if (loop::current().kind() == io_backend_kind::sim) co_return fail(errc::name_not_found);

    auto slot = co_await awaiting<slot_operation>(*this);
    if (!slot) co_return fail(slot.error());
    const slot_release ended(*this);
    co_return co_await dns_query::run(std::move(host), port, options_.servers);
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

std::size_t resolver::running() const noexcept { return impl_->running(); }
std::size_t resolver::waiting() const noexcept { return impl_->waiting(); }

}  // namespace eddy
