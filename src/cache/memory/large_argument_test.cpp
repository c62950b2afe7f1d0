// Tests of large arguments: received in pieces, and kept as values without a copy.
#include "cache/memory/large_argument.hpp"

#include "cache/engine/engine_state.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using testing::arguments;
using testing::test_client;

constexpr std::size_t least = large_argument::least_size;

/// As a connection receives it, with the line's end behind it.
large_argument received(std::string_view text) {
    large_argument made(text.size(), 0, text.substr(0, 100));
    const std::string all = std::string(text) + "\r\n";
    for (std::size_t at = 100; !made.is_whole();) {
        const mutable_bytes room = made.room();
        EXPECT_FALSE(room.empty());
        EXPECT_LE(room.size(), large_argument::most_at_once);
        const std::size_t size = std::min(room.size(), all.size() - at);
        std::memcpy(room.data(), all.data() + at, size);
        made.note_received(size);
        at += size;
    }
    return made;
}

std::string text_of(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 131 >> 3);
    return text;
}

class large_arguments : public ::testing::Test {
protected:
    /// Executes a command of which the arguments with such a size are large.
    std::string ask(const arguments& args) {
        std::vector<std::string_view> views(args.begin(), args.end());
        std::vector<large_argument> large;
        large.reserve(args.size());
        kept_at_.clear();
        for (std::string_view& each : views) {
            if (each.size() < least) continue;
            large.push_back(received(each));
            each = large.back().text();
            kept_at_.push_back(each.data());
        }
        byte_buffer out;
        EXPECT_EQ(engine_.execute(client_.who(), {views.data(), views.size()}, large, out), 1U);
        EXPECT_TRUE(large.empty());
        return std::string(out.text());
    }
    const char* place_of(std::string_view key) {
        keyspace& keys = engine_.internals().data.database(0);
        auto* const place = keys.find_to_read(key, keys.hash(key));
        const entry& e = *keyspace::at(place);
        return e.held_as == encoding::external ? e.pointer<text_block>()->bytes() : nullptr;
    }
    std::size_t used() { return engine_.internals().data.env.memory.used_bytes(); }
    void free_all() {
        while (engine_.upkeep()) {
        }
    }

    engine engine_;
    test_client client_{engine_};
    std::vector<const char*> kept_at_;  // the large arguments of the last command
};

TEST_F(large_arguments, memory_is_taken_as_bytes_come) {
    constexpr std::size_t size = 100U << 20;
    large_argument begun(size, 0, "some");
    EXPECT_LE(begun.held_bytes(), least);
    std::size_t there = 4;
    while (there < 5U << 20) {
        const std::size_t room = begun.room().size();
        begun.note_received(room);
        there += room;
        EXPECT_LE(begun.held_bytes(), 2 * there + least);
    }
}

TEST_F(large_arguments, a_string_keeps_the_block_in_which_its_value_came) {
    const std::string value = text_of(3 * least + 5);
    for (const arguments& command :
         {arguments{"SET", "k", value}, arguments{"SET", "k", value, "PX", "100000"},
          arguments{"SETEX", "k", "100", value}, arguments{"MSET", "other", "1", "k", value}}) {
        EXPECT_EQ(ask(command), "+OK\r\n") << command[0];
        EXPECT_EQ(place_of("k"), kept_at_.at(0)) << command[0];
        EXPECT_TRUE(client_("GET k") ==
                    "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n");
    }
    EXPECT_EQ(ask({"GETSET", "k", value}).size(), value.size() + 11);
    EXPECT_EQ(place_of("k"), kept_at_.at(0));
    EXPECT_EQ(ask({"SETNX", "new", value}), ":1\r\n");
    EXPECT_EQ(place_of("new"), kept_at_.at(0));
    // It is a value as any other.
    EXPECT_EQ(client_("APPEND k x"), ":" + std::to_string(value.size() + 1) + "\r\n");
    EXPECT_EQ(client_("SETRANGE new 1 abc"), ":" + std::to_string(value.size()) + "\r\n");
    EXPECT_EQ(client_("GETRANGE new 1 3"), "$3\r\nabc\r\n");
}

TEST_F(large_arguments, memory_is_counted_once_and_given_back) {
    free_all();
    const std::size_t before = used();
    const std::string value = text_of(10U << 20);
    EXPECT_EQ(ask({"SET", "k", value}), "+OK\r\n");
    EXPECT_GE(used() - before, value.size());
    EXPECT_LE(used() - before, value.size() + 1000);
    EXPECT_EQ(ask({"SET", "k", value}), "+OK\r\n");
    free_all();
    EXPECT_LE(used() - before, value.size() + 1000);
    EXPECT_EQ(client_("DEL k"), ":1\r\n");
    free_all();
    EXPECT_LE(used(), before + 1000);
}

TEST_F(large_arguments, what_nobody_keeps_is_freed_later) {
    const std::string value = text_of(10U << 20);
    free_all();
    const std::size_t before = used();
    EXPECT_EQ(ask({"HSET", "h", "f", "small", value, "v"}), ":2\r\n");
    EXPECT_EQ(client_("DEL h"), ":1\r\n");
    EXPECT_TRUE(ask({"ECHO", value}).starts_with("$10485760\r\n"));
    EXPECT_EQ(ask({"SETNX", "k", value}), ":1\r\n");
    EXPECT_EQ(ask({"SETNX", "k", value}), ":0\r\n");
    EXPECT_TRUE(ask({"LPUSH", "k", value}).starts_with("-WRONGTYPE"));
    EXPECT_TRUE(ask({"NOSUCH", value}).starts_with("-ERR unknown command"));
    EXPECT_EQ(client_("DEL k"), ":1\r\n");
    free_all();
    EXPECT_LE(used(), before + 4096);
}

TEST_F(large_arguments, two_of_one_command_and_a_key_that_is_set_twice) {
    const std::string first = text_of(least);
    const std::string second = text_of(2 * least);
    EXPECT_EQ(ask({"MSET", "a", first, "b", second}), "+OK\r\n");
    EXPECT_EQ(place_of("a"), kept_at_.at(0));
    EXPECT_EQ(place_of("b"), kept_at_.at(1));
    EXPECT_EQ(ask({"MSET", "a", first, "a", second}), "+OK\r\n");
    EXPECT_EQ(place_of("a"), kept_at_.at(1));
    EXPECT_EQ(client_("STRLEN a"), ":" + std::to_string(second.size()) + "\r\n");
}

TEST_F(large_arguments, a_transaction_has_copies) {
    const std::string value = text_of(least);
    EXPECT_EQ(client_("MULTI"), "+OK\r\n");
    EXPECT_EQ(ask({"SET", "k", value}), "+QUEUED\r\n");
    free_all();
    EXPECT_EQ(client_("EXEC"), "*1\r\n+OK\r\n");
    EXPECT_EQ(client_("STRLEN k"), ":" + std::to_string(value.size()) + "\r\n");
}

}  // namespace
}  // namespace eddy::cache
