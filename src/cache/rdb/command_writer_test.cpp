// Tests of the commands that make a key, as bytes. The random tests of snapshots execute them.
#include "cache/rdb/command_writer.hpp"

#include "cache/rdb/snapshot_fixture.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using namespace cache::testing;

// Words of each command, a line each.
std::string commands_of(cache_with_client& it, std::string_view key, std::size_t limit = SIZE_MAX) {
    engine::state& state = it.home.internals();
    const keyspace& keys = *state.data.keyspaces[0];
    const dictionary::slot* const at = keys.table().find(key, keys.table().hash(key));
    EXPECT_NE(at, nullptr);
    rdb::command_writer writer(state.data.env);
    writer.begin_key(*dictionary::entry_of(*at));
    byte_buffer out;
    std::string written;
    for (bool whole = false; !whole;) {
        std::size_t parts = limit;
        out.clear();
        whole = writer.write(out, limit, parts);
        written += out.text();
    }
    std::string lines;
    std::string_view rest = written;
    resp::request_parser parser;
    while (!rest.empty()) {
        const resp::request_outcome next = parser.next(rest);
        if (next.status != resp::parse_status::complete) return lines + "incomplete";
        for (const std::string_view word : next.request.args()) (lines += word) += ' ';
        lines.back() = '\n';
        rest.remove_prefix(next.consumed);
    }
    return lines;
}

TEST(rdb_command_writer, each_type_has_the_command_that_makes_it) {
    cache_with_client it;
    it.ask("SET text some");
    it.ask("SET number 12");
    it.ask("RPUSH list a 2 c");
    it.ask("SADD set 3 1");
    it.ask("HSET hash f v g 2");
    it.ask("ZADD ranks 1.5 b -inf a 3 c");
    it.ask("PEXPIREAT list 1700000099000");
    EXPECT_EQ(commands_of(it, "text"), "SET text some\n");
    EXPECT_EQ(commands_of(it, "number"), "SET number 12\n");
    EXPECT_EQ(commands_of(it, "list"), "RPUSH list a 2 c\nPEXPIREAT list 1700000099000\n");
    EXPECT_EQ(commands_of(it, "set"), "SADD set 1 3\n");
    EXPECT_EQ(commands_of(it, "hash"), "HMSET hash f v g 2\n");
    EXPECT_EQ(commands_of(it, "ranks"), "ZADD ranks -inf a 1.5 b 3 c\n");
}

TEST(rdb_command_writer, fields_that_expire_get_their_times) {
    cache_with_client it;
    it.ask("HSET hash f v");
    it.ask("HPEXPIREAT hash 1700000099000 FIELDS 1 f");
    EXPECT_EQ(commands_of(it, "hash"),
              "HMSET hash f v\nHPEXPIREAT hash 1700000099000 FIELDS 1 f\n");
}

TEST(rdb_command_writer, a_stream_has_its_ids_groups_and_pending_entries) {
    cache_with_client it;
    it.ask("XADD s 1-1 f v");
    it.ask("XADD s 2-0 f 7 g -8");
    it.ask("XADD s 3-0 f v");
    it.ask("XDEL s 3-0");
    it.ask("XGROUP CREATE s g 0");
    it.ask("XREADGROUP GROUP g c COUNT 1 STREAMS s >");
    it.ask("XGROUP CREATECONSUMER s g idle");
    EXPECT_EQ(commands_of(it, "s"),
              "XADD s 1-1 f v\nXADD s 2-0 f 7 g -8\n"
              "XSETID s 3-0 ENTRIESADDED 3 MAXDELETEDID 3-0\n"
              "XGROUP CREATE s g 1-1 ENTRIESREAD -1\n"
              "XGROUP CREATECONSUMER s g c\n"
              "XCLAIM s g c 0 1-1 TIME 1700000000000 RETRYCOUNT 1 JUSTID FORCE\n"
              "XGROUP CREATECONSUMER s g idle\n");
}

TEST(rdb_command_writer, a_stream_without_an_entry_is_made_by_one_that_is_trimmed_away) {
    cache_with_client it;
    it.ask("XGROUP CREATE s g $ MKSTREAM");
    EXPECT_EQ(commands_of(it, "s"),
              "XADD s MAXLEN 0 0-1 x y\nXSETID s 0-0 ENTRIESADDED 0 MAXDELETEDID 0-0\n"
              "XGROUP CREATE s g 0-0 ENTRIESREAD -1\n");
}

TEST(rdb_command_writer, a_command_has_64_elements_at_most_however_it_is_split) {
    cache_with_client it;
    std::string expected;
    for (int i = 0; i < 130; ++i) {
        const std::string element = "element " + std::to_string(i);
        it.ask({"RPUSH", "list", element});
        if (i % 64 == 0) expected += "RPUSH list ";
        expected += element + (i % 64 == 63 || i == 129 ? '\n' : ' ');
    }
    const std::string large(10'000, 'x');
    it.ask({"SET", large, large});
    for (const std::size_t limit : {std::size_t{1}, std::size_t{7}, std::size_t{5000}}) {
        EXPECT_EQ(commands_of(it, "list", limit), expected);
        EXPECT_EQ(commands_of(it, large, limit), "SET " + large + " " + large + "\n");
    }
}

}  // namespace
}  // namespace eddy::cache
