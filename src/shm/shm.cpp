// Streams over shared memory in a loop: listening, connecting, handshakes.
#include <eddy/shm/shm.hpp>

#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/descriptors.hpp>
#include <eddy/net/unix.hpp>

#include "net/peer_process.hpp"
#include "shm/hello.hpp"
#include "shm/port_names.hpp"
#include "shm/shm_listener.hpp"
#include "shm/shm_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace eddy::shm {
namespace {

result<> check(const options& wanted) noexcept {
    if (!is_ring_size(wanted.ring_size) || !is_first_position(wanted.first_position))
        return fail_errno(EINVAL);
    return {};
}

offer offer_of(const options& wanted) noexcept {
    offer made;
    made.ring_size = wanted.ring_size;
    made.position = wanted.first_position;
    made.shares_memory = wanted.share_memory;
    made.is_asymmetric = wanted.asymmetric_fence;
    return made;
}

/// Drives an exchange, with its waits.
task<result<>> go_on(exchange& with, int socket) {
    loop& here = loop::current();
    for (;;) {
        const auto next = with.step();
        if (!next) co_return fail(next.error());
        if (*next == exchange::wait::none) co_return {};
        result<> waited;
        if (*next == exchange::wait::readable)
            waited = co_await here.wait_readable(socket);
        else
            waited = co_await here.wait_writable(socket);
        if (!waited) co_return fail(waited.error());
    }
}

constexpr duration first_pause = std::chrono::milliseconds(1);
constexpr duration longest_pause = std::chrono::milliseconds(50);

/// Connects to a listener whose backlog is full: no event reports room in it, so this tries again.
task<result<stream>> connect_to_full(std::string path) {
    for (duration pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
        if (auto slept = co_await loop::current().sleep_for(pause); !slept)
            co_return fail(slept.error());
        auto plain = co_await unix_socket::connect(path);
        if (plain || plain.error() != errno_code(EAGAIN)) co_return plain;
    }
}

/// `users` are the allowed users of the peer.
task<result<stream>> shake_hands(stream plain, side own, std::vector<uid_t> users,
                                 options wanted) try {
    if (auto usable = check(wanted); !usable) co_return fail(usable.error());
    const int socket = plain.native_handle();
    if (socket < 0 || !plain.local().is_unix()) co_return fail(errc::unsupported);
    if (!unix_socket::has_allowed_peer(socket, users)) {
        unix_socket::refuse_descriptors(socket);
        co_return fail_errno(EACCES);
    }
    exchange with(own, socket, offer_of(wanted));
    const auto done = co_await with_timeout(wanted.handshake_timeout, go_on(with, socket));
    if (!done) {
        // Also at the deadline, after which the exchange makes no step.
        unix_socket::refuse_descriptors(socket);
        co_return fail(done.error());
    }
    auto shared = with.take_channel();
    if (!shared) co_return plain;
    auto* const driver = new shm_stream(std::move(plain), std::move(shared));
    stream made(*driver);
    driver->begin();
    co_return made;
} catch (const std::bad_alloc&) {
    co_return fail_errno(ENOMEM);
}

}  // namespace

std::uint16_t port_of(std::string_view path) noexcept {
    constexpr std::string_view begin = "@" EDDY_SHM_PORT_NAME;
    const std::size_t end = path.rfind('-');
    if (!path.starts_with(begin) || end < begin.size() || end == std::string_view::npos) return 0;
    std::uint16_t port = 0;
    std::from_chars(path.data() + end + 1, path.data() + path.size(), port);
    return port;
}

result<listener> listen_plain(std::string_view path, const eddy::listen_options& wanted) {
    random_generator dice(entropy_seed());
    return open_at(path, dice(),
                   [&](const std::string& at) { return unix_socket::listen(at, wanted); });
}

result<listener> listen(std::string_view path, const listen_options& wanted) try {
    if (auto usable = check(wanted); !usable) return fail(usable.error());
    if (loop::current().kind() == io_backend_kind::sim) return fail(errc::unsupported);
    eddy::listen_options below;
    if (has_file(path)) below.unix_mode = wanted.mode;
    auto plain = listen_plain(path, below);
    if (!plain) return fail(plain.error());
    auto* const driver = new shm_listener(std::move(*plain), wanted);
    listener made(*driver);
    static_cast<void>(driver->begin_accepting());
    return made;
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

std::uint64_t failed_handshakes(const listener& of) noexcept {
    const auto* const driver = dynamic_cast<const shm_listener*>(&of.driver());
    return driver ? driver->failures() : 0;
}

task<result<stream>> connect(std::string path, options wanted) {
    if (loop::current().kind() == io_backend_kind::sim) co_return fail(errc::unsupported);
    auto paths = paths_of(path, wanted.server_users);
    if (!paths) co_return fail(paths.error());
    result<stream> plain = fail_errno(ECONNREFUSED);
    for (std::size_t i = 0; i < paths->size() && !plain && is_no_server(plain.error()); ++i) {
        std::string at = std::move((*paths)[i]);
        plain = co_await unix_socket::connect(at);
        if (plain || plain.error() != errno_code(EAGAIN)) continue;
        const time_point begun = loop::current().now();
        plain = co_await with_timeout(wanted.handshake_timeout, connect_to_full(std::move(at)));
        wanted.handshake_timeout -= loop::current().now() - begun;
    }
    if (!plain) co_return fail(plain.error());
    std::vector<uid_t> users = wanted.server_users;
    co_return co_await shake_hands(std::move(*plain), side::client, std::move(users),
                                   std::move(wanted));
}

task<result<stream>> accept_over(stream plain, listen_options wanted) {
    std::vector<uid_t> users = std::move(wanted.allowed_users);
    options both = std::move(wanted);
    co_return co_await shake_hands(std::move(plain), side::server, std::move(users),
                                   std::move(both));
}

result<const_bytes> peek(const stream& of) noexcept {
    auto* const driver = dynamic_cast<shm_stream*>(&of.driver());
    if (!driver) return fail(errc::unsupported);
    return driver->peek();
}

void consume(const stream& of, std::size_t size) noexcept {
    auto* const driver = dynamic_cast<shm_stream*>(&of.driver());
    EDDY_PRECONDITION(driver, "shm::consume() of a stream that is not over shared memory");
    driver->consume(size);
}

}  // namespace eddy::shm
