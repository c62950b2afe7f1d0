// Streams over shared memory in a loop: listening, connecting, handshakes.
#include <eddy/shm/shm.hpp>

#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/descriptors.hpp>
#include <eddy/net/unix.hpp>

#include "net/peer_process.hpp"
#include "shm/hello.hpp"
#include "shm/shm_listener.hpp"
#include "shm/shm_stream.hpp"

#include <cerrno>
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

result<listener> listen(std::string_view path, const listen_options& wanted) try {
    if (auto usable = check(wanted); !usable) return fail(usable.error());
    if (loop::current().kind() == io_backend_kind::sim) return fail(errc::unsupported);
    eddy::listen_options below;
    if (!path.starts_with('@')) below.unix_mode = wanted.mode;
    auto plain = unix_socket::listen(path, below);
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
    auto plain = co_await unix_socket::connect(std::move(path));
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
