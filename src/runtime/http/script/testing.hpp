// Fixture of tests of a site's script: the site, its folder, and its clients.
#pragma once

#include "runtime/http/testing.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::http::testing {

class scripted_site {
public:
    scripted_site(std::string_view script, json options = json::object(),
                  const std::string& type = "http") {
        write(script);
        write_file(folder, "a.txt", "the file");
        if (!options.contains("root")) options["root"] = folder.path();
        options["lua"] = file_;
        s_.emplace(type, with(std::move(options)), "subject", neighbours());
    }

    void write(std::string_view script) { std::ofstream(file_) << script; }
    /// False if the program is built without scripts.
    task<bool> has_started() {
        auto started = co_await (*s_)->start();
        if (started) co_return true;
        EXPECT_THAT(started.error().message, ::testing::HasSubstr("without scripts"));
        co_return false;
    }
    /// "STATUS CONTENT" of the response to a request of this method and target.
    task<std::string> ask(std::string request, std::string content = {}, std::string fields = {}) {
        talker client = co_await talker::to((*s_)->local());
        co_return co_await ask(client, std::move(request), std::move(content), std::move(fields));
    }
    static task<std::string> ask(talker& client, std::string request, std::string content = {},
                                 std::string fields = {}) {
        if (!content.empty())
            fields += "Content-Length: " + std::to_string(content.size()) + "\r\n";
        co_await client.say(request + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n" + content);
        const answer got = co_await next_answer(client, !request.starts_with("HEAD"));
        co_return got.status() + " " + got.content;
    }
    /// The head of the response.
    task<std::string> head(std::string target) {
        co_return (co_await get_from(*s_, std::move(target))).head;
    }
    task<talker> client() { co_return co_await talker::to((*s_)->local()); }

    /// Failed calls of the script for that reason.
    double errors(std::string_view reason) {
        for (const metric_sample& each : (*s_)->count().samples)
            if (each.of->name == "script_errors_total" && each.labels.at(0) == reason)
                return std::get<double>(each.value);
        return -1;
    }

    subject& operator*() { return *s_; }
    instance* operator->() { return s_->operator->(); }

    temporary_folder folder;

private:
    temporary_folder scripts_;
    const std::string file_ = scripts_.file("site.lua");
    std::optional<subject> s_;
};

}  // namespace eddy::runtime::http::testing
