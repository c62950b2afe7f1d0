// Shared parts of the loads: their messages, the part of a run that is measured, and its report.
#pragma once

#include <eddy/base/histogram.hpp>

#include "socket.hpp"

#include <dirent.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

inline std::uint64_t clock_ns(clockid_t which) {
    timespec now{};
    clock_gettime(which, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

/// Bytes that differ from those of any other client's message.
inline std::vector<char> make_message(std::size_t client, std::size_t size) {
    std::vector<char> message(size);
    for (std::size_t at = 0; at < size; ++at)
        message[at] = static_cast<char>('!' + (client * 31 + at * 7) % 90);
    return message;
}

/// Puts a number at the beginning, so that no two messages are equal.
inline void stamp(char* message, std::size_t size, std::uint64_t number) {
    std::memcpy(message, &number, std::min(sizeof number, size));
}

/// The kernel's counts for all threads of a process.
struct process_use {
    unsigned long long cpu_ns = 0;  // proc(5), schedstat
    unsigned long long sleeps = 0;  // voluntary context switches: it waited, and was woken
};

/// Zero for pid 0.
inline process_use use_of(long pid) {
    process_use sum;
    if (pid == 0) return sum;
    const std::string folder = "/proc/" + std::to_string(pid) + "/task/";
    DIR* tasks = opendir(folder.c_str());
    if (!tasks) die(folder.c_str());
    while (const dirent* entry = readdir(tasks)) {
        if (entry->d_name[0] == '.') continue;
        const std::string task = folder + entry->d_name;
        unsigned long long count = 0;
        if (std::FILE* file = std::fopen((task + "/schedstat").c_str(), "r")) {
            if (std::fscanf(file, "%llu", &count) == 1) sum.cpu_ns += count;
            std::fclose(file);
        }
        if (std::FILE* file = std::fopen((task + "/status").c_str(), "r")) {
            char line[256];
            while (std::fgets(line, sizeof line, file))
                if (std::sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1)
                    sum.sleeps += count;
            std::fclose(file);
        }
    }
    closedir(tasks);
    return sum;
}

/// The part of a run that is measured: it begins after a warm-up and lasts for `--milliseconds`.
/// `--server-pid` names the process whose use of its core is counted meanwhile.
class window {
public:
    window(int argc, char** argv)
        : server_(number_option(argc, argv, "--server-pid", 0)),
          length_ns_(static_cast<std::uint64_t>(
                         number_option(argc, argv, "--milliseconds", 3000, 1, 3'600'000)) *
                     1'000'000) {}

    /// Called often. The first call begins the warm-up; false at the end of the run.
    bool goes_on(std::uint64_t now) {
        if (begin_at_ == 0) begin_at_ = now + warm_up_ns;
        if (now < begin_at_) return true;
        if (!is_open()) {
            server_before_ = use_of(server_);
            own_cpu_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
            begun_ns_ = now_ns();
            return true;
        }
        if (now - begun_ns_ < length_ns_) return true;
        ended_ns_ = now_ns();
        own_cpu_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own_cpu_ns_;
        server_after_ = use_of(server_);
        return false;
    }

    /// True while received bytes count.
    bool is_open() const { return begun_ns_ != 0; }

    /// Prints one JSON object, which begins with the fields `about`. The exit status of the load:
    /// 0, or 2 when replies were wrong or missing.
    int report(const std::string& about, const eddy::histogram& latency, std::uint64_t operations,
               std::uint64_t wrong, std::uint64_t errors) const {
        const auto count = static_cast<double>(operations);
        const double seconds = static_cast<double>(ended_ns_ - begun_ns_) / 1e9;
        const double own = static_cast<double>(own_cpu_ns_) / 1e9 / seconds;
        const auto server_ns = static_cast<double>(server_after_.cpu_ns - server_before_.cpu_ns);
        const double server = server_ns / 1e9 / seconds;
        const auto sleeps = static_cast<double>(server_after_.sleeps - server_before_.sleeps);
        const bool limited = own > 0.95 && server > 0 && server < 0.95;
        const bool verified = wrong == 0 && operations > 0;
        std::printf(
            "{%s, \"messages\": %llu, \"seconds\": %.4f, \"ops_per_second\": %.1f, "
            "\"p50_us\": %.2f, \"p99_us\": %.2f, \"generator_cpu\": %.4f, "
            "\"server_cpu\": %.4f, \"server_ns_per_op\": %.1f, \"sleeps_per_1000_ops\": %.1f, "
            "\"void\": %s, \"verified\": %s, \"errors\": %llu}\n",
            about.c_str(), static_cast<unsigned long long>(operations), seconds, count / seconds,
            static_cast<double>(latency.percentile(50)) / 1e3,
            static_cast<double>(latency.percentile(99)) / 1e3, own, server, server_ns / count,
            sleeps * 1e3 / count, limited ? "true" : "false", verified ? "true" : "false",
            static_cast<unsigned long long>(errors));
        return verified && errors == 0 ? 0 : 2;
    }

private:
    static constexpr std::uint64_t warm_up_ns = 300'000'000;

    long server_;
    std::uint64_t length_ns_;
    std::uint64_t begin_at_ = 0;
    std::uint64_t begun_ns_ = 0;
    std::uint64_t ended_ns_ = 0;
    std::uint64_t own_cpu_ns_ = 0;
    process_use server_before_;
    process_use server_after_;
};
