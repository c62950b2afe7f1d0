// Request bodies with a content coding, as handlers read them, and what is answered to bad ones.
#include <eddy/http/compression.hpp>

#include "http/codings/testing.hpp"
#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace eddy::http {
namespace {

using testing::answer;
using testing::encoded;
using testing::must;
using testing::parsed;
using testing::sample_text;

class http_decompression : public testing::with_server {
protected:
    http_decompression() {
        limits_.parser.body = 100'000;
        routes_.use(decompress())
            .post("/whole",
                  [](request& incoming) -> task<response> {
                      const auto got = co_await incoming.collect();
                      co_return text(got ? std::move(incoming.content()) : "an error");
                  })
            .post("/pieces",
                  [](request& incoming) -> task<response> {
                      std::string all;
                      for (;;) {
                          const auto piece = co_await incoming.body().read();
                          if (!piece && piece.error() == errc::end_of_stream) break;
                          if (!piece) co_return text("an error");
                          EXPECT_FALSE(piece->empty());
                          EXPECT_LE(piece->size(), 64U * 1024);
                          all += *piece;
                      }
                      EXPECT_TRUE(incoming.body().ended());
                      co_return text(std::move(all));
                  })
            .post("/larger",
                  [](request& incoming) -> task<response> {
                      EXPECT_EQ(incoming.body().limit(), 100'000U);
                      incoming.body().set_limit(10 << 20);
                      const auto got = co_await incoming.collect();
                      co_return text(got ? std::to_string(incoming.content().size()) : "an error");
                  })
            .post("/none", [](request&) -> task<response> { co_return text("unread"); });
        handler_.answer = [this](request& incoming) { return routes_.dispatch(incoming); };
    }

    answer post(std::string path, std::string coding, std::string content, bool in_chunks = false) {
        std::string asked = "POST " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
        if (!coding.empty()) asked += "Content-Encoding: " + coding + "\r\n";
        if (!in_chunks) {
            asked += "Content-Length: " + std::to_string(content.size()) + "\r\n\r\n" + content;
        } else {
            asked += "Transfer-Encoding: chunked\r\n\r\n";
            for (const char c : content) asked += "1\r\n" + std::string(1, c) + "\r\n";
            asked += "0\r\n\r\n";
        }
        return parsed(talk(asked));
    }

    router routes_;
};

TEST_P(http_decompression, handlers_read_content_decoded) {
    const std::string content = sample_text(90'000);
    for (const content_coding coding : testing::all_codings) {
        const std::string name(to_string(coding));
        for (const char* path : {"/whole", "/pieces"}) {
            EXPECT_EQ(post(path, name, encoded(coding, content)).content, content) << name;
            EXPECT_EQ(post(path, name, encoded(coding, "short"), true).content, "short") << name;
            EXPECT_EQ(post(path, name, "").content, "") << "no content has no coding";
        }
    }
    EXPECT_EQ(post("/whole", "", "as it is").content, "as it is");
    EXPECT_EQ(post("/whole", "identity", "as it is").content, "as it is");
    EXPECT_EQ(post("/none", "gzip", "damaged").content, "unread");
}

TEST_P(http_decompression, unknown_codings_are_refused_with_those_that_are_known) {
    for (const char* coding : {"compress", "gzip, br", "snappy"}) {
        const answer got = post("/whole", coding, "x");
        EXPECT_EQ(got.status, 415) << coding;
        EXPECT_EQ(got.field("Accept-Encoding"), "gzip, deflate, br, zstd");
    }
}

TEST_P(http_decompression, damaged_content_is_a_bad_request) {
    for (const content_coding coding : testing::all_codings) {
        const std::string name(to_string(coding));
        const std::string good = encoded(coding, sample_text(500));
        for (const char* path : {"/whole", "/pieces"}) {
            EXPECT_EQ(post(path, name, good.substr(0, good.size() / 2)).status, 400) << name;
            EXPECT_EQ(post(path, name, good + "more").status, 400) << name;
            EXPECT_EQ(post(path, name, "\xff\xff\xff\xff\xff\xff").status, 400) << name;
        }
    }
}

TEST_P(http_decompression, content_that_expands_beyond_the_limit_is_too_large) {
    for (const content_coding coding : testing::all_codings) {
        const std::string name(to_string(coding));
        for (const char* path : {"/whole", "/pieces"}) {
            EXPECT_EQ(post(path, name, encoded(coding, std::string(100'000, 'x'))).status, 200);
            EXPECT_EQ(post(path, name, encoded(coding, std::string(100'001, 'x'))).status, 413);
        }
        EXPECT_EQ(post("/larger", name, encoded(coding, sample_text(1'000'000))).content,
                  "1000000");
        EXPECT_EQ(post("/larger", name, encoded(coding, std::string(9 << 20, 'x'))).status, 413)
            << "by its ratio";
    }
    EXPECT_EQ(post("/whole", "gzip", std::string(100'001, 'x')).status, 413) << "encoded already";
}

TEST_P(http_decompression, a_bomb_of_ten_gigabytes_is_too_large) {
    limits_.parser.body = 1 << 20;
    limits_.request_time = limits_.read_time = std::chrono::seconds(10);
    const std::string member = encoded(content_coding::gzip, std::string(10 << 20, '\0'));
    std::string bomb;
    while (bomb.size() + member.size() <= 1 << 20) bomb += member;
    EXPECT_EQ(post("/pieces", "gzip", bomb).status, 413);
    std::string frame("\x28\xb5\x2f\xfd\x00\x58", 6);
    for (int i = 0; i < 80'000; ++i) frame.append("\x02\x00\x10\x00", 4);
    EXPECT_EQ(post("/whole", "zstd", frame).status, 413);
}

TEST_P(http_decompression, a_body_is_announced_and_has_its_time) {
    std::string got;
    with_session([&](stream& client) -> task<void> {
        const std::string content = encoded(content_coding::gzip, "hello");
        const std::string head =
            "POST /whole HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
            "Expect: 100-continue\r\nContent-Length: " +
            std::to_string(content.size()) + "\r\n\r\n";
        must(co_await client.write_all(head));
        EXPECT_TRUE(co_await read_until(client, got, "100 Continue\r\n\r\n"));
        must(co_await client.write_all(std::string_view(content).substr(0, 5)));
        co_await read_all(client, got);
    });
    EXPECT_NE(got.find("HTTP/1.1 408 "), std::string::npos) << got;
}

EDDY_HTTP_ON_EVERY_BACKEND(http_decompression);

}  // namespace
}  // namespace eddy::http
