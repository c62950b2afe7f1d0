// Receiver of handoffs. Most messages have arrived when their connection is accepted: they are
// received at once, without a task. The others get one each, with a deadline.
#include "handoff/receiver.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "base/files/socket_owner.hpp"
#include "io/posix/unix_listener.hpp"
#include "net/peer_process.hpp"
#include "wire/handoff/message_end.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>
#include <utility>

namespace eddy::handoff {

using unix_socket::received_message;
using unix_socket::socket_type;

namespace {

std::string_view as_text(const std::vector<std::byte>& bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Receives a part. A seqpacket socket whose peer has sent and closed may report its end while the
/// message is queued, so an end is read twice.
result<received_message> receive_part(int sender, std::span<std::byte> into) noexcept {
    auto part = unix_socket::receive_message(sender, into);
    if (part && part->size == 0 && !part->descriptor && !part->lost_descriptors)
        part = unix_socket::receive_message(sender, into);
    return part;
}

/// Calls `work`; false when it ended for want of memory.
bool has_memory(auto&& work) noexcept {
    try {
        work();
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

}  // namespace

std::string_view to_string(fault why) noexcept {
    switch (why) {
        case fault::peer_not_allowed: return "peer_not_allowed";
        case fault::no_descriptor: return "no_descriptor";
        case fault::lost_descriptor: return "lost_descriptor";
        case fault::incomplete_message: return "incomplete_message";
        case fault::too_many_senders: return "too_many_senders";
        case fault::receive_failed: return "receive_failed";
        case fault::no_memory: return "no_memory";
    }
    EDDY_ASSERT(false);
}

struct receiver::partial_message {
    std::vector<std::byte> bytes;
    std::size_t size = 0;  // of what has arrived, at most the limit
    unique_fd client;
    message_end end;
    bool has_ended = false;
    bool is_too_large = false;
    bool lost_descriptor = false;
    bool has_failed = false;
};

receiver::~receiver() { EDDY_ASSERT(!listening_.socket); }

result<handoff_socket> listen_for_handoffs(std::string_view path, const receiver_options& options) {
    const auto address = endpoint::unix_path(path);
    if (!address) return fail(address.error());
    listen_options listening;
    if (!is_abstract(*address)) listening.unix_mode = options.mode;
    listening.backlog = sender_backlog;
    const int type = options.type == socket_type::seqpacket ? SOCK_SEQPACKET : SOCK_STREAM;
    auto opened = open_unix_listener(*address, listening, type, true);
    if (!opened) return fail(opened.error());
    if (!is_abstract(*address) && (options.owner || options.group)) {
        const auto given = give_socket(std::string(path), options.owner, options.group);
        if (!given) {
            remove_socket_file(*address, opened->file);
            return fail(given.error());
        }
    }
    return handoff_socket{std::move(*opened), *address};
}

result<> receiver::open(std::string_view path, const receiver_options& options) {
    if (auto listens = listen(path, options); !listens) return listens;
    begin();
    return {};
}

result<> receiver::open(handoff_socket from, const receiver_options& options) {
    if (auto adopted = adopt(std::move(from), options); !adopted) return adopted;
    is_shared_ = true;
    begin();
    return {};
}

result<> receiver::take(handoff_socket from, const receiver_options& options) {
    if (auto adopted = adopt(std::move(from), options); !adopted) return adopted;
    begin();
    return {};
}

task<handoff_socket> receiver::release() {
    EDDY_ASSERT(listening_.socket && accepting_);
    accepting_->cancel();
    co_await accepting_->join();
    accepting_.reset();
    co_return handoff_socket{std::exchange(listening_, {}), local_};
}

void receiver::take_back(handoff_socket from) {
    EDDY_ASSERT(!listening_.socket && !accepting_ && from.local == local_);
    listening_ = std::move(from.socket);
    accepting_.emplace();
    accepting_->spawn(accept_all());
}

task<void> receiver::close() {
    refuse_senders();
    if (accepting_) co_await accept_waiting();
    co_await end();
    close_socket();
}

result<> receiver::listen(std::string_view path, const receiver_options& options) {
    EDDY_ASSERT(!listening_.socket);
    if (loop::current().kind() == io_backend_kind::sim) return fail(errc::unsupported);
    auto opened = listen_for_handoffs(path, options);
    if (!opened) return fail(opened.error());
    return adopt(std::move(*opened), options);
}

result<> receiver::adopt(handoff_socket from, const receiver_options& options) {
    EDDY_ASSERT(!listening_.socket);
    EDDY_ASSERT(options.max_message > 0);
    if (loop::current().kind() == io_backend_kind::sim) return fail(errc::unsupported);
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        const int error = errno;
        remove_socket_file(from.local, from.socket.file);
        return fail_errno(error);
    }
    most_descriptors_ = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
    options_ = options;
    // One byte more than a message may have shows that one has more.
    buffer_.resize(options.max_message + 1);
    listening_ = std::move(from.socket);
    local_ = from.local;
    is_shared_ = false;
    has_user_check_ = !options.allowed_users.empty() || is_abstract(local_);
    return {};
}

void receiver::begin() {
    EDDY_ASSERT(listening_.socket && !tasks_);
    tasks_.emplace();
    accepting_.emplace();
    try {
        accepting_->spawn(accept_all());
    } catch (...) {
        accepting_.reset();
        tasks_.reset();
        throw;
    }
}

task<void> receiver::end() {
    if (accepting_) {
        accepting_->cancel();
        co_await accepting_->join();
        accepting_.reset();
    }
    if (!tasks_) co_return;
    tasks_->cancel();
    co_await tasks_->join();
    tasks_.reset();
}

void receiver::refuse_senders() noexcept {
    if (!listening_.socket) return;
    remove_socket_file(local_, listening_.file);
    // It would end the socket for the other processes that accept from it.
    if (!is_shared_) ::shutdown(listening_.socket.get(), SHUT_RDWR);
}

void receiver::close_socket() noexcept {
    EDDY_ASSERT(!tasks_);
    refuse_senders();
    listening_.socket.reset();
}

task<void> receiver::accept_all() {
    loop& here = loop::current();
    for (;;) {
        if (auto resumed = co_await not_paused_.wait(); !resumed) co_return;
        // The listener is always in non-blocking mode, so accept(2) fails when none waits.
        if (auto ready = co_await here.wait_readable(listening_.socket.get()); !ready) co_return;
        if (sink_.prefers_others())
            if (auto slept = co_await here.sleep_for(yield_pause); !slept) co_return;
        accept_group();
        if (!is_crowded_) continue;
        if (auto slept = co_await here.sleep_for(crowded_pause); !slept) co_return;
    }
}

/// Accepts the senders in the kernel's queue: they have sent their message and may be gone, so
/// their clients would be lost. At most sender_backlog, since further ones are refused.
task<void> receiver::accept_waiting() {
    for (int accepted = 0; accepted < sender_backlog;) {
        const int more = accept_group();
        if (more == 0) co_return;
        accepted += more;
        co_await loop::current().yield();
    }
}

/// Accepts waiting senders, as far as there is room; returns their number.
int receiver::accept_group() {
    const int most = std::clamp(reserve() / 2, 1, burst);
    int accepted = 0;
    is_crowded_ = !has_room();
    while (accepted < most && !is_crowded_ && not_paused_.is_set() && accept_one()) ++accepted;
    if (accepted > 0) sink_.end_group();
    return accepted;
}

int receiver::reserve() const noexcept { return std::min(most_reserved, most_descriptors_ / 4); }

/// True if a descriptor is left, if only of the reserve.
bool receiver::has_descriptor(int open) noexcept {
    return unique_fd(::fcntl(open, F_DUPFD_CLOEXEC, 0)).get() >= 0;
}

/// The kernel assigns the lowest free number: while the first number of the reserve is free, all of
/// it is. If a lasting descriptor has that number, all descriptors are counted: the size of the
/// folder, since Linux 6.2.
bool receiver::has_room() const noexcept {
    const int first = most_descriptors_ - reserve();
    if (const unique_fd probe(::fcntl(listening_.socket.get(), F_DUPFD_CLOEXEC, first));
        probe.get() == first)
        return true;
    struct stat open_ones{};
    return ::stat("/proc/self/fd", &open_ones) == 0 && open_ones.st_size > 0 &&
           open_ones.st_size < first;
}

bool receiver::accept_one() {
    unique_fd sender(
        ::accept4(listening_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!sender) {
        if (errno == EAGAIN) return false;
        if (concerns_one_connection(errno) || errno == EINTR) return true;
        is_crowded_ = true;  // no descriptor or no memory is left
        return false;
    }
    if (!is_allowed(sender.get())) {
        sink_.fail_handoff(fault::peer_not_allowed);
        return true;
    }
    if (!has_memory([&] { receive(std::move(sender)); })) {
        is_crowded_ = true;
        sink_.fail_handoff(fault::no_memory);
    }
    return true;
}

bool receiver::is_allowed(int sender) const noexcept {
    return !has_user_check_ || unix_socket::has_allowed_peer(sender, options_.allowed_users);
}

void receiver::receive(unique_fd sender) {
    partial_message part;
    if (take(sender.get(), part)) return pass_on(part);
    if (tasks_->children() >= max_pending) return sink_.fail_handoff(fault::too_many_senders);
    tasks_->spawn(receive_rest(std::move(sender), std::move(part)));
}

bool receiver::take(int sender, partial_message& part) {
    while (!part.has_ended) {
        auto received = receive_part(sender, buffer_);
        if (!received) {
            if (received.error() == std::errc::resource_unavailable_try_again) return false;
            part.has_failed = part.has_ended = true;
            break;
        }
        part.lost_descriptor |= received->lost_descriptors;
        if (received->descriptor && !part.client) part.client = std::move(received->descriptor);
        const std::span<const std::byte> bytes(buffer_.data(), received->size);
        const std::size_t room = options_.max_message - part.size;
        const auto taken = bytes.first(std::min(room, bytes.size()));
        if (bytes.size() > room || received->is_cut) part.is_too_large = true;
        part.size += taken.size();
        if (options_.keeps_messages)
            part.bytes.insert(part.bytes.end(), taken.begin(), taken.end());
        part.has_ended = options_.type == socket_type::seqpacket || received->size == 0 ||
                         part.is_too_large ||
                         part.end.feed({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    return true;
}

task<void> receiver::receive_rest(unique_fd sender, partial_message part) {
    loop& here = loop::current();
    const time_point until = here.after(options_.message_time);
    while (!part.has_ended) {
        auto ready = co_await with_deadline(until, here.wait_readable(sender.get()));
        if (!ready && ready.error() == errc::cancelled) co_return;
        if (!ready) co_return sink_.fail_handoff(fault::incomplete_message);
        if (!has_descriptor(sender.get())) {
            if (auto slept = co_await here.sleep_for(crowded_pause); !slept) co_return;
            continue;
        }
        if (!has_memory([&] { take(sender.get(), part); }))
            co_return sink_.fail_handoff(fault::no_memory);
    }
    if (!has_memory([&] { pass_on(part); })) co_return sink_.fail_handoff(fault::no_memory);
    sink_.end_group();
}

void receiver::pass_on(partial_message& part) {
    if (part.client && !part.has_failed)
        return sink_.arrive({std::move(part.client), as_text(part.bytes), part.is_too_large});
    if (part.lost_descriptor) return sink_.fail_handoff(fault::lost_descriptor);
    if (part.has_failed) return sink_.fail_handoff(fault::receive_failed);
    sink_.fail_handoff(part.size == 0 ? fault::incomplete_message : fault::no_descriptor);
}

}  // namespace eddy::handoff
