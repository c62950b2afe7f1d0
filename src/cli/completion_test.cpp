// Tests of completion: each place of a line, and what the daemon is asked for.
#include "cli/completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class completion : public testing::Test {
protected:
    completion() {
        type_flags cache;
        cache.name = "cache";
        cache.flags = {{.name = "port", .letter = 'p', .value_name = "PORT"},
                       {.name = "mode", .value_name = "MODE", .choices = {"readonly", "readwrite"}},
                       {.name = "dir", .value_name = "DIR", .is_path = true},
                       {.name = "tls", .negatable = true}};
        type_flags server;
        server.name = "server";
        server.flags = {{.name = "cache", .value_name = "NAME"},
                        {.name = "lua", .value_name = "FILE", .is_path = true}};
        type_flags proxy;
        proxy.name = "proxy";
        proxy.flags = {{.name = "backend", .value_name = "ADDRESS,..."},
                       {.name = "backup", .value_name = "ADDRESS,..."},
                       {.name = "route", .value_name = "HOST/PATH=BACKENDS", .repeats = true}};
        type_flags site;
        site.name = "http";
        site.flags = {{.name = "cache", .value_name = "SIZE"}};
        with_.types = {cache, server, proxy, site};
        command create;
        create.name = "create";
        create.operands = "<type> <name> [flags]";
        create.flags = {{.name = "owner", .letter = 'o', .value_name = "NAME"},
                        {.name = "group", .letter = 'g', .value_name = "NAME"},
                        {.name = "start", .letter = 's'}};
        create.most = 2;
        create.more_flags = [](context&, std::span<const std::string>)
            -> std::expected<std::vector<flag>, std::string> { return std::vector<flag>(); };
        command edit = create;
        edit.name = "edit";
        edit.operands = "<name> [flags]";
        edit.most = 1;
        edit.flags = {{.name = "unset", .value_name = "OPTION", .repeats = true}};
        commands_ = {create, edit, named("start", "<name|pattern>..."),
                     named("stop", "<name|pattern>..."), named("rename", "<name> <new-name>")};
        commands_.back().most = 2;
        commands_.push_back(named("attach", "<name> | <type> <name> <port>"));
        commands_.push_back(named("add", "<path> [flags] [-- argument...]"));
        command bench;
        bench.name = "bench";
        bench.children = {named("bench http", "<url>"), named("bench ws", "<url>")};
        commands_.push_back(bench);
    }

    static command named(std::string name, std::string operands) {
        command made;
        made.name = std::move(name);
        made.operands = std::move(operands);
        made.most = 100;
        return made;
    }

    completions of(const std::vector<std::string>& words) {
        return complete(with_, commands_, words, [this] {
            ++asked_;
            return std::vector<known_runtime>{{"db", "cache", "data", "running"},
                                              {"chat", "server", "web", "stopped"}};
        });
    }
    std::vector<std::string> words(const std::vector<std::string>& line) {
        std::vector<std::string> all;
        for (const candidate& each : of(line).words) all.push_back(each.word);
        return all;
    }

    context with_;
    std::vector<command> commands_;
    int asked_ = 0;
};

TEST_F(completion, commands) {
    EXPECT_THAT(words({"st"}), ElementsAre("start", "stop"));
    EXPECT_THAT(words({""}), AllOf(Contains("create"), Contains("help")));
    EXPECT_THAT(words({}), Contains("create"));
    EXPECT_THAT(words({"--json", "re"}), ElementsAre("rename"));
    EXPECT_THAT(words({"--so"}), ElementsAre("--socket"));
    EXPECT_THAT(words({"help", "cr"}), ElementsAre("create"));
    EXPECT_THAT(words({"help", "create", ""}), ElementsAre("cache", "server", "proxy", "http"));
    EXPECT_THAT(words({"bench", ""}), ElementsAre("http", "ws"));
    EXPECT_THAT(words({"nonsense", ""}), IsEmpty());
    EXPECT_EQ(asked_, 0);
}

TEST_F(completion, flags_of_the_command_and_type) {
    EXPECT_THAT(words({"create", "cache", "db", "--p"}), ElementsAre("--port"));
    EXPECT_THAT(words({"create", "server", "db", "--p"}), IsEmpty());
    EXPECT_THAT(words({"create", "cache", "x", "--port", "1", "--"}),
                AllOf(Contains("--owner"), Contains("--json"), Not(Contains("--port"))));
    EXPECT_THAT(words({"create", "cache", "x", "--no"}), ElementsAre("--no-tls"));
    EXPECT_THAT(words({"edit", "db", "--mo"}), ElementsAre("--mode"));
    EXPECT_THAT(words({"edit", "chat", "--mo"}), IsEmpty());
}

TEST_F(completion, values) {
    EXPECT_THAT(words({"create", "cache", "x", "--mode", "read"}),
                ElementsAre("readonly", "readwrite"));
    EXPECT_THAT(words({"create", "cache", "x", "--mode=readw"}), ElementsAre("--mode=readwrite"));
    EXPECT_THAT(words({"create", "cache", "x", "-o", ""}), ElementsAre("db", "chat"));
    EXPECT_THAT(words({"create", "cache", "x", "--group", "w"}), ElementsAre("web"));
    EXPECT_THAT(words({"edit", "db", "--unset", "mo"}), ElementsAre("mode"));
    EXPECT_TRUE(of({"create", "cache", "x", "--dir", ""}).takes_files);
    EXPECT_TRUE(of({"--socket", ""}).takes_files);
    EXPECT_FALSE(of({"create", "cache", "x", "--port", ""}).takes_files);
}

TEST_F(completion, scripts_are_files) {
    EXPECT_TRUE(of({"create", "server", "x", "--lua", ""}).takes_files);
    EXPECT_TRUE(of({"create", "server", "x", "--lua=a"}).takes_files);
    EXPECT_THAT(words({"--l"}), ElementsAre("--lua"));
    EXPECT_TRUE(of({"--lua", ""}).takes_files);
    EXPECT_TRUE(of({"--json", "--lua", "a.lua", ""}).takes_files) << "an argument of the script";
}

TEST_F(completion, runtimes_that_a_flag_names) {
    EXPECT_THAT(words({"create", "server", "x", "--cache", ""}), ElementsAre("db"));
    EXPECT_THAT(words({"create", "http", "x", "--cache", ""}), IsEmpty()) << "it is a size";
    EXPECT_THAT(words({"create", "proxy", "x", "--backend", ""}), ElementsAre("db", "chat"));
    EXPECT_THAT(words({"create", "proxy", "x", "--backup", ":7001,c"}), ElementsAre(":7001,chat"));
    EXPECT_THAT(words({"create", "proxy", "x", "--backend=@w"}), ElementsAre("--backend=@web"));
    EXPECT_THAT(words({"create", "proxy", "x", "--route", "/api"}), IsEmpty());
    EXPECT_THAT(words({"create", "proxy", "x", "--route", "/api=:1,d"}), ElementsAre("/api=:1,db"));
}

TEST_F(completion, names) {
    EXPECT_THAT(words({"create", ""}), ElementsAre("cache", "server", "proxy", "http"));
    EXPECT_THAT(words({"create", "cache", ""}), IsEmpty());
    EXPECT_THAT(words({"start", ""}), ElementsAre("chat"));
    EXPECT_THAT(words({"stop", ""}), ElementsAre("db"));
    EXPECT_THAT(words({"stop", "@"}), ElementsAre("@data", "@web"));
    EXPECT_THAT(words({"rename", "d"}), ElementsAre("db"));
    EXPECT_THAT(words({"rename", "db", ""}), IsEmpty());
    EXPECT_THAT(words({"edit", "c"}), ElementsAre("chat"));
    EXPECT_THAT(words({"attach", ""}), ElementsAre("chat"));
    EXPECT_TRUE(of({"add", ""}).takes_files);
}

TEST_F(completion, scripts_of_shells) {
    for (const char* const shell : {"bash", "zsh", "fish"})
        EXPECT_NE(completion_script(shell).find("complete -- "), std::string::npos);
    EXPECT_EQ(completion_script("tcsh"), "");
}

}  // namespace
}  // namespace eddy::cli
