// Tests of hints, completion and help, from replies to COMMAND DOCS as Redis writes them.
#include "cli/commands/command_docs.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace eddy::cli {
namespace {

reply text(std::string value) {
    reply made;
    made.type = resp::reply_type::bulk;
    made.text = std::move(value);
    return made;
}

reply array(std::vector<reply> elements) {
    reply made;
    made.type = resp::reply_type::array;
    made.elements = std::move(elements);
    return made;
}

reply flags(std::initializer_list<const char*> names) {
    std::vector<reply> all;
    for (const char* const each : names) all.push_back(text(each));
    return array(std::move(all));
}

/// An argument of a name and type, with further members.
reply argument(const char* name, const char* type, std::vector<reply> more = {}) {
    std::vector<reply> all = {text("name"), text(name), text("type"), text(type)};
    all.insert(all.end(), more.begin(), more.end());
    return array(std::move(all));
}

reply token(const char* name) { return argument(name, "pure-token", {text("token"), text(name)}); }

reply docs_of(const char* summary, const char* group, std::vector<reply> arguments,
              std::vector<reply> subcommands = {}) {
    std::vector<reply> all = {text("summary"), text(summary), text("since"),
                              text("1.0.0"),   text("group"), text(group)};
    if (!arguments.empty()) {
        all.push_back(text("arguments"));
        all.push_back(array(std::move(arguments)));
    }
    if (!subcommands.empty()) {
        all.push_back(text("subcommands"));
        all.push_back(array(std::move(subcommands)));
    }
    return array(std::move(all));
}

const command_docs docs(
    array({text("set"),
           docs_of("Sets a value.", "string",
                   {argument("key", "key", {text("display_text"), text("key")}),
                    argument("value", "string"),
                    argument("condition", "oneof",
                             {text("flags"), flags({"optional"}), text("arguments"),
                              array({token("NX"), token("XX")})}),
                    argument("seconds", "integer",
                             {text("token"), text("EX"), text("flags"), flags({"optional"})})}),
           text("setex"), docs_of("Sets a value that expires.", "string", {argument("key", "key")}),
           text("bitop"),
           docs_of("Combines bits.", "bitmap",
                   {argument("operation", "oneof",
                             {text("arguments"), array({token("AND"), token("OR")})}),
                    argument("destkey", "key"),
                    argument("key", "key", {text("flags"), flags({"multiple"})})}),
           text("ping"), docs_of("Answers.", "connection", {}), text("config"),
           docs_of("A container.", "server", {},
                   {text("config|get"),
                    docs_of("Shows parameters.", "server", {argument("parameter", "string")}),
                    text("config|set"),
                    docs_of("Sets parameters.", "server",
                            {argument("data", "block",
                                      {text("flags"), flags({"multiple"}), text("arguments"),
                                       array({argument("parameter", "string"),
                                              argument("value", "string")})})})})}));

TEST(command_docs, hints_show_the_arguments_that_are_left) {
    EXPECT_EQ(docs.hint("set "), "key value [NX | XX] [EX seconds]");
    EXPECT_EQ(docs.hint("SET k "), "value [NX | XX] [EX seconds]");
    EXPECT_EQ(docs.hint("set k v "), "[NX | XX] [EX seconds]");
    EXPECT_EQ(docs.hint("set k v NX "), "[NX | XX] [EX seconds]") << "it may still be any";
    EXPECT_EQ(docs.hint("bitop "), "<AND | OR> destkey key [key ...]");
    EXPECT_EQ(docs.hint("config set "), "parameter value [parameter value ...]");
    EXPECT_EQ(docs.hint("config"), "");
    EXPECT_EQ(docs.hint("ping "), "");
    EXPECT_EQ(docs.hint("nosuch "), "");
    EXPECT_EQ(docs.hint(""), "");
}

TEST(command_docs, names_are_completed_in_the_case_they_are_typed_in) {
    using names = std::vector<std::string>;
    EXPECT_EQ(docs.completions("se"), (names{"set", "setex"}));
    EXPECT_EQ(docs.completions("SETE"), names{"SETEX"});
    EXPECT_EQ(docs.completions("conf"), names{"config"});
    EXPECT_EQ(docs.completions("config s"), names{"config set"});
    EXPECT_EQ(docs.completions("config "), (names{"config get", "config set"}));
    EXPECT_EQ(docs.completions("help bi"), names{"help bitop"});
    EXPECT_TRUE(docs.completions("set k").empty());
    EXPECT_TRUE(docs.completions("x").empty());
}

TEST(command_docs, help_is_of_a_command_its_subcommands_or_a_group) {
    EXPECT_EQ(docs.help(std::vector<std::string>{"Set"}),
              "SET key value [NX | XX] [EX seconds]\n  Sets a value.\n  since 1.0.0, of @string\n");
    const std::string config = docs.help(std::vector<std::string>{"config"});
    EXPECT_NE(config.find("CONFIG GET parameter\n"), std::string::npos);
    EXPECT_NE(config.find("CONFIG SET parameter value"), std::string::npos);
    EXPECT_TRUE(docs.help(std::vector<std::string>{"config", "get"}).starts_with("CONFIG GET"));
    const std::string strings = docs.help(std::vector<std::string>{"@String"});
    EXPECT_NE(strings.find("SETEX key"), std::string::npos);
    EXPECT_EQ(strings.find("PING"), std::string::npos);
    EXPECT_NE(docs.help({}).find("help COMMAND"), std::string::npos);
    EXPECT_NE(docs.help(std::vector<std::string>{"sett"}).find("did you mean SET?"),
              std::string::npos);
    EXPECT_NE(docs.help(std::vector<std::string>{"@nosuch"}).find("no group"), std::string::npos);
}

TEST(command_docs, a_reply_without_docs_gives_none) {
    reply refused;
    refused.type = resp::reply_type::error;
    refused.text = "NOPERM";
    const command_docs none(refused);
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(none.hint("set "), "");
    EXPECT_TRUE(none.completions("s").empty());
    EXPECT_NE(none.help(std::vector<std::string>{"set"}).find("does not say"), std::string::npos);
}

TEST(command_docs, commands_with_passwords_are_known) {
    using words = std::vector<std::string>;
    const words secret = {"requirepass", "masterauth"};
    for (const words& each :
         {words{"AUTH", "x"}, words{"hello", "3", "AUTH", "u", "p"},
          words{"acl", "setuser", "u", ">p"}, words{"config", "set", "requirepass", "p"},
          words{"migrate", "h", "1", "k", "0", "1", "AUTH2", "u", "p"}})
        EXPECT_TRUE(has_secret(each, secret)) << each[0];
    for (const words& each :
         {words{}, words{"set", "auth", "x"}, words{"hello", "3"}, words{"acl", "list"},
          words{"config", "get", "requirepass"}, words{"config", "set", "hz", "10"}})
        EXPECT_FALSE(has_secret(each, secret));
}

}  // namespace
}  // namespace eddy::cli
