// Fixture of tests of static files: a root with a server of its files, and what requests get.
#pragma once

#include <eddy/http/static_files.hpp>

#include "base/files/temporary_folder.hpp"
#include "http/testing.hpp"

#include <sys/fsuid.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::http::testing {

/// Text that repeats nowhere at a slice's distance.
inline std::string long_text(std::size_t size) {
    std::string text;
    for (std::size_t i = 0; text.size() < size; ++i) text += std::to_string(i) + ";";
    text.resize(size);
    return text;
}

/// Guard that makes file permissions apply to this thread, and threads that it starts, even as
/// root.
class unprivileged {
public:
    unprivileged() {
        if (::geteuid() == 0) ::setfsuid(65534);
    }
    ~unprivileged() {
        if (::geteuid() == 0) ::setfsuid(0);
    }
    unprivileged(const unprivileged&) = delete;
    unprivileged& operator=(const unprivileged&) = delete;
};

/// A server of files in a folder of the test, on each backend.
class with_files : public with_server {
protected:
    with_files() {
        std::filesystem::create_directories(root());
        for (const std::string& each : {folder_.path(), root()})
            std::filesystem::permissions(each, std::filesystem::perms(0755));
        handler_.answer = [this](request& incoming) -> task<response> {
            response made = co_await files_->serve(incoming, incoming.path());
            // Always the same, so that responses can be compared.
            made.add("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
            co_return made;
        };
    }

    std::string root() const { return folder_.file("www"); }

    void write(const std::string& name, std::string_view content) const {
        const std::filesystem::path path = root() + "/" + name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << content;
    }

    void serve(static_options options = {}) {
        files_.emplace(must(static_files::open(root(), std::move(options))));
    }

    /// The response to a request without a body.
    std::string get(std::string_view target, std::string_view fields = {},
                    std::string_view method = "GET") {
        return talk(std::string(method) + " " + std::string(target) +
                    " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + std::string(fields) + "\r\n");
    }

    static int status_of(const std::string& answer) {
        return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
    }
    static std::string body_of(const std::string& answer) {
        const auto end = answer.find("\r\n\r\n");
        return end == answer.npos ? "" : answer.substr(end + 4);
    }
    static std::string field_of(const std::string& answer, const std::string& name) {
        const auto start = answer.find("\r\n" + name + ": ");
        if (start == answer.npos || start > answer.find("\r\n\r\n")) return "";
        const auto value = start + name.size() + 4;
        return answer.substr(value, answer.find("\r\n", value) - value);
    }

    eddy::testing::temporary_folder folder_;
    std::optional<static_files> files_;
};

}  // namespace eddy::http::testing
