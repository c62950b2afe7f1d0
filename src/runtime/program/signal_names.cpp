// Names of signals, by the C library's table.
#include "runtime/program/signal_names.hpp"

#include "base/text/text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <cstring>
#include <system_error>

namespace eddy::runtime::program {

outcome<int> read_signal(std::string_view text, std::string_view flag) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && end == text.data() + text.size()) {
        if (number >= 1 && number <= SIGRTMAX) return number;
    } else {
        std::string name = lower(text);
        if (name.starts_with("sig")) name.erase(0, 3);
        for (int each = 1; each < SIGRTMIN; ++each) {
            const char* const its = ::sigabbrev_np(each);
            if (its != nullptr && name == lower(its)) return each;
        }
    }
    return refuse(400, fmt::format("{} cannot be \"{}\": write a signal's name or number, such as "
                                   "TERM, INT, HUP or 15; `kill -l` lists them",
                                   flag, text));
}

std::string signal_name(int number) {
    const char* const name = ::sigabbrev_np(number);
    return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

}  // namespace eddy::runtime::program
