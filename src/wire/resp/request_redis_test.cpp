// The request parser against the redis-server of this machine: the same result for good, odd and
// broken input, to the byte of each error. Skipped where there is none.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/random.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/wire/resp/reply_writer.hpp>
#include <eddy/wire/resp/request.hpp>

#include "base/files/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace eddy::resp {
namespace {

constexpr int reply_timeout_s = 20;

// A redis-server on a Unix socket in a folder of its own, ended with the object.
class redis {
public:
    // Null when it does not start; the reason is in `why`.
    static std::unique_ptr<redis> start(const std::string& password, std::string& why) {
        auto server = std::unique_ptr<redis>(new redis);
        int ends[2];
        if (::pipe(ends) != 0) {
            why = "no pipe could be made";
            return nullptr;
        }
        unique_fd output(ends[0]);
        unique_fd input(ends[1]);
        server->process_ = ::fork();
        if (server->process_ == 0) server->become_redis(password, input.get());
        input.reset();
        std::string log;
        char piece[1024];
        while (log.find("eady to accept connections") == std::string::npos) {
            const ssize_t size = ::read(output.get(), piece, sizeof piece);
            if (size <= 0) {
                why = log.empty() ? "redis-server is not installed" : log;
                return nullptr;
            }
            log.append(piece, static_cast<std::size_t>(size));
        }
        server->log_ = std::move(output);
        return server;
    }

    ~redis() {
        if (process_ > 0) {
            ::kill(process_, SIGKILL);
            ::waitpid(process_, nullptr, 0);
        }
    }

    // Sends `input`, ends the sending half, and returns all that comes back until Redis closes.
    std::string answer(std::string_view input) const {
        const unique_fd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string path = socket_path();
        std::copy(path.begin(), path.end(), address.sun_path);
        const timeval timeout{reply_timeout_s, 0};
        ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address),
                      sizeof address) != 0) {
            return "(no connection)";
        }
        // Redis may close while bytes are still to be sent: that is an answer, too.
        while (!input.empty()) {
            const ssize_t sent = ::send(connection.get(), input.data(), input.size(), MSG_NOSIGNAL);
            if (sent <= 0) break;
            input.remove_prefix(static_cast<std::size_t>(sent));
        }
        ::shutdown(connection.get(), SHUT_WR);
        std::string all;
        char piece[16 * 1024];
        for (;;) {
            const ssize_t size = ::recv(connection.get(), piece, sizeof piece, 0);
            if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return all + "(timed out)";
            if (size <= 0) return all;
            all.append(piece, static_cast<std::size_t>(size));
        }
    }

private:
    redis() = default;

    std::string socket_path() const { return folder_.file("socket"); }

    [[noreturn]] void become_redis(const std::string& password, int output) const {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(output, STDOUT_FILENO);
        const std::string path = socket_path();
        ::execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path.c_str(),
                 "--save", "", "--appendonly", "no", "--dir", folder_.path().c_str(),
                 "--requirepass", password.c_str(), static_cast<char*>(nullptr));
        ::_exit(127);
    }

    const testing::temporary_folder folder_;
    pid_t process_ = -1;
    unique_fd log_;
};

bool is(std::string_view text, std::string_view lower_case) {
    return std::ranges::equal(text, lower_case, [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) == b;
    });
}

// Redis's answers to the few commands that the inputs are made of. Others get a mark, which comes
// before the question of authentication.
void execute(const command& command, bool unauthenticated, reply_writer& writer) {
    const bool is_ping = is(command.name(), "ping") && command.size() <= 2;
    const bool is_echo = is(command.name(), "echo") && command.size() == 2;
    if (!is_ping && !is_echo) {
        writer.error("ERR refused");
    } else if (unauthenticated) {
        writer.error("NOAUTH Authentication required.");
    } else if (command.size() == 1) {
        writer.simple("PONG");
    } else {
        writer.bulk(command[1]);
    }
}

std::string our_answer(std::string_view input, bool unauthenticated) {
    byte_buffer out;
    reply_writer writer(out);
    request_parser parser;
    auto batch = std::make_unique<request_batch>();
    for (;;) {
        const batch_outcome outcome = batch->parse(parser, input, unauthenticated);
        for (const command& command : outcome.commands) execute(command, unauthenticated, writer);
        input.remove_prefix(outcome.consumed);
        if (outcome.status == parse_status::error) writer.error(outcome.error);
        if (outcome.status != parse_status::complete) return std::string(out.text());
    }
}

// The command table is not under test: what Redis says of unknown commands becomes the same mark.
std::string with_marks(std::string answer) {
    for (const std::string_view text : {"-ERR unknown command", "-ERR wrong number of arguments"}) {
        for (std::size_t at = 0; (at = answer.find(text, at)) != std::string::npos; ++at) {
            answer.replace(at, answer.find("\r\n", at) - at, "-ERR refused");
        }
    }
    return answer;
}

std::string array_of(const std::vector<std::string>& args) {
    byte_buffer out;
    const std::vector<std::string_view> views(args.begin(), args.end());
    write_command(out, views);
    return std::string(out.text());
}

class resp_request_redis : public ::testing::Test {
protected:
    void start(const std::string& password = "") {
        std::string why;
        server_ = redis::start(password, why);
        unauthenticated_ = !password.empty();
        if (!server_) {
            std::printf("skipped: %s\n", why.c_str());
            GTEST_SKIP() << why;
        }
    }
    void compare(std::string_view input) const {
        EXPECT_EQ(our_answer(input, unauthenticated_), with_marks(server_->answer(input)))
            << ::testing::PrintToString(input.substr(0, 300));
    }

    std::unique_ptr<redis> server_;
    bool unauthenticated_ = false;
};

TEST_F(resp_request_redis, answers_to_odd_and_broken_input_are_equal) {
    start();
    if (!server_) return;
    const std::string ping = array_of({"PING"});
    const std::string long_run(65536, '1');
    const std::string inputs[] = {
        ping,
        "PING\r\n",
        "ping\n",
        // Counts
        "*0\r\n" + ping,
        "*-1\r\n" + ping,
        "*-9223372036854775808\r\n" + ping,
        "*-9223372036854775809\r\n" + ping,
        "*9223372036854775807\r\n",
        "*9223372036854775808\r\n",
        "*2147483648\r\n",
        "*99999999999999999999999\r\n",
        "*\r\n",
        "*-0\r\n",
        "*-\r\n",
        "*00\r\n",
        "*01\r\n$4\r\nPING\r\n",
        "*+1\r\n$4\r\nPING\r\n",
        "* 1\r\n$4\r\nPING\r\n",
        "*1 \r\n$4\r\nPING\r\n",
        "*1a\r\n",
        "*abc\r\n",
        "*1\n$4\nPING\n\r\n",
        ping + "*x\r\n" + ping,
        // String lengths
        "*1\r\n$\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$-0\r\n",
        "*1\r\n$04\r\nPING\r\n",
        "*1\r\n$+4\r\nPING\r\n",
        "*1\r\n$4 \r\nPING\r\n",
        "*1\r\n$x\r\n",
        "*1\r\n$536870912\r\n",
        "*1\r\n$536870913\r\n",
        "*1\r\n$9223372036854775808\r\n",
        "*1\r\n$0\r\n\r\n" + ping,
        "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
        // Other bytes in the place of '$'
        "*1\r\nPING\r\n",
        "*1\r\n:4\r\n",
        "*1\r\n*1\r\n",
        "*1\r\n\r\n",
        "*1\r\n\n\r\n",
        "*1\r\n\xff\r\n",
        "*2\r\n$4\r\nECHO\r\nfoo\r\n",
        "*2\r\n$4\r\nECHOO\r\n$1\r\na\r\n",
        // Ends that Redis does not check
        "*1\r\n$4\rXPINGYZ" + ping,
        "*1\rX$4\r\nPING\r\n",
        "*1X\r\n",
        // Lines
        "\r\n\n  \t \r\n" + ping,
        "\rPING\r\n",
        "PING\rPING\n",
        " *1\r\n" + ping,
        "\"*1\"\r\n",
        "\v\fPING\r\n",
        "ECHO a\vb\r\n",
        "ECHO \"a\"\v\r\n",
        "ECHO \"\"\r\n",
        "ECHO ''\r\n",
        "\"\"\r\n",
        "\"PING\"\r\n",
        "ECHO a\"b\"\r\n",
        "ECHO a\"b\"c\r\n",
        "ECHO a'b'\r\n",
        R"(ECHO "\x41\xzz\x4\x\n\r\t\b\a\q\"\\'")"
        "\n",
        R"(ECHO "\x4")"
        "\n",
        R"(ECHO "\xfF\x7f")"
        "\n",
        R"(ECHO 'a\'b\n\x41"\\.')"
        "\n",
        R"(ECHO 'a\\')"
        "\n",
        R"(ECHO \"a)"
        "\n",
        R"(ECHO a\b)"
        "\n",
        "ECHO \"a\n",
        "ECHO 'a\n",
        "ECHO \"a\\\n",
        "ECHO \"a\\\"\n",
        "ECHO 'a'b\n",
        "ECHO \"a\"b\n",
        "ECHO \"\n",
        ping + "ECHO \"\n" + ping,
        "ECHO " + std::string(65000, 'a') + "\r\n",
        // The lines' limit
        std::string(65536, 'a'),
        std::string(65537, 'a'),
        std::string(100'000, 'a') + "\r\n",
        "*" + long_run.substr(1),
        "*" + long_run,
        "*1\r\n$" + long_run.substr(1),
        "*1\r\n$" + long_run,
        "*1\r\n" + long_run + "1",
        // Incomplete
        "*",
        "*1",
        "*1\r",
        ping + "*1\r\n$4\r\nPIN",
        ping + "*1\r\n$4\r\nPING\r",
        "PING",
        "ECHO \"a",
    };
    for (const std::string& input : inputs) compare(input);
}

TEST_F(resp_request_redis, answers_before_authentication_are_equal) {
    start("secret");
    if (!server_) return;
    const std::vector<std::string> ten(10, "a");
    const std::vector<std::string> eleven(11, "a");
    const std::string inputs[] = {
        array_of({"PING"}),
        array_of(ten),
        array_of(eleven),
        "*10\r\n",
        "*11\r\n",
        "*2147483648\r\n",
        array_of({"ECHO", std::string(16384, 'a')}),
        array_of({"ECHO", std::string(16385, 'a')}),
        "*1\r\n$536870913\r\n",
        "1 2 3 4 5 6 7 8 9 10 11 12\r\n",
        array_of({"PING"}) + array_of(eleven) + array_of({"PING"}),
    };
    for (const std::string& input : inputs) compare(input);
}

TEST_F(resp_request_redis, answers_to_spoilt_pipelines_are_equal) {
    start();
    if (!server_) return;
    static constexpr std::string_view bytes = "\r\n*$0123456789-'\" \\xaP";
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        random_generator random(seed);
        std::string input;
        const std::uint64_t commands = 1 + random.below(6);
        for (std::uint64_t i = 0; i < commands; ++i) {
            std::string text(random.below(30), ' ');
            std::ranges::generate(text, [&] { return bytes[random.below(bytes.size())]; });
            switch (random.below(4)) {
                case 0: input += "PING\r\n"; break;
                case 1: input += "ECHO " + text + "\r\n"; break;
                default: input += array_of({"ECHO", text}); break;
            }
        }
        const std::uint64_t faults = random.below(4);
        for (std::uint64_t i = 0; i < faults && !input.empty(); ++i) {
            const std::size_t at = random.below(input.size());
            if (random.chance(0.3)) {
                input.erase(at, 1);
            } else {
                input[at] = bytes[random.below(bytes.size())];
            }
        }
        compare(input);
    }
}

}  // namespace
}  // namespace eddy::resp
