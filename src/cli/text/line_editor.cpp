// Line editor: libedit's callbacks.
#include "cli/text/line_editor.hpp"

#include <eddy/base/unique_fd.hpp>

#include "base/files/regular_file.hpp"
#include "cli/text/typed_bytes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <histedit.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace eddy::cli {
namespace {

/// A hint has at least so many columns, and so many lie between it and the line.
constexpr std::size_t least_hint = 8;
constexpr std::size_t hint_gap = 4;

/// Longest wait for another prompt that writes the history, and pause between two attempts. Lines
/// that were not written then are written with the next one.
constexpr std::chrono::milliseconds lock_patience{500};
constexpr std::chrono::milliseconds lock_pause{5};

/// Bytes are characters of UTF-8, whatever the environment says.
void choose_encoding() {
    if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1)
        std::setlocale(LC_CTYPE, "C.UTF-8");
}

std::size_t columns_of_terminal() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// The beginning that all have.
std::string common_beginning(const std::vector<std::string>& all) {
    std::string common = all.front();
    for (const std::string& each : all) {
        const auto [end, ignored] = std::ranges::mismatch(common, each);
        common.erase(end, common.end());
    }
    return common;
}

struct history_end {
    void operator()(History* of) const noexcept { ::history_end(of); }
};
using history_pointer = std::unique_ptr<History, history_end>;

/// An empty one; null without memory.
history_pointer new_history() {
    history_pointer made(::history_init());
    HistEvent event{};
    if (made == nullptr) return made;
    ::history(made.get(), &event, H_SETSIZE, line_editor::history_limit);
    ::history(made.get(), &event, H_SETUNIQUE, 1);
    return made;
}

/// False where the file is not empty, and holds no history.
bool load(History* into, int file) {
    struct stat about{};
    if (::fstat(file, &about) != 0) return false;
    if (about.st_size == 0) return S_ISREG(about.st_mode);
    HistEvent event{};
    return ::history(into, &event, H_LOAD, fmt::format("/proc/self/fd/{}", file).c_str()) >= 0;
}

/// A history as its file has it; empty without memory. libedit sets permissions of what it writes
/// to, so that is a file, in memory.
std::string text_of(History* from) {
    unique_fd file(::memfd_create("eddy-history", MFD_CLOEXEC));
    std::FILE* const to = file ? ::fdopen(file.get(), "w") : nullptr;
    if (to == nullptr) return {};
    static_cast<void>(file.release());
    HistEvent event{};
    ::history(from, &event, H_SAVE_FP, to);
    struct stat about{};
    std::string made;
    if (std::fflush(to) == 0 && ::fstat(::fileno(to), &about) == 0) {
        made.resize(static_cast<std::size_t>(about.st_size));
        if (::pread(::fileno(to), made.data(), made.size(), 0) != about.st_size) made.clear();
    }
    std::fclose(to);
    return made;
}

/// Replaces a file's content. What is there already is not removed before, so that a full disk or
/// a kill leaves it.
bool rewrite(int file, std::string_view text) {
    return !text.empty() &&
           ::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
           ::ftruncate(file, static_cast<off_t>(text.size())) == 0;
}

/// Waits for other prompts' writing, for at most lock_patience.
bool lock(int file) {
    const auto until = std::chrono::steady_clock::now() + lock_patience;
    while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
        // A file system that has no locks serves without.
        if (errno != EWOULDBLOCK && errno != EINTR) return true;
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(lock_pause);
    }
    return true;
}

/// Signals that are held back while a line is read, so that the reader acts on them: the terminal
/// is as it was when one ends or stops the process.
class held_signals {
public:
    held_signals() noexcept {
        sigset_t held;
        sigemptyset(&held);
        for (const int each : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH})
            sigaddset(&held, each);
        ::pthread_sigmask(SIG_BLOCK, &held, &before_);
        arrivals_.reset(::signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
        if (!arrivals_) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    ~held_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    held_signals(const held_signals&) = delete;
    held_signals& operator=(const held_signals&) = delete;

    /// Waits for one of them, or for input. 0 where there is no signal.
    int wait() const noexcept {
        pollfd both[] = {{STDIN_FILENO, POLLIN, 0}, {arrivals_.get(), POLLIN, 0}};
        while (::poll(both, 2, -1) < 0)
            if (errno != EINTR) return 0;
        signalfd_siginfo about{};
        if (both[1].revents == 0 || ::read(arrivals_.get(), &about, sizeof about) != sizeof about)
            return 0;
        return static_cast<int>(about.ssi_signo);
    }
    /// Lets a signal do what it does elsewhere.
    static void release(int signal) noexcept {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, signal);
        ::raise(signal);
        ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
        ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
    }

private:
    sigset_t before_{};
    unique_fd arrivals_;
};

}  // namespace

struct line_editor::state {
    helpers help;
    std::string history_path;
    std::string prompt;
    std::string hint;  // what the callback has returned last
    EditLine* editor = nullptr;
    history_pointer history;

    std::vector<std::string> unsaved;  // lines that are not in the file yet

    /// False where the file is there and holds no history: it stays as it is then.
    bool load_history() const {
        const auto file = open_regular(history_path.c_str(), O_RDONLY);
        if (!file) return file.error() == std::errc::no_such_file_or_directory;
        return load(history.get(), file->get());
    }

    /// Adds the new lines to the file's present ones: other prompts write to it, too.
    void save_history() {
        const auto file = open_regular(history_path.c_str(), O_RDWR | O_CREAT, 0600);
        if (!file || !lock(file->get())) return;
        const history_pointer all = new_history();
        if (all == nullptr || !load(all.get(), file->get())) return;
        HistEvent event{};
        for (const std::string& line : unsaved) ::history(all.get(), &event, H_ENTER, line.c_str());
        if (rewrite(file->get(), text_of(all.get()))) unsaved.clear();
    }

    typed_bytes typed;
    std::optional<held_signals> signals;  // while a line is read

    /// Reader of libedit, in place of its own, which drops bytes that are no UTF-8.
    static int read_character(EditLine* editor, wchar_t* to) {
        state& its = of(editor);
        for (;;) {
            if (const auto next = its.typed.take()) {
                *to = static_cast<wchar_t>(*next);
                return 1;
            }
            if (const int signal = its.signals ? its.signals->wait() : 0; signal != 0) {
                act_on(signal, editor);
                continue;
            }
            char byte = 0;
            const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
            if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (got <= 0) return static_cast<int>(got);
            its.typed.add(byte);
        }
    }

    static void act_on(int signal, EditLine* editor) {
        if (signal == SIGWINCH) {
            ::el_resize(editor);
        } else {
            ::el_set(editor, EL_PREP_TERM, 0);
            // After SIGCONT the terminal has the modes that the shell has set.
            if (signal != SIGCONT) held_signals::release(signal);
            ::el_set(editor, EL_PREP_TERM, 1);
        }
        ::el_set(editor, EL_REFRESH);
    }

    static state& of(EditLine* editor) {
        void* found = nullptr;
        ::el_get(editor, EL_CLIENTDATA, &found);
        return *static_cast<state*>(found);
    }

    static std::string_view text_before_cursor(EditLine* editor) {
        const LineInfo* const line = ::el_line(editor);
        return {line->buffer, static_cast<std::size_t>(line->cursor - line->buffer)};
    }

    static bool is_cursor_at_end(EditLine* editor) {
        const LineInfo* const line = ::el_line(editor);
        return line->cursor == line->lastchar;
    }

    static char* show_prompt(EditLine* editor) { return of(editor).prompt.data(); }

    static char* show_hint(EditLine* editor) {
        state& its = of(editor);
        its.hint.clear();
        const std::string_view line = text_before_cursor(editor);
        if (!is_cursor_at_end(editor) || !line.contains(' ')) return its.hint.data();
        std::string text = its.help.hint(line);
        const std::size_t taken = its.prompt.size() + line.size() + hint_gap;
        const std::size_t columns = columns_of_terminal();
        if (text.empty() || columns < taken + least_hint) return its.hint.data();
        const std::size_t room = columns - taken;
        if (text.size() > room) text = text.substr(0, room - 3) + "...";
        its.hint = std::move(text);
        return its.hint.data();
    }

    /// A space may end a command's name, so the hint is another one.
    static unsigned char insert_space(EditLine* editor, int) {
        return ::el_insertstr(editor, " ") == 0 ? CC_REFRESH : CC_ERROR;
    }

    static unsigned char complete(EditLine* editor, int) {
        state& its = of(editor);
        if (!is_cursor_at_end(editor)) return CC_ERROR;
        const std::string line(text_before_cursor(editor));
        std::vector<std::string> all = its.help.completions(line);
        if (all.empty()) return CC_ERROR;
        std::string longer = common_beginning(all);
        if (all.size() == 1) longer += ' ';
        if (longer.size() > line.size()) {
            ::el_deletestr(editor, static_cast<int>(line.size()));
            return ::el_insertstr(editor, longer.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
        }
        show_choices(all);
        return CC_REDISPLAY;
    }

    static void show_choices(const std::vector<std::string>& all) {
        std::size_t width = 0;
        for (const std::string& each : all) width = std::max(width, each.size() + 2);
        const std::size_t a_line = std::max<std::size_t>(columns_of_terminal() / width, 1);
        std::string text = "\n";
        for (std::size_t i = 0; i < all.size(); ++i) {
            const bool is_last = (i + 1) % a_line == 0 || i + 1 == all.size();
            text += all[i];
            text += is_last ? "\n" : std::string(width - all[i].size(), ' ');
        }
        std::fputs(text.c_str(), stdout);
        std::fflush(stdout);
    }
};

line_editor::line_editor(helpers help, std::string history) : state_(std::make_unique<state>()) {
    choose_encoding();
    state_->help = std::move(help);
    state_->history_path = std::move(history);
    state_->history = new_history();
    if (state_->history != nullptr && !state_->load_history()) state_->history_path.clear();
    EditLine* const editor = ::el_init("eddy", stdin, stdout, stderr);
    state_->editor = editor;
    if (editor == nullptr) return;
    ::el_set(editor, EL_CLIENTDATA, static_cast<void*>(state_.get()));
    ::el_wset(editor, EL_GETCFN, &state::read_character);
    ::el_set(editor, EL_EDITOR, "emacs");
    ::el_set(editor, EL_PROMPT, &state::show_prompt);
    ::el_set(editor, EL_RPROMPT, &state::show_hint);
    if (state_->history != nullptr) ::el_set(editor, EL_HIST, ::history, state_->history.get());
    // Wide: libedit copies narrow names, and never frees the copies.
    ::el_wset(editor, EL_ADDFN, L"eddy-complete", L"Complete a command's name", &state::complete);
    ::el_wset(editor, EL_ADDFN, L"eddy-space", L"Insert a space", &state::insert_space);
    ::el_set(editor, EL_BIND, "^I", "eddy-complete", nullptr);
    ::el_set(editor, EL_BIND, " ", "eddy-space", nullptr);
    ::el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    ::el_source(editor, nullptr);
}

line_editor::~line_editor() {
    if (state_->editor != nullptr) ::el_end(state_->editor);
}

std::optional<std::string> line_editor::next(std::string prompt) {
    if (state_->editor == nullptr) return std::nullopt;
    state_->prompt = std::move(prompt);
    int count = 0;
    state_->signals.emplace();
    const char* const line = ::el_gets(state_->editor, &count);
    state_->signals.reset();
    if (line == nullptr || count <= 0) {
        std::fputs("\n", stdout);
        return std::nullopt;
    }
    std::string text(line, static_cast<std::size_t>(count));
    while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
    return uncarry_bytes(text);
}

void line_editor::remember(const std::string& typed) {
    if (state_->history == nullptr || typed.find_first_not_of(' ') == std::string::npos) return;
    const std::string line = carry_bytes(typed);
    HistEvent event{};
    ::history(state_->history.get(), &event, H_ENTER, line.c_str());
    if (state_->history_path.empty()) return;
    if (state_->unsaved.size() == history_limit) state_->unsaved.erase(state_->unsaved.begin());
    state_->unsaved.push_back(line);
    state_->save_history();
}

std::string history_file() {
    if (const char* const chosen = std::getenv("EDDY_HISTORY")) return chosen;
    const char* const home = std::getenv("HOME");
    return home != nullptr && *home != '\0' ? std::string(home) + "/.eddy_history" : std::string();
}

}  // namespace eddy::cli
