// HELLO: encoding, and exchanges with peers of every kind.
#include "shm/hello.hpp"

#include <eddy/base/random.hpp>
#include <eddy/net/descriptors.hpp>

#include "io/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::shm {
namespace {

using testing::error_of;
using testing::must;

struct sockets {
    unique_fd first;
    unique_fd second;
};

sockets connected() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        throw std::runtime_error("socketpair");
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

hello usual() {
    hello made;
    made.features = EDDY_SHM_FEATURE_MEMORY;
    made.ring_size = EDDY_SHM_MIN_RING;
    return made;
}

/// The outcome of an exchange with a peer that sends this.
std::error_code outcome_of(std::string_view bytes, int descriptor) {
    const sockets pair = connected();
    exchange own(side::server, pair.first.get(), {});
    if (descriptor >= 0)
        must(unix_socket::send_descriptor(pair.second.get(), bytes, descriptor));
    else if (!bytes.empty())
        EXPECT_EQ(::send(pair.second.get(), bytes.data(), bytes.size(), 0),
                  static_cast<ssize_t>(bytes.size()));
    ::shutdown(pair.second.get(), SHUT_WR);
    const auto stepped = own.step();
    if (stepped) {
        EXPECT_EQ(*stepped, exchange::wait::none);
        return {};
    }
    return stepped.error();
}

std::string text_of(const hello& message) {
    const hello_bytes bytes = encode(message);
    return std::string(as_text(bytes));
}

TEST(shm_hello, says_the_same_after_decoding) {
    hello sent = usual();
    sent.features |= EDDY_SHM_FEATURE_ASYMMETRIC;
    sent.position = 0x123456789abcdef0;
    const hello got = must(decode(encode(sent)));
    EXPECT_EQ(got.features, sent.features);
    EXPECT_EQ(got.ring_size, sent.ring_size);
    EXPECT_EQ(got.position, sent.position);
}

// The messages that the Java module's tests check theirs against.
TEST(shm_hello, has_the_bytes_of_the_vectors) {
    std::ifstream file("src/shm/vectors.txt");
    int count = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        std::istringstream words(line);
        std::string verdict;
        std::string digits;
        hello expected;
        words >> verdict >> expected.features >> expected.doorbell >> expected.ring_size >>
            expected.position >> digits;
        hello_bytes bytes{};
        ASSERT_EQ(digits.size(), 2 * bytes.size()) << line;
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] =
                static_cast<std::byte>(std::strtoul(digits.substr(2 * i, 2).c_str(), nullptr, 16));
        ++count;
        const auto got = decode(bytes);
        if (verdict != "ok") {
            EXPECT_EQ(error_of(got), verdict == "malformed" ? errc::malformed : errc::unsupported)
                << line;
            continue;
        }
        ASSERT_TRUE(got) << line;
        EXPECT_EQ(got->features, expected.features) << line;
        EXPECT_EQ(got->doorbell, expected.doorbell) << line;
        EXPECT_EQ(got->ring_size, expected.ring_size) << line;
        EXPECT_EQ(got->position, expected.position) << line;
        EXPECT_EQ(encode(*got), bytes) << line;
    }
    EXPECT_GE(count, 8);
}

TEST(shm_hello, survives_random_bytes) {
    random_generator dice(testing::seed_of_this_run());
    for (int i = 0; i < 20'000; ++i) {
        hello_bytes bytes = encode(usual());
        const std::size_t changes = 1 + dice.below(4);
        for (std::size_t c = 0; c < changes; ++c)
            bytes[dice.below(bytes.size())] = static_cast<std::byte>(dice.below(256));
        const auto got = decode(bytes);
        if (got && got->has(EDDY_SHM_FEATURE_MEMORY)) EXPECT_TRUE(is_ring_size(got->ring_size));
    }
}

// The answering side may use its channel before the other one has taken its own.
TEST(shm_hello, positions_are_in_the_memory_before_the_peer_needs_them) {
    const sockets pair = connected();
    constexpr std::uint64_t begin = std::uint64_t{1} << 32;
    exchange first(side::client, pair.first.get(),
                   {.ring_size = EDDY_SHM_MIN_RING, .position = begin - 10});
    exchange second(side::server, pair.second.get(),
                    {.ring_size = EDDY_SHM_MIN_RING, .position = begin - 20});
    EXPECT_EQ(must(first.step()), exchange::wait::readable);
    EXPECT_EQ(must(second.step()), exchange::wait::none);
    const auto early = second.take_channel();
    EXPECT_TRUE(must(early->bytes()).empty());
    bool wakes = false;
    const std::vector<std::byte> sent(EDDY_SHM_MIN_RING + 1, std::byte{7});
    EXPECT_EQ(must(early->write(sent, wakes)), EDDY_SHM_MIN_RING);
    EXPECT_EQ(must(early->write(sent, wakes)), 0U);
    EXPECT_EQ(must(first.step()), exchange::wait::none);
    const auto late = first.take_channel();
    EXPECT_EQ(must(late->bytes()).size(), EDDY_SHM_MIN_RING);
    EXPECT_FALSE(late->consume(EDDY_SHM_MIN_RING));
    EXPECT_EQ(must(early->write(sent, wakes)), EDDY_SHM_MIN_RING);
}

TEST(shm_hello, connects_two_sides) {
    const sockets pair = connected();
    exchange first(side::client, pair.first.get(), {.position = 11});
    exchange second(side::server, pair.second.get(),
                    {.ring_size = EDDY_SHM_MIN_RING, .position = 22});
    EXPECT_EQ(must(first.step()), exchange::wait::readable);
    EXPECT_EQ(must(second.step()), exchange::wait::none);
    EXPECT_EQ(must(first.step()), exchange::wait::none);
    const auto a = first.take_channel();
    const auto b = second.take_channel();
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->own_ring_size(), b->peer_ring_size());
    EXPECT_EQ(b->own_ring_size(), a->peer_ring_size());
    bool wakes = false;
    EXPECT_EQ(must(a->write(as_bytes("to the second"), wakes)), 13u);
    EXPECT_EQ(as_text(must(b->bytes())), "to the second");
    EXPECT_EQ(must(b->write(as_bytes("to the first"), wakes)), 12u);
    EXPECT_EQ(as_text(must(a->bytes())), "to the first");
    EXPECT_FALSE(wakes);
}

TEST(shm_hello, leaves_the_socket_to_a_peer_without_memory) {
    const sockets pair = connected();
    exchange first(side::client, pair.first.get(), {});
    exchange second(side::server, pair.second.get(), {.shares_memory = false});
    EXPECT_EQ(must(first.step()), exchange::wait::readable);
    EXPECT_EQ(must(second.step()), exchange::wait::none);
    EXPECT_EQ(must(first.step()), exchange::wait::none);
    EXPECT_FALSE(first.take_channel());
    EXPECT_FALSE(second.take_channel());
}

/// Both ends, after their exchange in a process that may map so many memories more.
std::pair<std::unique_ptr<channel>, std::unique_ptr<channel>> channels_with(std::size_t memories) {
    const sockets pair = connected();
    limit_memories(memories);
    exchange client(side::client, pair.first.get(), {});
    exchange server(side::server, pair.second.get(), {});
    EXPECT_EQ(must(client.step()), exchange::wait::readable);
    EXPECT_EQ(must(server.step()), exchange::wait::none);
    const auto last = client.step();
    limit_memories(SIZE_MAX);
    if (!last) {
        EXPECT_EQ(last.error(), errno_code(ENOMEM));
        return {nullptr, server.take_channel()};
    }
    return {client.take_channel(), server.take_channel()};
}

TEST(shm_hello, leaves_the_socket_to_sides_that_can_map_no_memory) {
    // The client's own; the server's of it, and its own.
    for (std::size_t memories = 0; memories < 3; ++memories) {
        const auto [client, server] = channels_with(memories);
        EXPECT_FALSE(client || server) << memories;
    }
    const auto [no_client, alone] = channels_with(3);
    EXPECT_FALSE(no_client) << "it is refused";
    EXPECT_TRUE(alone) << "it sees that the client goes";
    const auto [client, server] = channels_with(6);
    EXPECT_TRUE(client && server);
    EXPECT_GT(most_memories(), 1000u);
}

/// The child of the next test: an unprivileged server, of whose descriptors as many are in flight
/// as may be.
int serve_with_too_many_in_flight() {
    constexpr rlim_t limit = 32;
    const rlimit few{limit, limit};
    const sockets pair = connected();
    const sockets full = connected();
    exchange client(side::client, pair.first.get(), {});
    if (must(client.step()) != exchange::wait::readable) return 1;
    // A user of its own: descriptors in flight are counted for all processes of a user.
    const uid_t user = 1'000'000 + static_cast<uid_t>(getpid());
    if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) return 2;
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 3;
    std::error_code seen;
    for (rlim_t i = 0; i < 2 * limit && !seen; ++i)
        seen = error_of(unix_socket::send_descriptor(full.first.get(), "x", full.first.get()));
    if (seen != errno_code(ETOOMANYREFS)) return 4;
    exchange server(side::server, pair.second.get(), {});
    if (must(server.step()) != exchange::wait::none) return 5;
    if (must(client.step()) != exchange::wait::none) return 6;
    return client.take_channel() || server.take_channel() ? 7 : 0;
}

TEST(shm_hello, leaves_the_socket_where_too_many_descriptors_are_in_flight) {
    if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(serve_with_too_many_in_flight());
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

/// While it lives, this process gets no further descriptor.
class no_descriptors {
public:
    no_descriptors() {
        EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
        const rlimit none{0, before_.rlim_max};
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    no_descriptors(const no_descriptors&) = delete;
    no_descriptors& operator=(const no_descriptors&) = delete;
    ~no_descriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

private:
    rlimit before_{};
};

TEST(shm_hello, fails_in_a_client_without_a_descriptor_for_the_servers_memory) {
    const auto count = [] {
        using files = std::filesystem::directory_iterator;
        return std::distance(files("/proc/self/fd"), files());
    };
    const auto before = count();
    {
        const sockets pair = connected();
        exchange client(side::client, pair.first.get(), {});
        exchange server(side::server, pair.second.get(), {});
        EXPECT_EQ(must(client.step()), exchange::wait::readable);
        EXPECT_EQ(must(server.step()), exchange::wait::none);
        {
            const no_descriptors shortage;
            EXPECT_EQ(error_of(client.step()), errno_code(EMFILE));
        }
        EXPECT_FALSE(client.take_channel());
        EXPECT_TRUE(server.take_channel()) << "it sees that the client goes";
    }
    EXPECT_EQ(count(), before);
}

TEST(shm_hello, costs_a_server_no_memory_before_the_peers_message) {
    const sockets pair = connected();
    exchange server(side::server, pair.first.get(), {});
    limit_memories(0);
    EXPECT_EQ(must(server.step()), exchange::wait::readable);
    limit_memories(SIZE_MAX);
    exchange client(side::client, pair.second.get(), {});
    EXPECT_EQ(must(client.step()), exchange::wait::readable);
    EXPECT_EQ(must(server.step()), exchange::wait::none);
    EXPECT_EQ(must(client.step()), exchange::wait::none);
    EXPECT_TRUE(client.take_channel());
    EXPECT_TRUE(server.take_channel());
}

TEST(shm_hello, refuses_bad_peers) {
    unique_fd file;
    const memory own = must(memory::create(EDDY_SHM_MIN_RING, file));
    EXPECT_EQ(outcome_of(text_of(usual()), file.get()), std::error_code());
    EXPECT_EQ(outcome_of("", -1), errc::truncated);
    EXPECT_EQ(outcome_of(text_of(usual()).substr(0, 31), file.get()), errc::truncated);
    EXPECT_EQ(outcome_of("GET / HTTP/1.1\r\nHost: example\r\n\r\n", -1), errc::malformed);
    EXPECT_EQ(outcome_of(text_of(usual()), -1), errc::malformed) << "no memory came";
    hello without = usual();
    without.features = 0;
    EXPECT_EQ(outcome_of(text_of(without), file.get()), errc::malformed) << "memory came";
    hello too_large = usual();
    too_large.ring_size = EDDY_SHM_DEFAULT_RING;
    EXPECT_EQ(outcome_of(text_of(too_large), file.get()), errc::malformed);
    std::string other_version = text_of(usual());
    other_version[EDDY_SHM_HELLO_VERSION] = 2;
    EXPECT_EQ(outcome_of(other_version, file.get()), errc::unsupported);
    const unique_fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(outcome_of(text_of(usual()), null.get()), errc::malformed);
}

TEST(shm_hello, arrives_in_any_pieces) {
    unique_fd file;
    const memory own = must(memory::create(EDDY_SHM_MIN_RING, file));
    const std::string text = text_of(usual());
    const sockets pair = connected();
    exchange waiting(side::server, pair.first.get(), {});
    must(unix_socket::send_descriptor(pair.second.get(), text.substr(0, 1), file.get()));
    for (std::size_t i = 1; i < text.size(); ++i) {
        EXPECT_EQ(must(waiting.step()), exchange::wait::readable);
        EXPECT_EQ(::send(pair.second.get(), &text[i], 1, 0), 1);
    }
    EXPECT_EQ(must(waiting.step()), exchange::wait::none);
    EXPECT_TRUE(waiting.take_channel());
}

}  // namespace
}  // namespace eddy::shm
