// Passed listeners as JSON.
#include "daemon/upgrade/passed_socket.hpp"

#include <eddy/base/assert.hpp>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace eddy::daemon {

json show_passed(const runtime::passed_listener& each) {
    EDDY_ASSERT(each.port != 0 || each.what != runtime::passed_listener::kind::datagram);
    const transport::address& where = each.where;
    return {{"what", static_cast<int>(each.what)},
            {"scheme", static_cast<int>(where.kind)},
            {"host", where.host},
            {"port", where.port},
            {"path", where.path},
            {"handoff", {where.handoff.type, where.handoff.mode, where.handoff.allow}},
            {"real_port", each.port},
            {"device", each.file.device},
            {"inode", each.file.number},
            {"mode", each.mode},
            {"seqpacket", each.is_seqpacket}};
}

outcome<runtime::passed_listener> read_passed(const json& from) try {
    runtime::passed_listener each;
    each.what = static_cast<runtime::passed_listener::kind>(from.at("what").get<int>());
    each.where.kind = static_cast<transport::scheme>(from.at("scheme").get<int>());
    each.where.host = from.at("host").get<std::string>();
    each.where.port = from.at("port").get<std::uint16_t>();
    each.where.path = from.at("path").get<std::string>();
    const json& handoff = from.at("handoff");
    each.where.handoff.type = handoff.at(0).get<std::string>();
    each.where.handoff.mode = handoff.at(1).get<std::string>();
    each.where.handoff.allow = handoff.at(2).get<std::string>();
    each.port = from.at("real_port").get<std::uint16_t>();
    each.file.device = from.at("device").get<dev_t>();
    each.file.number = from.at("inode").get<ino_t>();
    each.mode = from.at("mode").get<int>();
    each.is_seqpacket = from.at("seqpacket").get<bool>();
    return each;
} catch (const std::exception&) {
    return refuse(400, "the other daemon has sent a socket without its address");
}

namespace {

/// Sizes before the texts of each client.
struct client_head {
    std::uint64_t state = 0;
    std::uint64_t input = 0;
};

}  // namespace

outcome<unique_fd> write_passed(std::string_view text, std::string_view what) {
    unique_fd file(::memfd_create("eddy-upgrade", MFD_CLOEXEC));
    std::string_view rest = text;
    while (file && !rest.empty()) {
        const ssize_t size = ::write(file.get(), rest.data(), rest.size());
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) break;
        rest.remove_prefix(static_cast<std::size_t>(size));
    }
    if (!file || !rest.empty())
        return refuse(503, fmt::format("{} cannot be passed on: {}", what,
                                       std::generic_category().message(errno)));
    return file;
}

std::string read_passed(int file) {
    struct stat info{};
    std::string text;
    if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode))
        text.resize(static_cast<std::size_t>(info.st_size));
    std::size_t got = 0;
    while (got < text.size()) {
        const ssize_t size =
            ::pread(file, text.data() + got, text.size() - got, static_cast<off_t>(got));
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) break;
        got += static_cast<std::size_t>(size);
    }
    text.resize(got);
    return text;
}

outcome<unique_fd> write_clients(const std::vector<runtime::passed_client>& all) {
    std::string text;
    for (const runtime::passed_client& each : all) {
        const client_head head{each.state.size(), each.input.size()};
        text.append(reinterpret_cast<const char*>(&head), sizeof head);
        text += each.state;
        text += each.input;
    }
    return write_passed(text, "the clients' state");
}

outcome<std::vector<runtime::passed_client>> read_clients(int file, std::size_t count) {
    const std::string text = read_passed(file);
    std::vector<runtime::passed_client> all;
    std::string_view rest = text;
    const auto take = [&rest](std::uint64_t size) {
        std::string taken(rest.substr(0, size));
        rest.remove_prefix(size);
        return taken;
    };
    while (all.size() < count) {
        client_head head;
        if (rest.size() < sizeof head) break;
        std::memcpy(&head, rest.data(), sizeof head);
        rest.remove_prefix(sizeof head);
        if (head.state > rest.size() || head.input > rest.size() - head.state) break;
        runtime::passed_client each;
        each.state = take(head.state);
        each.input = take(head.input);
        all.push_back(std::move(each));
    }
    if (all.size() != count || !rest.empty())
        return refuse(400, "the other daemon has sent clients without their state");
    return all;
}

}  // namespace eddy::daemon
