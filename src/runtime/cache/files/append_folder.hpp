// Fixtures of the append-only file's tests: its folder, and a client that sends lines.
#pragma once

#include "base/files/temporary_folder.hpp"
#include "runtime/testing.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::runtime::testing {

inline json kept_in(const temporary_folder& folder, json more = json::object()) {
    json options = {{"port", 0},
                    {"dir", folder.path()},
                    {"save", "off"},
                    {"mode", "admin"},
                    {"appendonly", "yes"}};
    options.update(more);
    return options;
}

inline const json at_once = {{"appendfsync", "always"}};

inline std::string part(const temporary_folder& folder, int number) {
    return folder.file("appendonlydir/appendonly.aof." + std::to_string(number) + ".incr.aof");
}

inline void write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
}

/// The value of a field of INFO.
inline task<std::string> info(talker& client, std::string section, std::string name) {
    const std::string head = co_await ask(client, "INFO " + section);
    if (!head.starts_with('$')) throw std::runtime_error("no bulk: " + head);
    const std::string all = co_await client.bytes(std::stoul(head.substr(1)) + 2);
    const std::size_t at = all.find("\n" + name + ":");
    if (at == std::string::npos) throw std::runtime_error("no field " + name);
    const std::size_t begin = at + name.size() + 2;
    co_return all.substr(begin, all.find('\r', begin) - begin);
}

inline task<std::string> info(talker& client, std::string name) {
    return info(client, "persistence", std::move(name));
}

inline task<void> until_rewritten(talker& client, int times) {
    while (co_await info(client, "aof_rewrites") != std::to_string(times) ||
           co_await info(client, "aof_rewrite_in_progress") != "0")
        must(co_await loop::current().sleep_for(1ms));
}

/// The names of the files, and the manifest.
inline std::string files_in(const temporary_folder& folder) {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(folder.file("appendonlydir")))
        names.push_back(each.path().filename());
    std::ranges::sort(names);
    std::string all = content(folder.file("appendonlydir/appendonly.aof.manifest"));
    for (const std::string& each : names) all += each + '\n';
    return all;
}

/// Copies the folder as it would be after a crash now. Threads may rename and remove meanwhile:
/// then it is copied anew.
inline void copy(const temporary_folder& from, const temporary_folder& to) {
    for (;;) {
        std::filesystem::remove_all(to.file("appendonlydir"));
        std::error_code wrong;
        const std::string before = files_in(from);
        std::filesystem::copy(from.path(), to.path(), std::filesystem::copy_options::recursive,
                              wrong);
        if (!wrong && files_in(from) == before) return;
    }
}

/// Digest of the data that a cache with these options finds.
inline task<std::string> digest_with(json options) {
    subject cache("cache", std::move(options));
    co_await cache.start();
    std::string digest;
    {
        talker client = co_await talker::to(cache->local());
        digest = co_await ask(client, "DEBUG DIGEST");
    }
    co_await cache->stop(1s);
    co_return digest;
}

inline task<std::string> digest_in(const temporary_folder& folder) {
    return digest_with(kept_in(folder));
}

}  // namespace eddy::runtime::testing
