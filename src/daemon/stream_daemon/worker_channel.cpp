// Messages between a stream daemon's supervisor and its workers.
#include "daemon/stream_daemon/worker_channel.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/net/descriptors.hpp>

#include "runtime/stream/worker_share.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstddef>
#include <span>

namespace eddy::daemon {
namespace {

constexpr std::string_view page_word = "page ";

std::optional<std::uint64_t> number_of(std::string_view text, std::uint64_t most) {
    std::uint64_t read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error != std::errc{} || end != text.data() + text.size() || read > most) return {};
    return read;
}

}  // namespace

std::string to_text(worker_identity of) { return fmt::format("{}:{}", of.number, of.parent); }

std::optional<worker_identity> parse_worker_identity(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return {};
    const auto number = number_of(text.substr(0, colon), runtime::stream::max_workers - 1);
    const auto parent = number_of(text.substr(colon + 1), INT_MAX);
    if (!number || !parent) return {};
    return worker_identity{static_cast<std::size_t>(*number), static_cast<int>(*parent)};
}

result<channel_ends> make_worker_channel() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return fail_errno();
    return channel_ends{unique_fd(ends[0]), unique_fd(ends[1])};
}

result<> send_worker_message(int channel, std::string_view message) noexcept {
    // An empty one is the end of a channel to its receiver.
    EDDY_ASSERT(!message.empty());
    for (;;) {
        if (::send(channel, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
            return {};
        if (errno != EINTR) return fail_errno();
    }
}

task<result<std::string>> receive_worker_message(int channel) {
    for (;;) {
        if (auto ready = co_await loop::current().wait_readable(channel); !ready)
            co_return fail(ready.error());
        std::string message(max_worker_message, '\0');
        const auto received = unix_socket::receive_message(
            channel, std::as_writable_bytes(std::span(message.data(), message.size())));
        if (!received) {
            if (received.error() == std::errc::resource_unavailable_try_again) continue;
            co_return fail(received.error());
        }
        if (received->is_cut) co_return fail(errc::limit_reached);
        message.resize(received->size);
        co_return message;
    }
}

std::string page_request(std::uint64_t number) { return fmt::format("{}{}", page_word, number); }

std::optional<numbered_page> parse_page(std::string_view message) {
    if (!message.starts_with(page_word)) return {};
    message.remove_prefix(page_word.size());
    const std::size_t end = message.find('\n');
    const auto number = number_of(message.substr(0, end), UINT64_MAX);
    if (!number) return {};
    numbered_page read{*number, {}};
    if (end != std::string_view::npos) read.page = message.substr(end + 1);
    return read;
}

}  // namespace eddy::daemon
