// Reading of PROXY protocol headers, and streams with the addresses of one.
#include "serving/proxy_header.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/frame_pool.hpp>
#include <eddy/io/timeout.hpp>

#include "net/network.hpp"
#include "wire/proxy_protocol/parser.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace eddy::serving {
namespace {

using proxy_protocol::addresses;
using proxy_protocol::ip_address;

/// Driver of a stream with other addresses. Operations are passed on to the driver below and never
/// return to it, so it ends with its handle.
class readdressed_stream final : public stream_driver {
public:
    readdressed_stream(stream below, const endpoint& local, const endpoint& peer) noexcept
        : below_(std::move(below)), local_(local), peer_(peer) {
        EDDY_ASSERT(below_);
    }
    static void* operator new(std::size_t size) { return frame_allocate(size); }
    static void operator delete(void* block, std::size_t size) noexcept { frame_free(block, size); }

    bool start(read_operation& op) override {
        op.pass_to(below());
        return below().start(op);
    }
    bool start(write_operation& op) override {
        op.pass_to(below());
        return below().start(op);
    }
    result<std::size_t> try_write(const_bytes bytes) noexcept override {
        return below().try_write(bytes);
    }
    result<std::size_t> try_send_file(const_bytes head, int file, std::uint64_t offset,
                                      std::size_t size) noexcept override {
        return below().try_send_file(head, file, offset, size);
    }
    void cancel(read_operation& op) noexcept override { below().cancel(op); }
    void cancel(write_operation& op) noexcept override { below().cancel(op); }
    result<> shutdown_write() noexcept override { return below_.shutdown_write(); }
    endpoint local() const noexcept override { return local_; }
    endpoint peer() const noexcept override { return peer_; }
    bool may_have_input() const noexcept override { return below_.may_have_input(); }
    int native_handle() const noexcept override { return below_.native_handle(); }
    int option_handle() const noexcept override { return below().option_handle(); }
    void close() noexcept override {
        below_.close();
        delete this;
    }
    void abort() noexcept override {
        below_.abort();
        delete this;
    }

private:
    ~readdressed_stream() = default;
    stream_driver& below() const noexcept { return below_.driver(); }

    stream below_;
    const endpoint local_;
    const endpoint peer_;
};

endpoint to_endpoint(const ip_address& of) noexcept {
    if (of.is_v6) {
        sockaddr_in6 v6{};
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(of.port);
        std::memcpy(&v6.sin6_addr, of.bytes.data(), sizeof(v6.sin6_addr));
        return {reinterpret_cast<const sockaddr*>(&v6), sizeof(v6)};
    }
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(of.port);
    std::memcpy(&v4.sin_addr, of.bytes.data(), sizeof(v4.sin_addr));
    return {reinterpret_cast<const sockaddr*>(&v4), sizeof(v4)};
}

std::optional<ip_address> to_ip_address(const endpoint& of) noexcept {
    ip_address made;
    made.port = of.port();
    if (of.family() == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, of.data(), sizeof(v6));
        made.is_v6 = true;
        std::memcpy(made.bytes.data(), &v6.sin6_addr, sizeof(v6.sin6_addr));
        return made;
    }
    if (of.family() != AF_INET) return std::nullopt;
    sockaddr_in v4{};
    std::memcpy(&v4, of.data(), sizeof(v4));
    std::memcpy(made.bytes.data(), &v4.sin_addr, sizeof(v4.sin_addr));
    return made;
}

/// IPv4 as the IPv6 address that it is mapped to.
void map_to_v6(ip_address& of) noexcept {
    if (of.is_v6) return;
    constexpr std::size_t prefix = 12;
    std::memcpy(of.bytes.data() + prefix, of.bytes.data(), sizeof(in_addr));
    std::fill_n(of.bytes.data(), prefix, std::uint8_t{0});
    of.bytes[prefix - 2] = of.bytes[prefix - 1] = 0xff;
    of.is_v6 = true;
}

task<result<announced_connection>> read_header(stream accepted) {
    proxy_protocol::parser header;
    std::array<std::byte, 256> piece;
    while (!header.is_complete()) {
        const auto size = co_await accepted.read_some(
            mutable_bytes(piece).first(std::min(piece.size(), header.wanted())));
        if (!size) {
            const bool is_end =
                size.error() == errc::end_of_stream || size.error() == errno_code(ECONNRESET);
            if (!is_end) co_return fail(size.error());
            co_return fail(header.has_begun() ? errc::truncated : errc::end_of_stream);
        }
        const auto taken = header.feed(as_text(const_bytes(piece).first(*size)));
        if (!taken) co_return fail(taken.error());
        // Bytes behind the header stay in the connection.
        EDDY_ASSERT(*taken == *size);
    }
    announced_connection made;
    if (!header.found()) {
        made.its = std::move(accepted);
        co_return made;
    }
    auto values = proxy_protocol::read_client_values(header.tlvs());
    if (values != proxy_protocol::client_values())
        made.values = std::make_unique<const proxy_protocol::client_values>(std::move(values));
    made.its = stream(*new readdressed_stream(std::move(accepted),
                                              to_endpoint(header.found()->destination),
                                              to_endpoint(header.found()->source)));
    co_return made;
}

}  // namespace

task<result<announced_connection>> take_proxy_header(stream accepted, duration timeout) {
    return with_timeout(timeout, read_header(std::move(accepted)));
}

std::optional<addresses> addresses_between(const endpoint& source,
                                           const endpoint& destination) noexcept {
    auto from = to_ip_address(unmapped(source));
    auto to = to_ip_address(unmapped(destination));
    if (!from || !to) return std::nullopt;
    if (from->is_v6 != to->is_v6) {
        map_to_v6(*from);
        map_to_v6(*to);
    }
    EDDY_ASSERT(from->is_v6 == to->is_v6);
    return addresses{*from, *to};
}

}  // namespace eddy::serving
