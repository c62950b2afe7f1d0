// Tests of etcd's JSON: answers of etcd 3.4, damaged ones, and the bodies of requests.
#include "cluster/etcd/etcd_messages.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::cluster {
namespace {

constexpr std::string_view header =
    R"("header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437",)"
    R"("revision":"7","raft_term":"2"})";

std::string answer(std::string_view rest) {
    return "{" + std::string(header) + (rest.empty() ? "" : ",") + std::string(rest) + "}";
}

TEST(etcd_messages, reads_a_range) {
    const auto read = read_etcd_range(answer(
        R"("kvs":[{"key":"YQ==","create_revision":"2","mod_revision":"6","version":"3",)"
        R"("value":"aGVsbG8=","lease":"7587"}, {"key":"YgA=","mod_revision":5}],"more":true,"count":"9")"));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->header.cluster_id, 14841639068965178418U);
    EXPECT_EQ(read->header.revision, 7);
    EXPECT_TRUE(read->has_more);
    ASSERT_EQ(read->entries.size(), 2u);
    EXPECT_EQ(read->entries[0], (etcd_entry{"a", "hello", 2, 6, 7587}));
    // Zeroes and empty texts are left out.
    EXPECT_EQ(read->entries[1], (etcd_entry{std::string("b\0", 2), "", 0, 5, 0}));
    const auto none = read_etcd_range(answer(""));
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->entries.empty());
}

TEST(etcd_messages, reads_a_transaction) {
    const auto written = read_etcd_write(
        answer(R"("succeeded":true,"responses":[{"response_put":{"header":{"revision":"7"}}}])"));
    ASSERT_TRUE(written);
    EXPECT_TRUE(written->is_written);
    const auto found = read_etcd_write(answer(
        R"("responses":[{"response_range":{"header":{},"kvs":[{"key":"YQ==","value":"eA=="}]}}])"));
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->is_written);
    ASSERT_TRUE(found->found);
    EXPECT_EQ(found->found->value, "x");
    const auto absent =
        read_etcd_write(answer(R"("responses":[{"response_range":{"header":{}}}])"));
    ASSERT_TRUE(absent);
    EXPECT_FALSE(absent->is_written);
    EXPECT_FALSE(absent->found);
}

TEST(etcd_messages, reads_leases) {
    const auto granted = read_etcd_grant(answer(R"("ID":"7587","TTL":"5")"));
    ASSERT_TRUE(granted);
    EXPECT_EQ(granted->id, 7587);
    EXPECT_EQ(granted->ttl, 5);
    EXPECT_FALSE(read_etcd_grant(answer(R"("TTL":"5")")));
    EXPECT_FALSE(read_etcd_grant(answer(R"("ID":"7587")")));
    const auto kept =
        read_etcd_keep_alive("{\"result\":" + answer(R"("ID":"7587","TTL":"5")") + "}\n");
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->ttl, 5);
    const auto unknown = read_etcd_keep_alive("{\"result\":" + answer(R"("ID":"1")") + "}");
    ASSERT_TRUE(unknown);
    EXPECT_EQ(unknown->ttl, 0);
    EXPECT_FALSE(read_etcd_keep_alive(answer(R"("ID":"7587","TTL":"5")")));
    const auto gone = read_etcd_time_to_live(answer(R"("ID":"1","TTL":"-1","grantedTTL":"0")"));
    ASSERT_TRUE(gone);
    EXPECT_EQ(gone->ttl, -1);
}

TEST(etcd_messages, reads_lines_of_a_watch) {
    const auto created = read_etcd_watch_line("{\"result\":" + answer(R"("created":true)") + "}");
    ASSERT_TRUE(created);
    EXPECT_TRUE(created->is_created);
    const auto changed = read_etcd_watch_line(
        "{\"result\":" +
        answer(R"("events":[{"kv":{"key":"YQ==","mod_revision":"7","value":"eA==","lease":"3"}},)"
               R"({"type":"DELETE","kv":{"key":"Yg==","mod_revision":"7"}}])") +
        "}");
    ASSERT_TRUE(changed);
    ASSERT_EQ(changed->events.size(), 2u);
    EXPECT_FALSE(changed->events[0].is_removal);
    EXPECT_EQ(changed->events[0].entry.value, "x");
    EXPECT_TRUE(changed->events[1].is_removal);
    EXPECT_EQ(changed->events[1].entry.key, "b");
    // One of a compacted revision has no revision in its header.
    const auto canceled = read_etcd_watch_line(
        R"({"result":{"header":{"cluster_id":"1"},"canceled":true,"compact_revision":"5"}})");
    ASSERT_TRUE(canceled);
    EXPECT_TRUE(canceled->is_canceled);
    EXPECT_EQ(canceled->compact_revision, 5);
}

TEST(etcd_messages, reads_errors) {
    const auto plain = read_etcd_failure(
        R"({"error":"etcdserver: requested lease not found","message":"etcdserver: …","code":5})");
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->code, 5);
    EXPECT_EQ(plain->message, "etcdserver: requested lease not found");
    const auto of_stream = read_etcd_failure(
        R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}})");
    ASSERT_TRUE(of_stream);
    EXPECT_EQ(of_stream->code, 14);
    EXPECT_EQ(of_stream->message, "etcdserver: no leader");
    EXPECT_FALSE(read_etcd_failure(answer("")));
    EXPECT_FALSE(read_etcd_failure("<html>502 Bad Gateway</html>"));
    EXPECT_FALSE(read_etcd_failure(R"({"error":[]})"));
    EXPECT_TRUE(read_etcd_token(answer(R"("token":"abc.1")")));
    EXPECT_FALSE(read_etcd_token(answer("")));
}

TEST(etcd_messages, takes_nothing_else) {
    const std::string deep =
        answer("\"kvs\":" + std::string(max_etcd_depth, '[') + std::string(max_etcd_depth, ']'));
    for (const std::string& text : {
             std::string(),
             std::string("null"),
             std::string("[]"),
             std::string("{}"),
             std::string("{\"header\":7}"),
             std::string("{\"header\":{\"cluster_id\":\"0\"}}"),
             std::string("{\"header\":{\"cluster_id\":\"one\"}}"),
             std::string("{\"header\":{\"cluster_id\":\"1\",\"revision\":\"-1\"}}"),
             std::string("{\"header\":{\"cluster_id\":\"1\",\"revision\":\"7x\"}}"),
             std::string("{\"header\":{\"cluster_id\":\"1\",\"revision\":7.5}}"),
             std::string("{\"header\":{\"cluster_id\":\"99999999999999999999\"}}"),
             answer(R"("kvs":7)"),
             answer(R"("kvs":[7])"),
             answer(R"("kvs":[{}])"),
             answer(R"("kvs":[{"key":"!"}])"),
             answer(R"("kvs":[{"key":"YQ==","value":7}])"),
             answer(R"("kvs":[{"key":"YQ==","lease":true}])"),
             answer(R"("more":"yes")"),
             deep,
         }) {
        EXPECT_FALSE(read_etcd_range(text)) << text;
        EXPECT_FALSE(read_etcd_keep_alive(text)) << text;
        EXPECT_FALSE(read_etcd_watch_line(text)) << text;
        EXPECT_FALSE(read_etcd_watch_line("{\"result\":" + text + "}") &&
                     text.find("header\":{\"cluster_id\":\"1484") == std::string::npos)
            << text;
    }
    EXPECT_FALSE(read_etcd_watch_line("{\"result\":" + answer(R"("events":[{}])") + "}"));
    EXPECT_FALSE(read_etcd_watch_line("{\"result\":" + answer(R"("events":[{"kv":{}}])") + "}"));
    EXPECT_FALSE(read_etcd_watch_line("{\"result\":" + answer(R"("events":{})") + "}"));
    EXPECT_FALSE(read_etcd_write(answer(R"("responses":[7])")));
    EXPECT_FALSE(read_etcd_write(answer(R"("responses":[{"response_range":7}])")));
}

/// Each prefix of an answer is none, and kills nothing.
TEST(etcd_messages, takes_no_part_of_an_answer) {
    const std::string whole = answer(
        R"("kvs":[{"key":"YQ==","create_revision":"2","value":"aGVsbG8=","lease":"7587"}],"more":true)");
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(read_etcd_range(std::string_view(whole).substr(0, size))) << size;
    EXPECT_TRUE(read_etcd_range(whole));
}

TEST(etcd_messages, writes_requests) {
    EXPECT_EQ(write_etcd_range({"a", "b", 3, 9, true}),
              R"({"key":"YQ==","range_end":"Yg==","limit":"3","revision":"9","keys_only":true})");
    EXPECT_EQ(write_etcd_range({"a"}), R"({"key":"YQ=="})");
    etcd_condition absent;
    absent.is_absent = true;
    EXPECT_EQ(
        write_etcd_write("a", "x", 7, absent),
        R"({"compare":[{"key":"YQ==","target":"CREATE","result":"EQUAL","create_revision":"0"}],)"
        R"("success":[{"request_put":{"key":"YQ==","value":"eA==","lease":"7"}}],)"
        R"("failure":[{"request_range":{"key":"YQ=="}}]})");
    etcd_condition own;
    own.lease = 7;
    own.mod_revision = 5;
    EXPECT_EQ(write_etcd_write("a", "x", 0, own),
              R"({"compare":[{"key":"YQ==","target":"LEASE","result":"EQUAL","lease":"7"},)"
              R"({"key":"YQ==","target":"MOD","result":"EQUAL","mod_revision":"5"}],)"
              R"("success":[{"request_put":{"key":"YQ==","value":"eA=="}}],)"
              R"("failure":[{"request_range":{"key":"YQ=="}}]})");
    EXPECT_EQ(write_etcd_grant(5), R"({"TTL":"5"})");
    EXPECT_EQ(write_etcd_lease(7587), R"({"ID":"7587"})");
    EXPECT_EQ(write_etcd_authenticate("me", "a\"b"), R"({"name":"me","password":"a\"b"})");
    EXPECT_EQ(write_etcd_watch({"a", "b", 0, 8}),
              R"({"create_request":{"key":"YQ==","range_end":"Yg==","start_revision":"8",)"
              R"("fragment":true}})");
}

TEST(etcd_messages, knows_the_end_of_a_prefix) {
    EXPECT_EQ(etcd_prefix_end("eddy/members/"), "eddy/members0");
    EXPECT_EQ(etcd_prefix_end("a\xff\xff"), "b");
}

}  // namespace
}  // namespace eddy::cluster
