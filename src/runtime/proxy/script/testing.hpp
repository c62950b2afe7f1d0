// Fixture of tests of a proxy's script: the proxy, its backends, which answer with their number and
// the request's target, and its clients.
#pragma once

#include <eddy/io/scope.hpp>

#include "proxy/testing.hpp"
#include "runtime/testing.hpp"

#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::proxy::testing {

using namespace runtime::testing;
using eddy::proxy::testing::test_backend;
using eddy::proxy::testing::text_peer;

class scripted_proxy {
public:
    /// In the script and the options "$0" and so on are addresses of backends.
    scripted_proxy(std::string_view script, json options, std::size_t backends = 2,
                   const std::string& type = "proxy")
        : backends_(backends) {
        write(script);
        options["backend"] = "$0";
        options = json::parse(with_addresses(options.dump()));
        options["protocol"] = "http";
        options["lua"] = file_;
        s_.emplace(type, with(std::move(options)), "subject", neighbours());
    }

    void write(std::string_view script) {
        std::ofstream(file_) << with_addresses(std::string(script));
    }
    /// False if the program is built without scripts.
    task<bool> has_started() {
        auto started = co_await (*s_)->start();
        if (!started) {
            EXPECT_THAT(started.error().message, ::testing::HasSubstr("without scripts"));
            co_return false;
        }
        for (std::size_t i = 0; i < backends_.size(); ++i) answering_.spawn(accept(i));
        co_return true;
    }
    task<void> stop(duration drain = duration{}) {
        co_await (*s_)->stop(drain);
        answering_.cancel();
        co_await answering_.join();
    }
    /// "STATUS TEXT" of the answer to a request without content.
    task<std::string> ask(std::string target, std::string fields = "Host: x\r\n") {
        text_peer its = co_await client();
        co_await its.say("GET " + target + " HTTP/1.1\r\n" + fields + "Connection: close\r\n\r\n");
        const std::string all = co_await its.rest();
        const std::size_t end = all.find("\r\n\r\n");
        if (all.size() < 12 || end == std::string::npos) co_return "nothing: " + all;
        co_return all.substr(9, 3) + " " + all.substr(end + 4);
    }
    task<text_peer> client() {
        co_return text_peer(must(co_await loop::current().connect((*s_)->local())));
    }
    subject& operator*() { return *s_; }
    instance* operator->() { return s_->operator->(); }

private:
    std::string with_addresses(std::string text) const {
        for (std::size_t i = 0; i < backends_.size(); ++i) {
            const std::string mark = "$" + std::to_string(i);
            for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark))
                text.replace(at, mark.size(), backends_[i].name());
        }
        return text;
    }
    task<void> accept(std::size_t i) {
        for (;;) {
            auto made = co_await backends_.at(i).socket().accept();
            if (!made) co_return;
            answering_.spawn(answer(i, std::move(*made)));
        }
    }
    static task<void> answer(std::size_t i, stream over) {
        std::string got;
        for (;;) {
            auto more = co_await over.read();
            if (!more) co_return;
            got += more->text();
            const std::size_t end = got.find("\r\n\r\n");
            if (end == std::string::npos) continue;
            const std::size_t from = got.find(' ') + 1;
            std::string text = std::to_string(i) + got.substr(from, got.find(' ', from) - from);
            // Fields that scripts set.
            for (const std::string_view name : {"\r\nX-User: ", "\r\nX-Other: "})
                if (const std::size_t at = got.find(name); at < end)
                    text.append(" ").append(got.substr(at + 2, got.find("\r\n", at + 2) - at - 2));
            got.erase(0, end + 4);
            const std::string answer = "HTTP/1.1 200 OK\r\nServer: test\r\nContent-Length: " +
                                       std::to_string(text.size()) + "\r\n\r\n" + text;
            const auto sent = co_await over.write_all(answer);
            if (!sent) co_return;
        }
    }

    std::vector<test_backend> backends_;
    temporary_folder folder_;
    const std::string file_ = folder_.file("gate.lua");
    std::optional<subject> s_;
    scope answering_;
};

}  // namespace eddy::runtime::proxy::testing
