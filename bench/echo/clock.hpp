// The clocks of the loads: the time, and what a process has used of a core.
#pragma once

#include "socket.hpp"

#include <dirent.h>

#include <cstdint>
#include <ctime>
#include <string>

inline std::uint64_t clock_ns(clockid_t which) {
    timespec now{};
    clock_gettime(which, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

/// CPU time of all threads of a process, as the scheduler counts it (proc(5), schedstat).
inline std::uint64_t process_cpu_ns(long pid) {
    if (pid == 0) return 0;
    const std::string folder = "/proc/" + std::to_string(pid) + "/task/";
    DIR* tasks = opendir(folder.c_str());
    if (!tasks) die(folder.c_str());
    std::uint64_t sum = 0;
    while (const dirent* entry = readdir(tasks)) {
        if (entry->d_name[0] == '.') continue;
        std::FILE* file = std::fopen((folder + entry->d_name + "/schedstat").c_str(), "r");
        unsigned long long ran = 0;
        if (file && std::fscanf(file, "%llu", &ran) == 1) sum += ran;
        if (file) std::fclose(file);
    }
    closedir(tasks);
    return sum;
}
