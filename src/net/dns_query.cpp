// Queries of c-ares, whose sockets and clock coroutines of the loop watch.
#include "net/dns_query.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

// ares_query() is deprecated since 1.28; its successor does not exist in 1.18.
#define CARES_NO_DEPRECATED
#include <ares.h>
#include <netdb.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

namespace eddy {
namespace {

/// A name server that has not answered for so long is queried again, or the next one is; c-ares
/// doubles the time with each round.
constexpr int server_timeout_ms = 2000;
constexpr int server_tries = 3;

// RFC 1035, 3.2.2 and 3.2.4; RFC 2782.
constexpr int class_internet = 1;
constexpr int type_alias = 5;
constexpr int type_service = 33;

/// RFC 2181, section 8: a TTL with the highest bit set counts as 0.
duration time_of_ttl(std::int64_t seconds) noexcept {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    return std::chrono::seconds(seconds < 0 || seconds > most ? 0 : seconds);
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

/// A c-ares channel, and the coroutines that watch its sockets and its clock.
class dns_channel {
public:
    dns_channel(const dns_channel&) = delete;
    dns_channel& operator=(const dns_channel&) = delete;

protected:
    explicit dns_channel(cancel_source* parent) noexcept : watchers_(parent) {}
    ~dns_channel() {
        if (channel_) ares_destroy(channel_);
    }

    bool open(const std::string& servers) {
        static std::once_flag once;
        std::call_once(once, [] { ares_library_init(ARES_LIB_INIT_ALL); });
        char lookups[] = "b";  // only DNS: the hosts file has been read before
        ares_options options{};
        options.timeout = server_timeout_ms;
        options.tries = server_tries;
        options.lookups = lookups;
        options.sock_state_cb = [](void* self, ares_socket_t fd, int reads, int writes) {
            static_cast<dns_channel*>(self)->on_socket(fd, reads != 0, writes != 0);
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

    /// Clock of the queries: they time out from now on.
    void watch_clock() noexcept {
        try {
            watchers_.spawn(keep_time(*this));
        } catch (const std::bad_alloc&) {
            finish(errno_code(ENOMEM));
        }
    }
    /// Ends when the query is answered, or cancelled from outside.
    joining end() noexcept { return watchers_.join(); }

    void finish(std::error_code error) noexcept {
        answered_ = true;
        error_ = error;
        watchers_.cancel();
    }

    scope watchers_;
    ares_channel channel_ = nullptr;
    std::error_code error_;  // what the query ends with, if nothing is found
    bool answered_ = false;

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

    static task<void> watch(dns_channel& query, watched_socket& socket, readiness kind) {
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

    static task<void> keep_time(dns_channel& query) {
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

    std::vector<std::unique_ptr<watched_socket>> sockets_;
};

/// Queries for both families. They are sent apart, since one may stay unanswered: c-ares keeps what
/// it has of a query for both until it has given the other one up.
class address_query final : dns_channel {
public:
    address_query(cancel_source* parent, std::size_t limit, duration delay) noexcept
        : dns_channel(parent), limit_(limit), delay_(delay) {}

    static task<result<dns_addresses>> run(std::string host, std::string servers, std::size_t limit,
                                           duration delay) {
        address_query query(co_await current_source(), limit, delay);
        if (!query.open(servers)) co_return fail(errc::resolver_failed);
        query.ask(host);
        co_await query.end();
        // Cancelled from outside: c-ares still waits for an answer, which is of no use any more.
        // One that has come is an answer all the same, if the time was over while the other was
        // late.
        if (!query.answered_ && query.found_.routes.empty()) co_return fail(errc::cancelled);
        if (query.error_) co_return fail(query.error_);
        if (query.found_.routes.empty()) co_return fail(errc::name_not_found);
        co_return std::move(query.found_);
    }

private:
    void ask(const std::string& host) {
        for (const int family : {AF_INET, AF_INET6}) {
            ares_addrinfo_hints hints{};
            hints.ai_flags = ARES_AI_NOSORT;  // they are sorted when all are there
            hints.ai_family = family;
            hints.ai_socktype = SOCK_STREAM;
            ares_getaddrinfo(
                channel_, host.c_str(), nullptr, &hints,
                [](void* self, int status, int, ares_addrinfo* found) {
                    static_cast<address_query*>(self)->on_answer(status, found);
                },
                this);
        }
        watch_clock();
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
        if (unanswered_ == 0) return finish(found_.routes.empty() ? error_ : std::error_code());
        if (!found_.routes.empty()) watchers_.spawn(wait_shortly(*this));
    } catch (const std::bad_alloc&) {
        finish(errno_code(ENOMEM));
    }

    void keep(const ares_addrinfo& found) {
        const std::string_view name = found.name ? found.name : "";
        // With a search list a family may be found under a later domain than the other one, which
        // is another host.
        if (!found_.routes.empty() && !same_name(name, found_name_)) return;
        found_name_ = name;
        std::size_t count = 0;
        for (const ares_addrinfo_node* node = found.nodes; node && count < limit_;
             node = node->ai_next, ++count) {
            found_.routes.push_back({endpoint(node->ai_addr, node->ai_addrlen)});
            note_ttl(node->ai_ttl);
        }
        for (const ares_addrinfo_cname* alias = found.cnames; alias; alias = alias->next)
            note_ttl(alias->ttl);
    }

    void note_ttl(int seconds) noexcept {
        const duration time = time_of_ttl(seconds);
        if (!has_ttl_ || time < found_.valid_for) found_.valid_for = time;
        has_ttl_ = true;
    }

    static bool same_name(std::string_view a, std::string_view b) noexcept {
        return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
    }

    /// A family that does not exist says nothing of the other one; a failure may have hidden it.
    void note_failure(std::error_code error) noexcept {
        if (!error_ || error_ == errc::name_not_found) error_ = error;
    }

    /// One family is there, the other one is late or will never come.
    static task<void> wait_shortly(address_query& query) {
        if (co_await loop::current().sleep_for(query.delay_)) query.finish({});
    }

    const std::size_t limit_;
    const duration delay_;
    dns_addresses found_{};
    std::string found_name_;  // of those
    int unanswered_ = 2;      // families
    bool has_ttl_ = false;
};

class service_query final : dns_channel {
public:
    explicit service_query(cancel_source* parent) noexcept : dns_channel(parent) {}

    static task<result<service_records>> run(std::string name, std::string servers) {
        service_query query(co_await current_source());
        if (!query.open(servers)) co_return fail(errc::resolver_failed);
        ares_query(
            query.channel_, name.c_str(), class_internet, type_service,
            [](void* self, int status, int, unsigned char* response, int size) {
                static_cast<service_query*>(self)->on_answer(status, response, size);
            },
            &query);
        query.watch_clock();
        co_await query.end();
        if (!query.answered_) co_return fail(errc::cancelled);
        if (query.error_) co_return fail(query.error_);
        if (query.found_.all.empty()) co_return fail(errc::name_not_found);
        co_return std::move(query.found_);
    }

private:
    void on_answer(int status, const unsigned char* response, int size) noexcept try {
        if (answered_) return;
        if (status != ARES_SUCCESS) return finish(error_of_status(status));
        auto parsed = parse_services(
            {reinterpret_cast<const std::byte*>(response), static_cast<std::size_t>(size)});
        if (!parsed) return finish(errc::resolver_failed);
        found_ = std::move(*parsed);
        finish({});
    } catch (const std::bad_alloc&) {
        finish(errno_code(ENOMEM));
    }

    service_records found_{};
};

/// Reads a response from its beginning to its end.
class response_reader {
public:
    explicit response_reader(const_bytes all) noexcept : all_(all) {}

    bool skip(std::size_t count) noexcept {
        if (count > left()) return false;
        at_ += count;
        return true;
    }
    /// A number of so many bytes, the most significant one first.
    std::optional<std::uint32_t> number(std::size_t size) noexcept {
        if (size > left()) return std::nullopt;
        std::uint32_t value = 0;
        for (; size > 0; --size) value = value << 8U | std::to_integer<std::uint32_t>(all_[at_++]);
        return value;
    }
    /// A name, which may continue at an earlier place (RFC 1035, 4.1.4).
    std::optional<std::string> name() {
        const auto* const begin = reinterpret_cast<const unsigned char*>(all_.data());
        char* text = nullptr;
        long size = 0;
        if (left() == 0 || ares_expand_name(begin + at_, begin, static_cast<int>(all_.size()),
                                            &text, &size) != ARES_SUCCESS)
            return std::nullopt;
        const std::unique_ptr<char, decltype(&free_text)> owner(text, &free_text);
        if (size <= 0 || !skip(static_cast<std::size_t>(size))) return std::nullopt;
        return std::string(text);
    }
    std::size_t at() const noexcept { return at_; }
    std::size_t left() const noexcept { return all_.size() - at_; }

private:
    static void free_text(char* text) noexcept { ares_free_string(text); }

    const const_bytes all_;
    std::size_t at_ = 0;
};

/// The record behind a resource's head; false if it breaks off.
bool read_service(response_reader& from, std::size_t size, service_records& into) {
    const std::size_t end = from.at() + size;
    const auto priority = from.number(2);
    const auto weight = from.number(2);
    const auto port = from.number(2);
    auto host = from.name();
    if (!priority || !weight || !port || !host || from.at() != end) return false;
    if (into.all.size() < resolver::max_services)
        into.all.push_back({std::move(*host), static_cast<std::uint16_t>(*port),
                            static_cast<std::uint16_t>(*priority),
                            static_cast<std::uint16_t>(*weight)});
    return true;
}

}  // namespace

task<result<dns_addresses>> query_addresses(std::string host, std::string servers,
                                            std::size_t limit, duration delay) {
    return address_query::run(std::move(host), std::move(servers), limit, delay);
}

task<result<service_records>> query_services(std::string name, std::string servers) {
    return service_query::run(std::move(name), std::move(servers));
}

result<service_records> parse_services(const_bytes response) {
    response_reader from(response);
    if (!from.skip(4)) return fail(errc::malformed);  // id and flags
    const auto questions = from.number(2);
    const auto answers = from.number(2);
    if (!questions || !answers || !from.skip(4)) return fail(errc::malformed);
    for (std::uint32_t i = 0; i < *questions; ++i)
        if (!from.name() || !from.skip(4)) return fail(errc::malformed);
    service_records found{{}, duration::max()};
    for (std::uint32_t i = 0; i < *answers; ++i) {
        const auto owner = from.name();
        const auto type = from.number(2);
        const auto of_class = from.number(2);
        const auto ttl = from.number(4);
        const auto size = from.number(2);
        if (!owner || !type || !of_class || !ttl || !size || *size > from.left())
            return fail(errc::malformed);
        const bool counts =
            *of_class == class_internet && (*type == type_service || *type == type_alias);
        if (counts) found.valid_for = std::min(found.valid_for, time_of_ttl(*ttl));
        const bool is_read =
            counts && *type == type_service ? read_service(from, *size, found) : from.skip(*size);
        if (!is_read) return fail(errc::malformed);
    }
    if (found.valid_for == duration::max()) found.valid_for = {};
    return found;
}

}  // namespace eddy
