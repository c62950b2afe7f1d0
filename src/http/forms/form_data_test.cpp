// Forms with files that are read whole: memory, temporary files, limits.
#include <eddy/base/log.hpp>
#include <eddy/http/multipart.hpp>

#include "base/files/temporary_folder.hpp"
#include "http/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace eddy::http {
namespace {

using testing::error_of;
using testing::must;
using namespace std::chrono_literals;

class http_form_data : public testing::with_server {
protected:
    http_form_data() {
        handler_.answer = [this](request& incoming) { return answer(incoming); };
        limits_.request_time = limits_.read_time = limits_.linger_time = 30s;
        form_limits_.bytes = 16 * 1024 * 1024;
        form_limits_.folder = folder_.path();
    }

    task<response> answer(request& incoming) {
        auto form = co_await read_form_data(incoming, form_limits_);
        if (!form) {
            error_ = form.error();
            co_return response();
        }
        std::string all;
        for (form_data_part& each : form->parts) {
            all += "<" + each.name + " " + std::to_string(each.size);
            all += each.stored ? " stored" : "";
            if (each.filename) all += " as " + each.safe_filename();
            all += ">";
            EXPECT_TRUE(!each.stored || each.text.empty());
            EXPECT_EQ(co_await content_of(each), expected_) << each.name;
        }
        EXPECT_EQ(form->find("none"), nullptr);
        EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "stored files have no names";
        co_return text(all + "\n");
    }

    task<std::string> content_of(form_data_part& each) {
        const eddy::testing::temporary_folder elsewhere;
        const std::string path = elsewhere.file("copy");
        file copy = must(co_await file::open(path, O_CREAT | O_RDWR));
        must(co_await each.copy_to(copy));
        std::string content(must(co_await copy.size()), '\0');
        if (!content.empty()) {
            const auto into = std::as_writable_bytes(std::span<char>(content));
            EXPECT_EQ(must(co_await copy.read_at(0, into)), content.size());
        }
        co_return content;
    }

    // A form of these parts, each with the content `expected_`; those with a capital are files.
    std::string form(std::string_view names) {
        std::string body;
        for (const char name : names) {
            body += "--b\r\nContent-Disposition: form-data; name=" + std::string(1, name);
            if (name < 'a') body += "; filename=\"/etc/" + std::string(1, name) + "\"";
            body += "\r\n\r\n" + expected_ + "\r\n";
        }
        body += "--b--";
        return talk(
            "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body);
    }

    eddy::testing::temporary_folder folder_;
    form_data_limits form_limits_;
    std::string expected_ = "0123456789";
    std::error_code error_;
};

TEST_P(http_form_data, that_is_small_stays_in_memory) {
    const std::string all = form("aBc");
    EXPECT_TRUE(all.ends_with("<a 10><B 10 as B><c 10>\n")) << all;
}

TEST_P(http_form_data, goes_to_files_beyond_the_limit_on_memory) {
    form_limits_.memory = 25;
    EXPECT_TRUE(form("ABcDE").ends_with(
        "<A 10 as A><B 10 as B><c 10><D 10 stored as D><E 10 stored as E>\n"));
    form_limits_.memory = 0;
    EXPECT_TRUE(form("aB").ends_with("<a 10><B 10 stored as B>\n"));
}

TEST_P(http_form_data, of_large_files_is_stored_whole) {
    std::string long_text;
    for (int i = 0; long_text.size() < 700'000; ++i) long_text += std::to_string(i) + "\r\n";
    expected_ = long_text;
    const std::string size = std::to_string(expected_.size());
    EXPECT_TRUE(form("AB").ends_with("<A " + size + " stored as A><B " + size + " stored as B>\n"));
}

TEST_P(http_form_data, beyond_its_limits_gets_413) {
    const auto status = [&](std::string_view names) {
        error_ = {};
        return std::stoi(form(names).substr(9));
    };
    form_limits_.file = 10;
    form_limits_.field = 10;
    EXPECT_EQ(status("aB"), 200);
    form_limits_.file = 9;
    EXPECT_EQ(status("a"), 200);
    EXPECT_EQ(status("B"), 413);
    EXPECT_EQ(error_, errc::limit_reached);
    form_limits_.file = 10;
    form_limits_.field = 9;
    EXPECT_EQ(status("a"), 413);
    EXPECT_EQ(error_, errc::limit_reached);
    form_limits_.field = 10;
    form_limits_.fields = 42;  // two names of a byte, "text/plain" twice, two contents
    EXPECT_EQ(status("ab"), 200);
    form_limits_.fields = 41;
    EXPECT_EQ(status("ab"), 413);
    form_limits_.fields = 1000;
    form_limits_.parser.parts = 1;
    EXPECT_EQ(status("ab"), 413);
    form_limits_.parser.parts = 2;
    form_limits_.bytes = 20;
    EXPECT_EQ(status("a"), 413);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_P(http_form_data, whose_file_cannot_be_stored_gets_500) {
    std::string log;
    set_log_sink([&](log_level, std::string_view line) { log += line; });
    form_limits_.memory = 0;
    form_limits_.folder = folder_.file("missing");
    const std::string all = form("A");
    EXPECT_TRUE(all.starts_with("HTTP/1.1 500 ")) << all;
    EXPECT_EQ(error_, std::errc::no_such_file_or_directory);
    set_log_sink({});
    EXPECT_NE(log.find(form_limits_.folder), std::string::npos) << log;
}

EDDY_HTTP_ON_EVERY_BACKEND(http_form_data);

}  // namespace
}  // namespace eddy::http
