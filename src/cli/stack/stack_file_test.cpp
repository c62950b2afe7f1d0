// Tests of stack files: values, includes, variables, secrets, and faults with their places.
#include "cli/stack/stack_file.hpp"

#include "base/files/temporary_folder.hpp"
#include "cli/stack/export.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class stack_file_test : public ::testing::Test {
protected:
    stack_file_test() {
        type_flags cache;
        cache.name = "cache";
        cache.flags = {{.name = "port", .value_name = "PORT"},
                       {.name = "max-memory", .value_name = "SIZE"},
                       {.name = "dir", .value_name = "DIR", .is_path = true},
                       {.name = "listen", .value_name = "URI", .is_uri = true},
                       {.name = "log-traffic"},
                       {.name = "header", .value_name = "TEXT", .repeats = true},
                       {.name = "password", .value_name = "TEXT", .is_secret = true}};
        with_.types.push_back(cache);
    }

    void write(const std::string& name, std::string_view text) const {
        std::ofstream(folder_.path() + "/" + name) << text;
    }
    stack_file read(const std::string& name = "eddy.toml") {
        return read_stack(with_, folder_.path() + "/" + name, [](std::string_view variable) {
            return variable == "PORT" ? std::optional<std::string>("6379") : std::nullopt;
        });
    }
    /// Each fault as LINE:COLUMN: MESSAGE.
    static std::vector<std::string> faults(const stack_file& of) {
        std::vector<std::string> all;
        for (const file_fault& each : of.faults)
            all.push_back(std::to_string(each.at.line) + ":" + std::to_string(each.at.column) +
                          ": " + each.message);
        return all;
    }

    const eddy::testing::temporary_folder folder_;
    context with_;
};

TEST_F(stack_file_test, values_become_options) {
    write("secret", "hidden\n");
    write("eddy.toml",
          "stack = \"web\"\n[cache.db]\nport = \"${PORT}\"\nmax-memory = \"1G\"\ndir = \"data\"\n"
          "listen = [\"unix://./a.sock\", \"tcp://*:1\"]\nlog_traffic = true\nheader = [\"a\", 1]\n"
          "password_file = \"secret\"\ngroup = \"g\"\nowner = \"x\"\nstart = false\n"
          "[cache.\"a.b\"]\nport = 0x10\n");
    const stack_file file = read();
    EXPECT_THAT(faults(file), ElementsAre());
    EXPECT_EQ(file.name, "web");
    ASSERT_EQ(file.runtimes.size(), 2U);
    const declared_runtime& db = *file.find("db");
    EXPECT_EQ(db.options, json({{"port", "6379"},
                                {"max_memory", "1G"},
                                {"dir", folder_.path() + "/data"},
                                {"listen", "unix://" + folder_.path() + "/a.sock,tcp://*:1"},
                                {"log_traffic", true},
                                {"header", {"a", "1"}},
                                {"password", "hidden"}}));
    EXPECT_EQ(db.group, "g");
    EXPECT_EQ(db.owner, "x");
    EXPECT_FALSE(db.is_to_run);
    EXPECT_EQ(file.find("a.b")->options, json({{"port", 16}}));
}

TEST_F(stack_file_test, all_faults_are_found_with_their_places) {
    write("eddy.toml",
          "sort = 1\n[cahce.a]\nport = 1\n[cache]\nport = 2\n[cache.b]\nprot = 3\n"
          "port = 1979-05-27\nmax_memory = [1]\nstart = 4\nheader = [[1]]\ndir = \"${NONE}\"\n"
          "password_file = \"none\"\nport_file = \"x\"\n[cache.b.c]\n");
    const auto found = faults(read());
    ASSERT_EQ(found.size(), 12U) << ::testing::PrintToString(found);
    EXPECT_THAT(found[0], HasSubstr("1:1: sort stands in no runtime"));
    EXPECT_THAT(found[1], HasSubstr("did you mean cache?"));
    EXPECT_THAT(found[2], HasSubstr("5:1: port stands in no runtime: write [cache.NAME]"));
    EXPECT_THAT(found[3], HasSubstr("7:1: b: a cache has no option \"prot\"; did you mean port?"));
    EXPECT_THAT(found[4], HasSubstr("write it in quotes"));
    EXPECT_THAT(found[5], HasSubstr("9:1: b: max_memory cannot be a list"));
    EXPECT_THAT(found[6], HasSubstr("start may be true or false"));
    EXPECT_THAT(found[7], HasSubstr("header is a list of texts"));
    EXPECT_THAT(found[8], HasSubstr("the environment has no NONE"));
    EXPECT_THAT(found[9], HasSubstr("none cannot be read"));
    EXPECT_THAT(found[10], HasSubstr("no option \"port_file\""));
    EXPECT_THAT(found[11], HasSubstr("15:10: b: c cannot be used: it is a table"));
}

TEST_F(stack_file_test, an_error_of_syntax_has_its_place) {
    write("eddy.toml", "[cache.a]\nport = \n");
    const stack_file file = read();
    ASSERT_EQ(file.faults.size(), 1U);
    EXPECT_EQ(file.faults[0].at.line, 2U);
    write("eddy.toml", "a = " + std::string(2000, '['));
    EXPECT_EQ(read().faults.size(), 1U);
    write("eddy.toml", std::string("a = \"\0\"", 7) + "\xff\xfe");
    EXPECT_EQ(read().faults.size(), 1U);
}

TEST_F(stack_file_test, includes_are_read_and_limited) {
    ::mkdir((folder_.path() + "/conf.d").c_str(), 0700);
    write("eddy.toml",
          "stack = \"s\"\ninclude = [\"one.toml\", \"conf.d/*.toml\", \"none/*.toml\"]\n");
    write("one.toml", "[cache.one]\ndir = \"x\"\n");
    write("conf.d/b.toml", "[cache.b]\ndir = \"x\"\n");
    write("conf.d/a.toml", "[cache.a]\n");
    stack_file file = read();
    EXPECT_THAT(faults(file), ElementsAre());
    std::vector<std::string> names;
    for (const declared_runtime& each : file.runtimes) names.push_back(each.name);
    EXPECT_THAT(names, ElementsAre("one", "a", "b"));
    EXPECT_EQ(file.find("b")->options["dir"], folder_.path() + "/conf.d/x");
    EXPECT_EQ(file.files.size(), 4U);

    write("one.toml", "include = \"eddy.toml\"\n[cache.a]\n");
    write("conf.d/b.toml", "stack = \"x\"\ninclude = \"missing.toml\"\n");
    file = read();
    ASSERT_EQ(file.faults.size(), 4U) << ::testing::PrintToString(faults(file));
    EXPECT_THAT(file.faults[0].message, HasSubstr("includes itself"));
    EXPECT_THAT(file.faults[1].message, HasSubstr("the file that includes the others"));
    EXPECT_THAT(file.faults[2].message, HasSubstr("missing.toml: it cannot be read"));
    EXPECT_THAT(file.faults[3].message, HasSubstr("\"a\" in"));

    for (int i = 0; i < 12; ++i)
        write("deep" + std::to_string(i) + ".toml",
              "include = \"deep" + std::to_string(i + 1) + ".toml\"\n");
    EXPECT_THAT(read("deep0.toml").faults.at(0).message, HasSubstr("8 deep at most"));
}

TEST_F(stack_file_test, limits_how_deep_values_and_keys_nest) {
    const auto fault_of = [this](const std::string& text) {
        write("eddy.toml", text);
        const std::vector<std::string> all = faults(read());
        return all.empty() ? std::string() : all.front();
    };
    const auto repeated = [](std::string_view text, int times) {
        std::string made;
        for (int i = 0; i < times; ++i) made += text;
        return made;
    };
    const std::string line = "[cache.a]\nheader = ";
    EXPECT_THAT(fault_of(line + repeated("[", 16) + repeated("]", 16)), HasSubstr("list of texts"));
    EXPECT_EQ(fault_of(line + repeated("[", 17) + repeated("]", 17)),
              "2:26: lists and tables nest 16 deep at most");
    EXPECT_THAT(fault_of(line + repeated("{a = ", 17)), HasSubstr("16 deep at most"));
    EXPECT_THAT(fault_of("[" + repeated("a.", 15) + "b]"), HasSubstr("\"a\""));
    EXPECT_EQ(fault_of("[cache.a]\n" + repeated("a . ", 16) + "b = 1\n"),
              "2:63: a key has at most 16 parts");
    EXPECT_THAT(fault_of("[" + repeated("a.", 16) + "b]"), HasSubstr("at most 16 parts"));
    EXPECT_THAT(fault_of(repeated("'a.b'.", 16) + "b = 1"), HasSubstr("at most 16 parts"));
    EXPECT_THAT(fault_of("a = [\n\"\"\"\n[\"\"\"\"\", " + repeated("[\n", 17)),
                HasSubstr("18:1: lists and tables"));
    // Texts and comments may have any number, and a header that is not closed ends with its line.
    const std::string many = repeated("[a.", 20);
    EXPECT_EQ(fault_of("# " + many + "\n" + line + "['" + many + "', \"\\\"" + many + "\", '''\n" +
                       many + "''', \"\"\"\n\\\"\"" + many + "\"\"\"]"),
              "");
    EXPECT_THAT(fault_of(repeated("[cache.a\n", 20)), HasSubstr("1:"));
}

TEST_F(stack_file_test, limits_what_a_pattern_of_an_include_reads) {
    for (int i = 0; i < 50; ++i) {
        const std::string folder = folder_.path() + "/" + std::to_string(i);
        ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
        ASSERT_EQ(::symlink("..", (folder + "/up").c_str()), 0);
    }
    write("7/a.toml", "[cache.a]\n");
    write("eddy.toml", "include = \"*/a.toml\"\n");
    EXPECT_EQ(read().runtimes.size(), 1U);
    // Each level reads the folder of 50 again, for each of the level before.
    write("eddy.toml", "include = \"*/up/*/up/*/up/*/a.toml\"\n");
    EXPECT_THAT(faults(read()),
                ElementsAre("1:1: */up/*/up/*/up/*/a.toml: its folders have more than 100000 "
                            "entries; write a narrower pattern"));
}

TEST_F(stack_file_test, refuses_files_that_are_none) {
    const std::string path = folder_.path() + "/eddy.toml";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_THAT(read().faults.at(0).message, HasSubstr("FIFO"));
    ::unlink(path.c_str());
    ASSERT_EQ(::symlink("eddy.toml", path.c_str()), 0);
    EXPECT_THAT(read().faults.at(0).message, HasSubstr("cannot be read"));
    ::unlink(path.c_str());
    ASSERT_EQ(::symlink("/dev/zero", path.c_str()), 0);
    EXPECT_THAT(read().faults.at(0).message, HasSubstr("device"));
    ::unlink(path.c_str());
    write("eddy.toml", "");
    ASSERT_EQ(::truncate(path.c_str(), 1 << 30), 0);
    EXPECT_THAT(read().faults.at(0).message, HasSubstr("more than 4 MiB"));
    ::unlink(path.c_str());
    write("real.toml", "stack = \"x\"\n[cache.a]\n");
    ASSERT_EQ(::symlink("real.toml", path.c_str()), 0);
    EXPECT_THAT(faults(read()), ElementsAre());
}

TEST_F(stack_file_test, says_what_to_write_in_place_of_other_files) {
    EXPECT_THAT(faults(read()), ElementsAre(HasSubstr("there is none; name the file (-f FILE)")));
    EXPECT_THAT(faults(read("/x/.y")), ElementsAre(HasSubstr("cannot be read")));
    write("compose.yaml", "services:\n  web:\n    image: x\n");
    EXPECT_THAT(faults(read("compose.yaml")), Contains(HasSubstr("TOML, not YAML")));
    write("eddy.toml", "port = 6379\n");
    EXPECT_THAT(faults(read()), Contains(HasSubstr("port stands in no runtime")));
}

TEST_F(stack_file_test, files_that_others_can_write_or_read_are_named) {
    write("secret", "x");
    write("eddy.toml", "stack = \"s\"\n[cache.a]\npassword_file = \"secret\"\n");
    ::chmod((folder_.path() + "/secret").c_str(), 0600);
    ::chmod((folder_.path() + "/eddy.toml").c_str(), 0644);
    EXPECT_TRUE(read().warnings.empty());
    ::chmod((folder_.path() + "/secret").c_str(), 0644);
    ::chmod((folder_.path() + "/eddy.toml").c_str(), 0666);
    const stack_file file = read();
    ASSERT_EQ(file.warnings.size(), 2U);
    EXPECT_THAT(file.warnings[0].message, HasSubstr("can write it"));
    EXPECT_THAT(file.warnings[1].message, HasSubstr("can read the secret"));
    EXPECT_TRUE(file.faults.empty());
}

TEST_F(stack_file_test, the_stack_has_a_name_of_its_own) {
    ::mkdir((folder_.path() + "/shop").c_str(), 0700);
    write("shop/eddy.toml", "");
    write("shop/other.toml", "");
    write("shop/two words.toml", "");
    EXPECT_EQ(read("shop/eddy.toml").name, "shop");
    EXPECT_EQ(read("shop").name, "shop");
    EXPECT_EQ(read("shop/other.toml").name, "other");
    EXPECT_THAT(read("shop/two words.toml").faults.at(0).message, HasSubstr("stack = \"NAME\""));
}

TEST_F(stack_file_test, an_export_is_read_again) {
    const json options = {{"port", 6379},
                          {"dir", "/a \"b\" ${c} \\"},
                          {"header", {"x", "$$"}},
                          {"log_traffic", true},
                          {"password", "***"}};
    const json runtimes = json::array({{{"name", "d.b"},
                                        {"type", "cache"},
                                        {"status", "stopped"},
                                        {"on_parent_stop", "keep"},
                                        {"group", "g"},
                                        {"options", options}}});
    write("eddy.toml", exported(with_, runtimes, "all"));
    stack_file file = read_stack(with_, folder_.path() + "/eddy.toml",
                                 [](std::string_view name) -> std::optional<std::string> {
                                     EXPECT_EQ(name, "EDDY_D_B_PASSWORD");
                                     return "secret";
                                 });
    EXPECT_THAT(faults(file), ElementsAre());
    ASSERT_NE(file.find("d.b"), nullptr);
    json expected = options;
    expected["password"] = "secret";
    EXPECT_EQ(file.find("d.b")->options, expected);
    EXPECT_FALSE(file.find("d.b")->is_to_run);
    EXPECT_EQ(file.find("d.b")->on_parent_stop, "keep");
    EXPECT_THAT(read().faults.at(0).message, HasSubstr("the secret of d.b in password"));
}

}  // namespace
}  // namespace eddy::cli
