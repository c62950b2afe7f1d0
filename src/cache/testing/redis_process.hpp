// Test fixture: a real redis-server on a Unix socket of its own, for comparisons.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/wire/resp/reply_parser.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include "base/files/temporary_folder.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <regex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache::testing {

/// A reply without the version that the server says it has.
inline std::string hide_version(const std::string& reply) {
    static const std::regex version("\\$\\d+\r\n(7\\.[02]|8\\.\\d+)\\.\\d+\r\n");
    return std::regex_replace(reply, version, "<version>\r\n");
}

/// One client of it. One thread; calls block.
class redis_connection {
public:
    /// Connected to the server's socket, or throws.
    explicit redis_connection(const std::string& path)
        : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
            0) {
            throw std::runtime_error("no connection to redis-server");
        }
    }

    /// False when the connection broke.
    bool send(const std::vector<std::string>& args) {
        const std::vector<std::string_view> views(args.begin(), args.end());
        byte_buffer out;
        resp::write_command(out, views);
        std::string_view left = out.text();
        while (!left.empty()) {
            const ssize_t sent = ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            left.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    /// Sends, and waits for one reply; what came before it is a part of that.
    std::string ask(const std::vector<std::string>& args) {
        if (!send(args)) return {};
        std::string reply;
        std::size_t parsed = 0;
        resp::reply_parser parser;
        for (;;) {
            const auto outcome = parser.next(std::string_view(reply).substr(parsed));
            if (outcome.status == resp::parse_status::error) return {};
            if (outcome.status == resp::parse_status::complete) {
                parsed += outcome.consumed;
                if (outcome.event.ends_reply) return reply;
                continue;
            }
            if (!receive(reply, 0)) return {};
        }
    }
    /// Sends, and returns all that comes before the reply to a PING behind it: also what is no
    /// reply, as a push.
    std::string ask_for_all(const std::vector<std::string>& args) {
        constexpr std::string_view end = "+PONG\r\n";
        if (!send(args) || !send({"PING"})) return {};
        std::string got;
        while (!got.ends_with(end)) {
            if (!receive(got, 0)) return {};
        }
        return got.substr(0, got.size() - end.size());
    }
    /// The bytes that have arrived already.
    std::string take_available() {
        std::string got;
        while (receive(got, MSG_DONTWAIT)) {
        }
        return got;
    }

private:
    bool receive(std::string& to, int flags) {
        char piece[16 * 1024];
        const ssize_t got = ::recv(socket_.get(), piece, sizeof piece, flags);
        if (got <= 0) return false;
        to.append(piece, static_cast<std::size_t>(got));
        return true;
    }

    unique_fd socket_;
};

/// A child process, ended with its folder by the destructor. One thread; calls block.
class redis_process {
public:
    /// Null, with the reason in `why`, when there is no redis-server or it does not start.
    /// It loads the bytes of `dump`, an RDB file, if there are any; `more` are further arguments;
    /// `program` is another one than the installed redis-server and EDDY_REDIS_SERVER.
    static std::unique_ptr<redis_process> start(std::string& why, std::string_view dump = {},
                                                std::span<const std::string> more = {},
                                                std::string_view program = {}) {
        std::unique_ptr<redis_process> made(new redis_process);
        made->program_ = program;
        if (!dump.empty()) {
            std::ofstream file(made->dump_file(), std::ios::binary);
            file.write(dump.data(), static_cast<std::streamsize>(dump.size()));
        }
        if (!made->launch(more)) {
            why = std::string(program.empty() ? "redis-server" : program) +
                  " is not installed or did not start";
            return nullptr;
        }
        return made;
    }
    redis_process(const redis_process&) = delete;
    redis_process& operator=(const redis_process&) = delete;
    ~redis_process() {
        if (child_ > 0) {
            ::kill(child_, SIGKILL);
            ::waitpid(child_, nullptr, 0);
        }
    }

    /// Sends one command; returns the bytes of its reply, or nothing when the connection broke.
    std::string ask(std::span<const std::string> args) {
        return connection_->ask({args.begin(), args.end()});
    }
    /// Another client.
    std::unique_ptr<redis_connection> open() const {
        return std::make_unique<redis_connection>(folder_.file("redis.sock"));
    }

    /// True if the server answers as Redis 7.0 or 7.2. Valkey 7.2 counts as 7.2.
    bool is_7() { return is_7_0() || is_7_2(); }
    bool is_7_0() { return is_version("7.0."); }
    bool is_7_2() { return is_version("7.2."); }

    /// Where SAVE writes.
    std::string dump_file() const { return folder_.file("dump.rdb"); }

private:
    redis_process() = default;

    bool is_version(std::string_view beginning) {
        if (about_.empty()) about_ = ask(std::vector<std::string>{"INFO", "server"});
        return about_.contains("redis_version:" + std::string(beginning));
    }

    bool launch(std::span<const std::string> more) {
        int pipe[2];
        if (::pipe2(pipe, O_CLOEXEC) != 0) return false;
        unique_fd output(pipe[0]);
        unique_fd input(pipe[1]);
        const std::string path = folder_.file("redis.sock");
        // Another one that answers as Redis does, such as valkey-server.
        const char* const chosen = std::getenv("EDDY_REDIS_SERVER");
        const bool is_other = chosen != nullptr && *chosen != '\0';
        if (program_.empty()) program_ = is_other ? chosen : "redis-server";
        std::vector<std::string> words{program_,
                                       "--port",
                                       "0",
                                       "--unixsocket",
                                       path,
                                       "--save",
                                       "",
                                       "--appendonly",
                                       "no",
                                       "--dir",
                                       folder_.path(),
                                       "--enable-debug-command",
                                       "yes"};
        words.insert(words.end(), more.begin(), more.end());
        std::vector<char*> arguments;
        for (std::string& each : words) arguments.push_back(each.data());
        arguments.push_back(nullptr);
        child_ = ::fork();
        if (child_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::dup2(input.get(), STDOUT_FILENO);
            ::execvp(arguments[0], arguments.data());
            ::_exit(127);
        }
        if (child_ < 0) return false;
        input.reset();
        // The log has this line when it is ready; the pipe's end means that the process has ended.
        std::string log;
        while (log.find("accept connections") == std::string::npos) {
            char piece[4096];
            const ssize_t got = ::read(output.get(), piece, sizeof piece);
            if (got <= 0) return false;
            log.append(piece, static_cast<std::size_t>(got));
        }
        // Kept open: a log line into a closed pipe would end the server.
        output_ = std::move(output);
        connection_ = open();
        return true;
    }

    const eddy::testing::temporary_folder folder_;
    std::string program_;
    std::string about_;  // INFO server, once it was asked for
    pid_t child_ = -1;
    unique_fd output_;
    std::unique_ptr<redis_connection> connection_;
};

}  // namespace eddy::cache::testing
