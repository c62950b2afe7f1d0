// TCP socket whose close(2) blocks, for tests: SO_LINGER, and bytes that its peer does not read.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include "net/passed_rights.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstring>
#include <string_view>

namespace eddy::testing {

class lingering_socket {
public:
    lingering_socket() {
        const unique_fd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in local{};
        local.sin_family = AF_INET;
        local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(local);
        auto* const where = reinterpret_cast<sockaddr*>(&local);
        EXPECT_EQ(::bind(listening.get(), where, size), 0);
        EXPECT_EQ(::listen(listening.get(), 1), 0);
        EXPECT_EQ(::getsockname(listening.get(), where, &size), 0);
        own_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::connect(own_.get(), where, size), 0);
        peer_.reset(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
        const std::array<char, 65536> block{};
        while (::send(own_.get(), block.data(), block.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
        }
        set_linger(3600);
    }
    ~lingering_socket() {
        if (own_) set_linger(0);
    }
    lingering_socket(const lingering_socket&) = delete;
    lingering_socket& operator=(const lingering_socket&) = delete;

    int get() const noexcept { return own_.get(); }

    /// Passes it with the bytes, which is then its only reference. False where the receiver refuses
    /// descriptors.
    bool pass(int socket, std::string_view bytes, int flags = 0) {
        iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        msghdr header{};
        header.msg_iov = &piece;
        header.msg_iovlen = 1;
        header.msg_control = control;
        header.msg_controllen = sizeof(control);
        cmsghdr* const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        const int own = own_.get();
        std::memcpy(CMSG_DATA(rights), &own, sizeof(int));
        if (::sendmsg(socket, &header, MSG_NOSIGNAL | flags) < 0) return false;
        own_.reset();
        return true;
    }

private:
    void set_linger(int seconds) {
        const linger how{seconds > 0, seconds};
        EXPECT_EQ(::setsockopt(own_.get(), SOL_SOCKET, SO_LINGER, &how, sizeof(how)), 0);
    }

    unique_fd own_;
    unique_fd peer_;
};

/// True if the kernel has SO_PASSRIGHTS: Linux 6.16.
inline bool can_refuse_descriptors() {
    const unique_fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int off = 0;
    return ::setsockopt(probe.get(), SOL_SOCKET, unix_socket::so_passrights, &off, sizeof(off)) ==
           0;
}

}  // namespace eddy::testing
