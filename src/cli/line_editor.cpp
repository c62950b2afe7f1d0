// Line editor: libedit's callbacks.
#include "cli/line_editor.hpp"

#include "base/regular_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <histedit.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace eddy::cli {
namespace {

/// A hint has at least so many columns, and so many lie between it and the line.
constexpr std::size_t least_hint = 8;
constexpr std::size_t hint_gap = 4;

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

}  // namespace

struct line_editor::state {
    helpers help;
    std::string history_path;
    std::string prompt;
    std::string hint;  // what the callback has returned last
    EditLine* editor = nullptr;
    History* history = nullptr;

    /// False where the file is there and holds no history: it stays as it is then.
    bool load_history() const {
        const auto file = open_regular(history_path.c_str(), O_RDONLY);
        if (!file) return file.error() == std::errc::no_such_file_or_directory;
        struct stat about{};
        if (::fstat(file->get(), &about) != 0) return false;
        if (about.st_size == 0) return S_ISREG(about.st_mode);
        HistEvent event{};
        return ::history(history, &event, H_LOAD,
                         fmt::format("/proc/self/fd/{}", file->get()).c_str()) >= 0;
    }

    /// Not by H_SAVE, which gives any file, /dev/null, too, permissions for this user alone.
    void save_history() const {
        auto file = open_regular(history_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (!file) return;
        std::FILE* const stream = ::fdopen(file->get(), "w");
        if (stream == nullptr) return;
        static_cast<void>(file->release());
        HistEvent event{};
        ::history(history, &event, H_SAVE_FP, stream);
        std::fclose(stream);
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
    state_->history = ::history_init();
    HistEvent event{};
    if (state_->history != nullptr) {
        ::history(state_->history, &event, H_SETSIZE, history_limit);
        ::history(state_->history, &event, H_SETUNIQUE, 1);
        if (!state_->load_history()) state_->history_path.clear();
    }
    EditLine* const editor = ::el_init("eddy", stdin, stdout, stderr);
    state_->editor = editor;
    if (editor == nullptr) return;
    ::el_set(editor, EL_CLIENTDATA, static_cast<void*>(state_.get()));
    ::el_set(editor, EL_SIGNAL, 1);
    ::el_set(editor, EL_EDITOR, "emacs");
    ::el_set(editor, EL_PROMPT, &state::show_prompt);
    ::el_set(editor, EL_RPROMPT, &state::show_hint);
    if (state_->history != nullptr) ::el_set(editor, EL_HIST, ::history, state_->history);
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
    if (state_->history != nullptr) ::history_end(state_->history);
}

std::optional<std::string> line_editor::next(std::string prompt) {
    if (state_->editor == nullptr) return std::nullopt;
    state_->prompt = std::move(prompt);
    int count = 0;
    const char* const line = ::el_gets(state_->editor, &count);
    if (line == nullptr || count <= 0) {
        std::fputs("\n", stdout);
        return std::nullopt;
    }
    std::string text(line, static_cast<std::size_t>(count));
    while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
    return text;
}

void line_editor::remember(const std::string& line) {
    if (state_->history == nullptr || line.find_first_not_of(' ') == std::string::npos) return;
    HistEvent event{};
    ::history(state_->history, &event, H_ENTER, line.c_str());
    if (!state_->history_path.empty()) state_->save_history();
}

std::string history_file() {
    if (const char* const chosen = std::getenv("EDDY_HISTORY")) return chosen;
    const char* const home = std::getenv("HOME");
    return home != nullptr && *home != '\0' ? std::string(home) + "/.eddy_history" : std::string();
}

}  // namespace eddy::cli
