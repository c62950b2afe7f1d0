// Tests of dispatch, help and exit statuses, without a daemon.
#include "cli/program.hpp"

#include <eddy/base/unique_fd.hpp>

#include "base/files/temporary_folder.hpp"
#include "cli/commands/commands.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

context test_context() {
    context with;
    with.version = "1.2.3";
    with.parts = {"epoll", "magic"};
    with.default_socket = "/nonexistent/eddy.sock";
    with.types = {{"cache",
                   "keys and values",
                   {{.name = "port", .letter = 'p', .value_name = "PORT", .help = "where"}}},
                  {"server", "broadcast", {{.name = "mode", .value_name = "MODE", .help = "how"}}}};
    return with;
}

struct outcome {
    int status;
    std::string out;
    std::string err;
};

/// Server on a Unix socket that gives each connection the same bytes.
class foreign_daemon {
public:
    explicit foreign_daemon(std::string answer) : answer_(std::move(answer)) {
        sockaddr_un where{};
        where.sun_family = AF_UNIX;
        socket().copy(where.sun_path, sizeof where.sun_path - 1);
        if (::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) !=
                0 ||
            ::listen(listening_.get(), 16) != 0)
            throw std::runtime_error("no socket to listen on");
        serving_ = std::thread([this] { serve(); });
    }
    ~foreign_daemon() {
        ::shutdown(listening_.get(), SHUT_RDWR);
        serving_.join();
    }
    foreign_daemon(const foreign_daemon&) = delete;
    foreign_daemon& operator=(const foreign_daemon&) = delete;

    std::string socket() const { return folder_.file("s"); }

private:
    void serve() {
        for (;;) {
            const unique_fd peer(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!peer) return;
            std::string request;
            char chunk[4096];
            while (!request.contains("\r\n\r\n")) {
                const ssize_t got = ::recv(peer.get(), chunk, sizeof chunk, 0);
                if (got <= 0) break;
                request.append(chunk, static_cast<std::size_t>(got));
            }
            static_cast<void>(::send(peer.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL));
            // Unread input at the end would reset the connection.
            ::shutdown(peer.get(), SHUT_WR);
            while (::recv(peer.get(), chunk, sizeof chunk, 0) > 0) {
            }
        }
    }

    eddy::testing::temporary_folder folder_;
    std::string answer_;
    unique_fd listening_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::thread serving_;
};

std::string http_answer(std::string_view body, std::string_view status = "200 OK") {
    return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
}

outcome run(std::vector<std::string> words) {
    ::unsetenv("EDDY_SOCKET");
    context with = test_context();
    const std::vector<command> commands = all_commands();
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int status = run_program(with, commands, words);
    outcome all{status, ::testing::internal::GetCapturedStdout(), ""};
    all.err = ::testing::internal::GetCapturedStderr();
    return all;
}

TEST(program, help_lists_every_command_and_type) {
    const outcome shown = run({"help"});
    EXPECT_EQ(shown.status, exit_ok);
    for (const command& each : all_commands())
        EXPECT_NE(shown.out.find("  " + each.name + " "), std::string::npos) << each.name;
    EXPECT_NE(shown.out.find("keys and values"), std::string::npos);
    EXPECT_EQ(run({"--help"}).out, shown.out);
    EXPECT_EQ(run({"-h"}).out, shown.out);
}

TEST(program, the_manual_page_names_every_command) {
    std::ifstream file("docs/eddy.1");
    std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ASSERT_NE(page.find(".SH COMMANDS"), std::string::npos);
    page.erase(0, page.find(".SH COMMANDS"));
    page.erase(page.find(".SH OPTIONS"));
    for (const command& each : all_commands())
        EXPECT_TRUE(std::regex_search(page, std::regex("\n\\.BI? \"?" + each.name + "\\b")))
            << each.name;
}

TEST(program, every_command_explains_itself_in_two_ways) {
    for (const command& each : all_commands()) {
        const outcome by_flag = run({each.name, "--help"});
        const outcome by_help = run({"help", each.name});
        EXPECT_EQ(by_flag.status, exit_ok) << each.name;
        EXPECT_EQ(by_flag.out, by_help.out) << each.name;
        EXPECT_NE(by_flag.out.find("Usage: eddy " + each.name), std::string::npos);
        EXPECT_TRUE(each.most == 0 || !each.examples.empty()) << each.name;
        for (const flag& f : each.flags) {
            EXPECT_NE(by_flag.out.find("--" + f.name), std::string::npos) << f.name;
            EXPECT_FALSE(f.help.empty()) << f.name;
        }
    }
}

/// Checks the help of each command and its children.
void expect_usage_lines_without_a_gap(const std::vector<command>& commands,
                                      const std::vector<std::string>& above) {
    for (const command& each : commands) {
        std::vector<std::string> words = above;
        words.push_back(each.name.substr(each.name.rfind(' ') + 1));
        const std::string text = run(words).out;
        EXPECT_NE(text.find("Usage: eddy " + each.name), std::string::npos) << text;
        EXPECT_EQ(text.find(" \n"), std::string::npos) << each.name;
        expect_usage_lines_without_a_gap(each.children, words);
    }
}

TEST(program, lines_of_help_end_without_a_space) {
    expect_usage_lines_without_a_gap(all_commands(), {"help"});
}

void expect_unique_names_and_letters(const std::vector<command>& commands) {
    std::set<std::string> names;
    for (const command& each : commands) {
        EXPECT_TRUE(names.insert(each.name).second) << each.name;
        std::set<char> letters = {'h'};
        for (const flag& f : each.flags)
            if (f.letter) EXPECT_TRUE(letters.insert(f.letter).second) << each.name << f.letter;
        EXPECT_EQ((each.run ? 1 : 0) + (each.run_raw ? 1 : 0) + (each.children.empty() ? 0 : 1), 1)
            << each.name;
        for (const command& child : each.children)
            EXPECT_TRUE(child.name.starts_with(each.name + " ")) << child.name;
        expect_unique_names_and_letters(each.children);
    }
}

TEST(program, names_and_letters_are_unique) { expect_unique_names_and_letters(all_commands()); }

TEST(program, the_next_word_chooses_a_child) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"help", "bench"}, {"bench", "--help"}}) {
        const outcome shown = run(words);
        EXPECT_EQ(shown.status, exit_ok);
        EXPECT_NE(shown.out.find("eddy bench http "), std::string::npos);
    }
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"help", "bench", "ws"}, {"bench", "ws", "--help"}}) {
        const outcome shown = run(words);
        EXPECT_EQ(shown.status, exit_ok);
        EXPECT_NE(shown.out.find("Usage: eddy bench ws URL"), std::string::npos);
    }
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"help", "bench", "wss"}, {"bench", "wss"}, {"bench"}, {"bench", "-c", "5"}}) {
        const outcome refused = run(words);
        EXPECT_EQ(refused.status, exit_bad_input);
        EXPECT_NE(refused.err.find("http"), std::string::npos) << refused.err;
    }
}

TEST(program, help_of_create_shows_the_flags_of_the_type) {
    EXPECT_NE(run({"help", "create", "cache"}).out.find("--port PORT"), std::string::npos);
    EXPECT_NE(run({"create", "cache", "--help"}).out.find("--port PORT"), std::string::npos);
    EXPECT_EQ(run({"help", "create"}).out.find("--port PORT"), std::string::npos);
    EXPECT_EQ(run({"help", "create", "proxi"}).status, exit_bad_input);
}

TEST(program, a_misspelt_command_is_guessed) {
    const outcome wrong = run({"strat", "db"});
    EXPECT_EQ(wrong.status, exit_bad_input);
    EXPECT_NE(wrong.err.find("did you mean `eddy start`?"), std::string::npos);
    EXPECT_EQ(run({"help", "strat"}).status, exit_bad_input);
    for (const auto& [word, meant] : std::vector<std::pair<std::string, std::string>>{
             {"delete", "remove"}, {"describe", "show"}, {"new", "create"}})
        EXPECT_NE(run({word, "db"}).err.find("did you mean `eddy " + meant + "`?"),
                  std::string::npos)
            << word;
}

TEST(program, words_of_docker_and_systemctl_lead_to_commands) {
    for (const auto& [word, meant] : std::vector<std::pair<std::string, std::string>>{
             {"compose", "eddy up"},
             {"info", "eddy version"},
             {"upgrade", "eddy daemon --upgrade"},
             {"dashboard", "eddy console"},
             {"config", "eddy validate"},
             {"container", "eddy ls"},
             {"journalctl", "eddy logs"},
             {"daemon-reload", "systemctl reload eddy"},
             {"prune", "eddy remove"}})
        EXPECT_NE(run({word}).err.find(meant), std::string::npos) << word;
    for (const auto& [words, meant] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"up", "-d"}, "always run in the background"},
             {{"up", "--build"}, "no images"},
             {{"up", "--force-recreate"}, "eddy restart"},
             {{"down", "--volumes"}, "--dir"},
             {{"add", "python3", "-m", "http.server"}, "behind --"},
             {{"up", "--test"}, "--dry-run"},
             {{"add", "./x", "-p", "80:80"}, "--listen"}})
        EXPECT_NE(run(words).err.find(meant), std::string::npos) << words[0] << words[1];
}

TEST(program, the_overview_fits_80_columns) {
    std::istringstream lines(run({"help"}).out);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_GT(count, 40U);
}

TEST(program, mistakes_end_with_status_1_and_a_hint) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{},
                                               {"start"},
                                               {"show"},
                                               {"logs"},
                                               {"version", "x"},
                                               {"ls", "a", "b"},
                                               {"create"},
                                               {"create", "cache"},
                                               {"create", "cahce", "db"},
                                               {"create", "cache", "a", "b"},
                                               {"create", "server", "a", "--port", "1"},
                                               {"create", "db", "cache"},
                                               {"--nonsense"},
                                               {"--socket"},
                                               {"ls", "--nonsense"},
                                               {"logs", "a", "-n", "many"},
                                               {"edit"},
                                               {"edit", "--mode", "in"}}) {
        const outcome wrong = run(words);
        EXPECT_EQ(wrong.status, exit_bad_input) << ::testing::PrintToString(words);
        EXPECT_TRUE(wrong.err.starts_with("eddy: ")) << ::testing::PrintToString(words);
        EXPECT_EQ(wrong.out, "") << ::testing::PrintToString(words);
    }
    EXPECT_NE(run({"create", "cahce", "db"}).err.find("did you mean \"cache\"?"),
              std::string::npos);
    EXPECT_NE(run({"create", "cache", "db", "--prot", "1"}).err.find("did you mean --port?"),
              std::string::npos);
}

TEST(program, without_a_daemon_the_status_is_2_and_the_message_says_what_to_do) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"ls"},
                                               {"ps"},
                                               {"start", "a"},
                                               {"stop", "a*"},
                                               {"remove", "a"},
                                               {"reload", "a"},
                                               {"show", "a"},
                                               {"stats", "a"},
                                               {"logs", "a"},
                                               {"send", "a", "hello"},
                                               {"edit", "a"},
                                               {"edit", "a", "--mode", "in"},
                                               {"create", "cache", "a", "-p", "1"}}) {
        const outcome failed = run(words);
        EXPECT_EQ(failed.status, exit_fatal) << ::testing::PrintToString(words);
        EXPECT_NE(failed.err.find("/nonexistent/eddy.sock"), std::string::npos);
        EXPECT_NE(failed.err.find("eddy daemon"), std::string::npos);
    }
}

TEST(program, an_answer_that_is_no_object_is_a_failure) {
    for (const std::string& answer :
         {http_answer("null"), http_answer("[]"), http_answer("7"), http_answer("no JSON"),
          http_answer(""), std::string("HTTP/1.1 204 No Content\r\n\r\n")}) {
        const foreign_daemon daemon(answer);
        for (const std::vector<std::string>& words :
             std::vector<std::vector<std::string>>{{"ls"},
                                                   {"start", "a"},
                                                   {"stop", "a"},
                                                   {"stop", "a*"},
                                                   {"remove", "a"},
                                                   {"reload", "a"},
                                                   {"show", "a"},
                                                   {"stats", "a"},
                                                   {"send", "a", "hello"},
                                                   {"edit", "a"},
                                                   {"edit", "a", "--mode", "in"},
                                                   {"create", "cache", "a", "-p", "1"}}) {
            // A removal answers nothing.
            if (words[0] == "remove" && answer.starts_with("HTTP/1.1 204")) continue;
            std::vector<std::string> all = {"--socket", daemon.socket()};
            all.insert(all.end(), words.begin(), words.end());
            const outcome failed = run(all);
            EXPECT_EQ(failed.status, exit_fatal) << ::testing::PrintToString(all) << answer;
            EXPECT_NE(failed.err.find("the daemon on " + daemon.socket() +
                                      " answered something that is no answer of Eddy's control "
                                      "API"),
                      std::string::npos)
                << failed.err << ::testing::PrintToString(all) << answer;
            EXPECT_EQ(failed.out, "") << ::testing::PrintToString(all) << answer;
        }
    }
}

TEST(program, a_list_of_something_else_than_runtimes_is_a_failure) {
    for (const char* const body : {"{}", R"({"runtimes": 1})", R"({"runtimes": [null]})"}) {
        const foreign_daemon daemon(http_answer(body));
        const outcome failed = run({"--socket", daemon.socket(), "ls"});
        EXPECT_EQ(failed.status, exit_fatal) << body;
        EXPECT_NE(failed.err, "") << body;
        EXPECT_EQ(failed.out, "") << body;
    }
}

TEST(program, a_removal_may_be_answered_with_nothing) {
    const foreign_daemon daemon("HTTP/1.1 204 No Content\r\n\r\n");
    const outcome done = run({"--socket", daemon.socket(), "remove", "a"});
    EXPECT_EQ(done.status, exit_ok);
    EXPECT_EQ(done.out, "a removed\n");
}

TEST(program, logs_that_are_cut_off_say_so_behind_what_has_come) {
    const foreign_daemon daemon(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nline\n\r\n");
    const outcome cut = run({"--socket", daemon.socket(), "logs", "-f", "a"});
    EXPECT_EQ(cut.status, exit_fatal);
    EXPECT_EQ(cut.out, "line\n");
    EXPECT_TRUE(cut.err.starts_with("eddy: the answer is incomplete: the daemon at")) << cut.err;

    const foreign_daemon silent("HTTP/1.1 200 OK\r\nTransfer");
    const outcome none = run({"--socket", silent.socket(), "logs", "a"});
    EXPECT_EQ(none.status, exit_fatal);
    EXPECT_NE(none.err.find("closed the connection before it answered"), std::string::npos);
}

TEST(program, version_works_without_a_daemon) {
    const outcome shown = run({"version"});
    EXPECT_EQ(shown.status, exit_ok);
    EXPECT_NE(shown.out.find("eddy 1.2.3"), std::string::npos);
    EXPECT_EQ(run({"--version"}).out, "eddy 1.2.3\n");
    EXPECT_EQ(run({"--json", "version"}).out.find("daemon\": null") == std::string::npos, false);
}

TEST(program, version_tells_what_it_was_built_with) {
    EXPECT_NE(run({"version"}).out.find("\nbuilt with: epoll, magic\n"), std::string::npos);
    const auto told = nlohmann::json::parse(run({"--json", "version"}).out);
    EXPECT_EQ(told["built_with"], nlohmann::json({"epoll", "magic"}));
}

TEST(program, socket_may_stand_anywhere) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"--socket", "/elsewhere", "ls"},
             {"--socket=/elsewhere", "ls"},
             {"ls", "--socket", "/elsewhere"},
             {"ls", "--socket=/elsewhere"},
             {"edit", "a", "--mode", "in", "--socket", "/elsewhere"}})
        EXPECT_NE(run(words).err.find("/elsewhere"), std::string::npos)
            << ::testing::PrintToString(words);
}

TEST(program, a_socket_path_that_is_too_long_is_explained) {
    EXPECT_NE(run({"--socket", "/" + std::string(200, 'x'), "ls"}).err.find("107 bytes"),
              std::string::npos);
}

}  // namespace
}  // namespace eddy::cli
