// Allocations of operations on a warm TLS connection: none of our own; OpenSSL's are counted apart.
// In programs without sanitizers.
#include "base/counted_memory.hpp"
#include "tls/testing.hpp"

#include <openssl/crypto.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#if EDDY_COUNTS_ALLOCATIONS

namespace eddy::tls {
namespace {

thread_local constinit std::uint64_t of_openssl = 0;

void* openssl_malloc(std::size_t size, const char*, int) {
    ++of_openssl;
    return __libc_malloc(size);
}
void* openssl_realloc(void* memory, std::size_t size, const char*, int) {
    ++of_openssl;
    return __libc_realloc(memory, size);
}
void openssl_free(void* memory, const char*, int) { std::free(memory); }

// It takes them only before it has allocated anything.
const bool counts_apart =
    CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) == 1;

class tls_allocation_io : public with_secure_pairs {};
INSTANTIATE_TEST_SUITE_P(tls, tls_allocation_io,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         testing::io_backend_name);

task<> echo_bytes(stream& peer) {
    while (auto received = co_await peer.read())
        if (!co_await peer.write_all(received->bytes())) co_return;
}

TEST_P(tls_allocation_io, a_warm_connection_allocates_nothing_but_what_openssl_does) {
    ASSERT_TRUE(counts_apart) << "OpenSSL allocated before";
    run([this]() -> task<> {
        testing::connection ends = co_await secure();
        co_await with_scope([&](scope& tasks) -> task<> {
            tasks.spawn(echo_bytes(ends.server));
            constexpr int rounds = 1000;
            std::array<std::byte, 5'000> bytes{};
            std::uint64_t before = 0;
            std::uint64_t before_openssl = 0;
            for (int i = 0; i < 100 + rounds; ++i) {
                if (i == 100) {
                    before = testing::allocations();
                    before_openssl = of_openssl;
                }
                testing::must(co_await ends.client.write_all(const_bytes(bytes)));
                testing::must(co_await ends.client.read_exactly(bytes));
            }
            EXPECT_EQ(testing::allocations() - before, 0u);
            const std::uint64_t spent = of_openssl - before_openssl;
            RecordProperty("openssl_allocations_a_round", std::to_string(spent / rounds));
            std::printf("OpenSSL allocated %llu times in %d rounds of four operations\n",
                        static_cast<unsigned long long>(spent), rounds);
        });
    });
}

}  // namespace
}  // namespace eddy::tls
#endif  // EDDY_COUNTS_ALLOCATIONS
