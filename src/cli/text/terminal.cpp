// Size and keys of a terminal.
#include "cli/text/terminal.hpp"

#include <eddy/base/assert.hpp>

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

namespace eddy::cli {
namespace {

termios original{};
volatile std::sig_atomic_t is_changed = 0;

constexpr std::array ending = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

void restore() noexcept {
    if (is_changed == 0) return;
    is_changed = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &original);
}

/// tcsetattr(3) may be called by a handler of signals.
extern "C" void restore_and_end(int number) {
    restore();
    std::signal(number, SIG_DFL);
    std::raise(number);
}

extern "C" void note_new_size(int) {}

}  // namespace

terminal_size size_of_terminal() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
    return {size.ws_col, size.ws_row};
}

key_reader::key_reader() {
    EDDY_ASSERT(is_changed == 0);
    if (::isatty(STDIN_FILENO) == 0 || ::tcgetattr(STDIN_FILENO, &original) != 0) return;
    termios raw = original;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    is_changed = 1;
    for (const int each : ending) std::signal(each, restore_and_end);
    // Without SA_RESTART it interrupts a wait, so that what is shown fits again at once.
    struct sigaction resized{};
    resized.sa_handler = note_new_size;
    ::sigaction(SIGWINCH, &resized, nullptr);
    is_active_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

key_reader::~key_reader() {
    restore();
    if (!is_active_) return;
    for (const int each : ending) std::signal(each, SIG_DFL);
    std::signal(SIGWINCH, SIG_DFL);
}

std::optional<char> key_reader::next(duration patience) {
    using std::chrono::milliseconds;
    const auto ms = std::chrono::ceil<milliseconds>(patience).count();
    pollfd input = {is_active_ ? STDIN_FILENO : -1, POLLIN, 0};
    const int ready = ::poll(&input, 1, static_cast<int>(std::clamp<long>(ms, 0, 86'400'000)));
    if (ready <= 0) return {};
    char key = 0;
    const ssize_t got = ::read(STDIN_FILENO, &key, 1);
    if (got < 0 && errno == EINTR) return {};
    return got == 1 ? key : 'q';
}

}  // namespace eddy::cli
