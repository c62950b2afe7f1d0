// UDP over readiness: datagrams are few and small beside stream bytes, so one plain driver serves
// both kernel backends.
#include "io/backend.hpp"
#include "io/posix/sockets.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <utility>

namespace eddy {
namespace {

class posix_datagram final : public datagram_driver, private completion {
public:
    posix_datagram(backend& where, buffer_pool& buffers, std::size_t& drivers,
                   unique_fd socket) noexcept
        : backend_(&where), buffers_(&buffers), drivers_(&drivers), socket_(std::move(socket)) {
        ++drivers;
    }

    bool start(receive_from_operation& op) override {
        EDDY_ASSERT(!receiver_);
        if (receive(op)) return true;
        receiver_ = &op;
        wait_readable();
        return false;
    }

    void cancel(receive_from_operation& op) noexcept override {
        EDDY_ASSERT(receiver_ == &op);
        // The poll goes on: the next receive takes it over.
        end_receiver();
    }

    result<> send_to(const_bytes bytes, const endpoint& to) noexcept override {
        const bool connected = to.family() == AF_UNSPEC;
        const ssize_t sent =
            ::sendto(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                     connected ? nullptr : to.data(), connected ? 0 : to.size());
        if (sent < 0) return fail_errno();
        return {};
    }

    endpoint local() const noexcept override { return local_endpoint(socket_.get()); }
    int native_handle() const noexcept override { return socket_.get(); }

    void close() noexcept override {
        if (receiver_) end_receiver();
        if (!polling_) {
            delete this;
            return;
        }
        closed_ = true;
        backend_->cancel_poll(*this);
    }

private:
    ~posix_datagram() { --*drivers_; }

    /// True when `op` has a datagram or an error.
    bool receive(receive_from_operation& op) {
        std::byte* const buffer = buffers_->take();
        if (!buffer) {
            op.set_error(errno_code(ENOMEM));
            return true;
        }
        endpoint from;
        iovec vector{buffer, buffers_->buffer_size()};
        msghdr header{};
        header.msg_name = from.data();
        header.msg_namelen = endpoint::capacity();
        header.msg_iov = &vector;
        header.msg_iovlen = 1;
        ssize_t size;
        do {
            size = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT);
        } while (size < 0 && errno == EINTR);
        if (size < 0) {
            const int error = errno;
            buffers_->give_back(buffer, 0);
            if (error == EAGAIN || error == EWOULDBLOCK) return false;
            op.set_error(errno_code(error));
            return true;
        }
        from.resize(header.msg_namelen);
        op.set_message({buffers_->lend(buffer, static_cast<std::size_t>(size)), from,
                        (header.msg_flags & MSG_TRUNC) != 0});
        return true;
    }

    void wait_readable() {
        if (polling_) return;
        polling_ = true;
        backend_->start_poll(socket_.get(), readiness::readable, *this);
    }

    void end_receiver() noexcept {
        receive_from_operation& op = *std::exchange(receiver_, nullptr);
        op.set_error(errc::cancelled);
        op.complete_later();
    }

    void on_completion(int result, unsigned) override {
        polling_ = false;
        if (closed_) {
            delete this;
            return;
        }
        if (!receiver_) return;
        if (result < 0) {
            receiver_->set_error(errno_code(-result));
        } else if (!receive(*receiver_)) {
            wait_readable();
            return;
        }
        // The coroutine may close this driver, so nothing of it is touched afterwards.
        std::exchange(receiver_, nullptr)->complete_now();
    }

    backend* backend_;
    buffer_pool* buffers_;
    std::size_t* drivers_;
    unique_fd socket_;
    receive_from_operation* receiver_ = nullptr;
    bool polling_ = false;
    bool closed_ = false;
};

}  // namespace

result<datagram> make_posix_datagram(backend& where, buffer_pool& buffers, std::size_t& drivers,
                                     const endpoint& local, const listen_options& options) {
    auto socket = open_datagram(local, options);
    if (!socket) return fail(socket.error());
    return datagram(*new posix_datagram(where, buffers, drivers, std::move(*socket)));
}

}  // namespace eddy
