// Chunks of chat completions: what clients get of each, and ends with and without [DONE].
#include "runtime/stream/sources/completion_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using step = completion_reader::step;

std::string chunk(std::string_view choices) {
    return R"({"id":"c1","object":"chat.completion.chunk","choices":[)" + std::string(choices) +
           "]}";
}
std::string delta(std::string_view members, std::string_view more = "") {
    return chunk(R"({"index":0,"delta":{)" + std::string(members) + "}" + std::string(more) + "}");
}

/// All events of a stream of these data.
std::string events_of(const std::vector<std::string>& data,
                      completion_events wanted = completion_events::pieces) {
    completion_reader reader(wanted);
    std::string all;
    for (const std::string& each : data) {
        EXPECT_EQ(reader.take({.data = each}), step::pieces) << each << ": " << reader.detail();
        for (const std::string& event : reader.events()) all += event;
    }
    reader.end();
    for (const std::string& event : reader.events()) all += event;
    return all;
}

step meaning_of(std::string_view data, std::string_view type = "") {
    completion_reader reader(completion_events::pieces);
    return reader.take({.data = std::string(data), .type = std::string(type)});
}

std::string detail_of(std::string_view data, std::string_view type = "") {
    completion_reader reader(completion_events::pieces);
    reader.take({.data = std::string(data), .type = std::string(type)});
    return reader.detail();
}

TEST(completion_reader, yields_the_content) {
    EXPECT_EQ(events_of({delta(R"("role":"assistant","content":"")"), delta(R"("content":"Good")"),
                         delta(R"("content":" day\n\"you\"")"), delta("")}),
              "data: {\"content\":\"Good\"}\n\n"
              "data: {\"content\":\" day\\n\\\"you\\\"\"}\n\n");
    EXPECT_EQ(events_of({delta(R"("content":[{"type":"text","text":"a"},7,{"type":"x"},)"
                               R"({"type":"text","text":"b"}])")}),
              "data: {\"content\":\"ab\"}\n\n");
}

TEST(completion_reader, ignores_what_is_no_chunk) {
    for (const std::string_view other :
         {R"({"type":"ping"})", R"({"choices":null})", R"({"choices":[]})", R"({"id":"x"})",
          R"({"choices":{}})", R"({"choices":[null,7,[]]})", R"({"choices":[{"delta":null}]})",
          R"({"choices":[{"delta":{"content":7}}]})", "null", "7", "\"text\"", "[]", "", " \n",
          R"({"error":null})", R"({"error":""})", R"({"error":false,"choices":[]})",
          R"({"choices":[],"usage":null,"prompt_filter_results":[{}]})"})
        for (const completion_events wanted :
             {completion_events::pieces, completion_events::content})
            EXPECT_EQ(events_of({std::string(other)}, wanted), "") << other;
}

TEST(completion_reader, passes_on_what_is_no_content) {
    EXPECT_EQ(
        events_of({delta(R"("reasoning_content":"Hm")"), delta(R"("reasoning":"so","content":"")"),
                   delta(R"("tool_calls":[{"index":0,"id":"t","function":{"name":"f",)"
                         R"("arguments":"{\"a\":"}}])"),
                   delta(R"("function_call":{"name":"g"})"), delta(R"("refusal":"I will not.")"),
                   delta(R"("content":null,"tool_calls":[],"refusal":null)",
                         R"(,"finish_reason":"tool_calls")"),
                   R"({"choices":[],"usage":{"total_tokens":9}})"}),
        "event: reasoning\ndata: {\"reasoning_content\":\"Hm\"}\n\n"
        "event: reasoning\ndata: {\"reasoning\":\"so\"}\n\n"
        "event: tool_calls\ndata: {\"tool_calls\":[{\"index\":0,\"id\":\"t\",\"function\":"
        "{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\"}}]}\n\n"
        "event: tool_calls\ndata: {\"function_call\":{\"name\":\"g\"}}\n\n"
        "event: refusal\ndata: {\"refusal\":\"I will not.\"}\n\n"
        "event: finish_reason\ndata: {\"finish_reason\":\"tool_calls\"}\n\n"
        "event: usage\ndata: {\"usage\":{\"total_tokens\":9}}\n\n");
}

TEST(completion_reader, yields_the_content_alone_by_option) {
    EXPECT_EQ(events_of({delta(R"("reasoning":"so")"), delta(R"("content":"a","refusal":"b")"),
                         delta("", R"(,"finish_reason":"stop")"), R"({"usage":{"x":1}})"},
                        completion_events::content),
              "data: {\"content\":\"a\"}\n\n");
}

TEST(completion_reader, passes_chunks_on_as_they_came_by_option) {
    const std::string odd = "{\"choices\":[],\n\"more\":\"\\ud83d \xFF\"}";
    EXPECT_EQ(
        events_of({delta(R"("content":"a")"), R"({"type":"ping"})", odd, R"({"usage":{"x":1.50}})"},
                  completion_events::chunks),
        "data: " + delta(R"("content":"a")") +
            "\n\n"
            "data: {\"choices\":[],\ndata: \"more\":\"\\ud83d \uFFFD\"}\n\n"
            "data: {\"usage\":{\"x\":1.50}}\n\n");
}

TEST(completion_reader, numbers_choices_behind_the_first) {
    EXPECT_EQ(events_of({chunk(R"({"index":1,"delta":{"content":"b"}},)"
                               R"({"index":0,"delta":{"content":"a"}},{"delta":{"content":"c"}})"),
                         chunk(R"({"index":1,"delta":{"refusal":"r"},"finish_reason":"stop"})")}),
              "data: {\"content\":\"b\",\"index\":1}\n\n"
              "data: {\"content\":\"a\"}\n\n"
              "data: {\"content\":\"c\"}\n\n"
              "event: refusal\ndata: {\"refusal\":\"r\",\"index\":1}\n\n"
              "event: finish_reason\ndata: {\"finish_reason\":\"stop\",\"index\":1}\n\n");
}

TEST(completion_reader, joins_characters_across_chunks) {
    EXPECT_EQ(events_of({delta(R"("content":"a\ud83d")"), delta(R"("content":"\ude00b")")}),
              "data: {\"content\":\"a\"}\n\ndata: {\"content\":\"😀b\"}\n\n");
    EXPECT_EQ(events_of({delta("\"content\":\"\xF0\x9F\""), delta("\"content\":\"\x98\x80\"")}),
              "data: {\"content\":\"😀\"}\n\n");
    EXPECT_EQ(events_of({delta("\"content\":\"a\xFF\"")}), "data: {\"content\":\"a\uFFFD\"}\n\n");
    // Choices and calls of tools are texts of their own.
    EXPECT_EQ(events_of({chunk(R"({"index":0,"delta":{"content":"\ud83d"}},)"
                               R"({"index":1,"delta":{"content":"\ud83d"}})"),
                         chunk(R"({"index":1,"delta":{"content":"\ude01"}},)"
                               R"({"index":0,"delta":{"content":"\ude00"}})")}),
              "data: {\"content\":\"😁\",\"index\":1}\n\ndata: {\"content\":\"😀\"}\n\n");
    const auto call = [](int index, std::string_view arguments) {
        return delta(R"("tool_calls":[{"index":)" + std::to_string(index) +
                     R"(,"function":{"arguments":")" + std::string(arguments) + "\"}}]");
    };
    EXPECT_EQ(events_of({call(1, R"(\ud83d)"), call(0, "x"), call(1, R"(\ude00)")}),
              "event: tool_calls\ndata: {\"tool_calls\":[{\"index\":1,\"function\":"
              "{\"arguments\":\"\"}}]}\n\n"
              "event: tool_calls\ndata: {\"tool_calls\":[{\"index\":0,\"function\":"
              "{\"arguments\":\"x\"}}]}\n\n"
              "event: tool_calls\ndata: {\"tool_calls\":[{\"index\":1,\"function\":"
              "{\"arguments\":\"😀\"}}]}\n\n");
    EXPECT_EQ(events_of({delta(R"("content":"a\ud83d")")}),
              "data: {\"content\":\"a\"}\n\ndata: {\"content\":\"\uFFFD\"}\n\n")
        << "the other half never came";
}

TEST(completion_reader, knows_the_mark_of_the_end) {
    for (const std::string_view mark : {"[DONE]", "[DONE] ", "[DONE]\n"})
        EXPECT_EQ(meaning_of(mark), step::done);
    EXPECT_EQ(meaning_of(" [DONE]"), step::malformed);
}

TEST(completion_reader, knows_errors_and_their_texts) {
    EXPECT_EQ(detail_of(R"({"error":{"message":"overloaded","code":529}})"), "overloaded (529)");
    EXPECT_EQ(detail_of(R"({"error":"slow down"})"), "slow down");
    EXPECT_EQ(detail_of(R"({"message":"went wrong"})", "error"), "went wrong");
    EXPECT_EQ(detail_of(R"({"error":{"message":"a\ud83d"},"choices":[]})"), "a\uFFFD");
    for (const std::string_view error :
         {R"({"error":{}})", R"({"error":"x"})", R"({"error":true})", R"({"error":["x"]})"})
        EXPECT_EQ(meaning_of(error), step::error) << error;
    EXPECT_EQ(meaning_of("7", "error"), step::error);
}

TEST(completion_reader, refuses_what_cannot_be_read) {
    EXPECT_EQ(meaning_of("garbage"), step::malformed);
    EXPECT_EQ(detail_of("garbage"), "an event of it is no JSON: garbage");
    const auto nested = [](std::size_t levels) {
        return std::string(levels, '[') + std::string(levels, ']');
    };
    EXPECT_EQ(meaning_of(nested(completion_reader::max_depth)), step::pieces);
    EXPECT_EQ(meaning_of(nested(completion_reader::max_depth + 1)), step::malformed);
    EXPECT_EQ(meaning_of(R"({"choices":[{"delta":{"content":")"), step::malformed);
}

TEST(completion_reader, refuses_more_members_than_the_limit) {
    const auto with_members = [](std::size_t count) {
        std::string text = "{";
        for (std::size_t i = 0; i < count; ++i)
            text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
        return text + "}";
    };
    EXPECT_EQ(meaning_of(with_members(completion_reader::max_members)), step::pieces);
    EXPECT_EQ(meaning_of(with_members(completion_reader::max_members + 1)), step::malformed);
    EXPECT_EQ(detail_of(with_members(completion_reader::max_members + 1)),
              "an event of it has more than 4096 members");
    // Elements of lists are no members.
    std::string numbers = R"({"token_ids":[0)";
    for (std::size_t i = 0; i < 2 * completion_reader::max_members; ++i) numbers += ",1";
    EXPECT_EQ(meaning_of(numbers + "]}"), step::pieces);
}

TEST(completion_reader, is_finished_once_each_choice_is) {
    completion_reader reader(completion_events::pieces);
    const auto take = [&](const std::string& data) { reader.take({.data = data}); };
    EXPECT_FALSE(reader.is_finished());
    take(R"({"type":"ping"})");
    EXPECT_FALSE(reader.is_finished());
    take(delta(R"("content":"a")"));
    EXPECT_FALSE(reader.is_finished());
    take(delta("", R"(,"finish_reason":null)"));
    EXPECT_FALSE(reader.is_finished());
    take(delta("", R"(,"finish_reason":"length")"));
    EXPECT_TRUE(reader.is_finished());
    take(chunk(R"({"index":1,"delta":{"content":"b"}})"));
    EXPECT_FALSE(reader.is_finished());
    take(chunk(R"({"index":1,"delta":{},"finish_reason":"stop"})"));
    take(delta(""));
    EXPECT_TRUE(reader.is_finished()) << "a chunk behind the end takes nothing back";
}

TEST(completion_reader, waits_for_at_most_so_many_choices) {
    completion_reader reader(completion_events::pieces);
    const auto take = [&](std::size_t index, std::string_view more) {
        reader.take({.data = chunk("{\"index\":" + std::to_string(index) + ",\"delta\":{}" +
                                   std::string(more) + "}")});
    };
    for (std::size_t i = 0; i < completion_reader::max_choices; ++i)
        take(i, R"(,"finish_reason":"stop")");
    take(completion_reader::max_choices, "");
    EXPECT_TRUE(reader.is_finished());
}

}  // namespace
}  // namespace eddy::runtime::stream
