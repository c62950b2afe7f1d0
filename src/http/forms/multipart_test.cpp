// Forms with files as they arrive: parts and pieces, faults that the session answers, and bombs.
#include <eddy/http/multipart.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::http {
namespace {

using testing::error_of;
using namespace std::chrono_literals;

std::string part(std::string_view name, std::string_view content) {
    return "--b\r\nContent-Disposition: form-data; name=" + std::string(name) + "\r\n\r\n" +
           std::string(content) + "\r\n";
}

std::string post(std::string_view body, std::string_view type = "multipart/form-data; boundary=b") {
    return "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: " + std::string(type) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

constexpr std::string_view last = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

class http_multipart : public testing::with_server {
protected:
    http_multipart() {
        handler_.answer = [this](request& incoming) { return answer(incoming); };
        limits_.parser.body = 16 * 1024 * 1024;
        limits_.request_time = limits_.read_time = limits_.linger_time = 30s;
    }

    task<response> answer(request& incoming) {
        if (incoming.method() == "GET") co_return text("last");
        std::string all;
        multipart_reader form(incoming, parser_limits_);
        while (auto each = co_await form.next()) {
            ++parts_;
            all.append("<").append(each->name());
            if (each->is_file())
                all.append(" ").append(each->filename()).append(" ").append(each->safe_filename());
            all.append(" ").append(each->content_type()).append(":");
            if (each->name() == "skip") continue;
            const auto content = co_await each->whole(part_limit_);
            if (content) {
                all += *content;
                EXPECT_EQ(error_of(co_await each->read()), errc::end_of_stream);
            }
            all += ">";
        }
        error_ = form.failure();
        EXPECT_EQ(error_of(co_await form.next()), form.failure());
        if (!form.is_whole()) co_return response();
        co_return text(all + "\n");
    }

    // The status of the response to a form. The connection stays usable behind a form that was read
    // whole.
    int status_of(std::string_view body) {
        const std::string all = talk(post(body) + std::string(last));
        return std::stoi(all.substr(9));
    }

    http1::multipart_limits parser_limits_;
    std::size_t part_limit_ = 1000;
    std::error_code error_;
    std::size_t parts_ = 0;
};

TEST_P(http_multipart, is_read_part_by_part) {
    const std::string all =
        talk(post("--b\r\nContent-Disposition: form-data; name=f; filename=\"../x/y.txt\"\r\n"
                  "Content-Type: a/b\r\n\r\ncontent\r\n" +
                  part("skip", "dropped") + part("c", "") + "--b--\r\n") +
             std::string(last));
    EXPECT_NE(all.find("<f ../x/y.txt y.txt a/b:content><skip text/plain:<c text/plain:>\n"),
              std::string::npos)
        << all;
    EXPECT_TRUE(all.ends_with("last")) << all;
    EXPECT_EQ(error_, errc::end_of_stream);
}

TEST_P(http_multipart, is_read_however_it_is_cut) {
    const std::string whole =
        post(part("a", "\r12") + part("skip", "--\r\n-") + part("c", "3") + "--b--") +
        std::string(last);
    for (std::size_t step = 1; step < 20; step += 4) {
        std::string all;
        with_session([&](stream& client) -> task<void> {
            for (std::size_t at = 0; at < whole.size(); at += step) {
                const std::string_view piece = std::string_view(whole).substr(at, step);
                testing::must(co_await client.write_all(piece));
                co_await loop::current().yield();
            }
            co_await read_all(client, all);
            client.close();
        });
        EXPECT_NE(all.find("<a text/plain:\r12><skip text/plain:<c text/plain:3>\n"),
                  std::string::npos)
            << all;
        EXPECT_TRUE(all.ends_with("last")) << all;
    }
}

TEST_P(http_multipart, of_another_type_gets_415) {
    const std::string all = talk(post("x", "multipart/mixed; boundary=b") + std::string(last));
    EXPECT_TRUE(all.starts_with("HTTP/1.1 415 ")) << all;
    EXPECT_TRUE(all.ends_with("last")) << all;
    EXPECT_EQ(error_, errc::unsupported);
}

TEST_P(http_multipart, without_a_valid_boundary_gets_400) {
    for (const std::string& boundary :
         {std::string(), std::string(71, 'b'), std::string("\"a \"")}) {
        const std::string all = talk(post("x", "multipart/form-data; boundary=" + boundary));
        EXPECT_TRUE(all.starts_with("HTTP/1.1 400 ")) << all;
        EXPECT_EQ(error_, errc::malformed);
    }
}

TEST_P(http_multipart, that_is_malformed_gets_400) {
    EXPECT_EQ(status_of(part("a", "x")), 400);
    EXPECT_EQ(error_, errc::malformed);
    EXPECT_EQ(status_of("--b\r\n\r\nx\r\n--b--"), 400);
    EXPECT_EQ(status_of(""), 400);
    EXPECT_EQ(status_of(part("a", "x") + "--b--"), 200);
}

TEST_P(http_multipart, beyond_a_limit_gets_413) {
    part_limit_ = 10;
    EXPECT_EQ(status_of(part("a", "0123456789") + "--b--"), 200);
    EXPECT_EQ(status_of(part("a", "01234567890") + "--b--"), 413);
    EXPECT_EQ(error_, errc::limit_reached);
    parser_limits_.parts = 1;
    EXPECT_EQ(status_of(part("a", "") + part("b", "") + "--b--"), 413);
    limits_.parser.body = 100;
    EXPECT_EQ(status_of(part("skip", std::string(100, 'x')) + "--b--"), 413);
}

TEST_P(http_multipart, that_is_cut_off_ends_the_session) {
    std::string all;
    with_session([&](stream& client) -> task<void> {
        const std::string whole = post(part("a", "x") + "--b--");
        const std::string_view most = std::string_view(whole).substr(0, whole.size() - 4);
        testing::must(co_await client.write_all(most));
        EXPECT_TRUE(client.shutdown_write());
        co_await read_all(client, all);
        client.close();
    });
    EXPECT_EQ(error_, errc::truncated);
    EXPECT_EQ(all.find(" 200 "), std::string::npos) << all;
}

// --- Bombs: answered at their limits, whatever is still to come ---

TEST_P(http_multipart, a_hundred_thousand_parts_get_413) {
    std::string bomb;
    for (int i = 0; i < 100'000; ++i) bomb += part("skip", "");
    EXPECT_EQ(status_of(bomb + "--b--"), 413);
    EXPECT_EQ(parts_, parser_limits_.parts);
}

TEST_P(http_multipart, endless_headers_and_preambles_get_413) {
    std::string lines = "--b\r\n";
    while (lines.size() < 1'000'000) lines += "A: b\r\n";
    EXPECT_EQ(status_of(lines), 413);
    EXPECT_EQ(status_of("--b\r\nA: " + std::string(1'000'000, 'a')), 413);
    EXPECT_EQ(status_of(std::string(1'000'000, '\r')), 413);
    EXPECT_EQ(status_of("--b--" + std::string(1'000'000, '\n')), 413);
    EXPECT_EQ(parts_, 0u);
}

TEST_P(http_multipart, beginnings_of_boundaries_are_content) {
    const std::string boundary(70, 'b');
    std::string flood = "--" + boundary + "\r\nContent-Disposition: form-data; name=skip\r\n\r\n";
    while (flood.size() < 4'000'000) flood += "\r\n--" + boundary.substr(1) + "\r";
    flood += "\r\n--" + boundary + "--";
    const std::string all =
        talk(post(flood, "multipart/form-data; boundary=" + boundary) + std::string(last));
    EXPECT_NE(all.find("<skip text/plain:\n"), std::string::npos) << all;
}

EDDY_HTTP_ON_EVERY_BACKEND(http_multipart);

}  // namespace
}  // namespace eddy::http
