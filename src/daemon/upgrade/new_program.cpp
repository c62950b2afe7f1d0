// Check and start of the program that takes a daemon's place.
#include "daemon/upgrade/new_program.hpp"

#include "daemon/upgrade/upgrade_channel.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

namespace eddy::daemon {
namespace {

/// The texts of a file of /proc that ends each by a NUL; empty if it cannot be read.
std::vector<std::string> texts_of(const char* path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<std::string> all;
    for (std::string each; std::getline(file, each, '\0');) all.push_back(std::move(each));
    return all;
}

bool names(std::string_view entry, std::string_view variable) {
    return entry.size() > variable.size() && entry.starts_with(variable) &&
           entry[variable.size()] == '=';
}

/// Its users besides this one and root can replace it, or what is in it.
bool is_open_to_others(const struct stat& info) {
    if (info.st_uid != ::geteuid() && info.st_uid != 0) return true;
    // In a sticky folder such as /tmp only owners replace files.
    const bool is_sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
    return !is_sticky && (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

}  // namespace

outcome<std::string> check_program(const std::string& path) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    if (error)
        return refuse(400, fmt::format("the program {} cannot be used: {}", path, error.message()));
    struct stat info{};
    if (::stat(real.c_str(), &info) != 0)
        return refuse(400, fmt::format("the program {} cannot be used: {}", path,
                                       std::generic_category().message(errno)));
    if (!S_ISREG(info.st_mode))
        return refuse(400, fmt::format("the program {} is no regular file", path));
    if (::access(real.c_str(), X_OK) != 0)
        return refuse(400, fmt::format("the program {} cannot be executed: {}", path,
                                       std::generic_category().message(errno)));
    for (std::filesystem::path each = real;; each = each.parent_path()) {
        if (::stat(each.c_str(), &info) != 0 || is_open_to_others(info))
            return refuse(403, fmt::format("the program {} is not started: users other than root "
                                           "and user id {} can replace {} (chmod go-w, and chown, "
                                           "mend that)",
                                           path, ::geteuid(), each.string()));
        if (each == each.root_path()) break;
    }
    return real.string();
}

std::vector<std::string> arguments_of_this_process(const std::string& program) {
    std::vector<std::string> all = texts_of("/proc/self/cmdline");
    if (all.empty()) all.emplace_back();
    all.front() = program;
    return all;
}

std::vector<std::string> environment_for_upgrade() {
    // The environment of the start: parts of the daemon take their variables out.
    std::vector<std::string> all = texts_of("/proc/self/environ");
    if (all.empty())
        for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
    // The pid is this process's, and the watchdog is for the next one.
    std::erase_if(all, [](const std::string& each) {
        return names(each, upgrade_variable) || names(each, "WATCHDOG_PID");
    });
    all.push_back(fmt::format("{}={}", upgrade_variable, upgrade_protocol));
    return all;
}

}  // namespace eddy::daemon
