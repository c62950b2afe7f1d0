// Processors and quotas of this process.
#include "shm/spinning.hpp"

#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <string_view>

namespace eddy::shm {
namespace {

/// True if the machine has one processor. A thread that is confined to one does not keep a peer on
/// another one from running, and peers on the same one detect that.
bool has_one_processor() noexcept { return ::sysconf(_SC_NPROCESSORS_ONLN) < 2; }

/// A quota of the control group, or of one above it; cgroups(7), version 2.
bool has_quota() {
    std::ifstream groups("/proc/self/cgroup");
    std::string path;
    for (std::string line; std::getline(groups, line);)
        if (line.starts_with("0::")) path = line.substr(3);
    for (;;) {
        std::ifstream limit("/sys/fs/cgroup" + path + "/cpu.max");
        std::string quota;
        if (limit >> quota && quota != "max") return true;
        const std::size_t slash = path.rfind('/');
        if (path.empty() || slash == std::string::npos) return false;
        path.resize(slash);
    }
}

bool find_out() noexcept {
    if (has_one_processor()) return true;
    try {
        return has_quota();
    } catch (...) {
        return false;  // without memory to ask
    }
}

}  // namespace

bool spinning_takes_turns() noexcept {
    static const bool known = find_out();
    return known;
}

std::uint32_t this_processor() noexcept {
    const int number = ::sched_getcpu();
    return number < 0 ? 0 : static_cast<std::uint32_t>(number) + 1;
}

}  // namespace eddy::shm
