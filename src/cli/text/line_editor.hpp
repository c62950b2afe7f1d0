// Line editor of a terminal, by libedit: keys of Emacs or as ~/.editrc says, history, completion,
// hints.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// Reads lines from the terminal that standard input and output are. One at a time in a process;
/// it blocks. Ctrl-C ends the process, with the terminal as it was.
class line_editor {
public:
    /// Lines of history kept, in memory and in the file.
    static constexpr int history_limit = 1000;

    struct helpers {
        /// All lines that the text may be the beginning of.
        std::function<std::vector<std::string>(std::string_view)> completions;
        /// Text that may follow the given one, shown at the right edge.
        std::function<std::string(std::string_view)> hint;
    };

    /// `history` is the file that the history is read from and saved to, for this user alone; empty
    /// for none. A file that cannot be read or written, or that holds something else, does no
    /// harm, and gets none.
    line_editor(helpers help, std::string history);
    ~line_editor();
    line_editor(const line_editor&) = delete;
    line_editor& operator=(const line_editor&) = delete;

    /// The next line, with all bytes that were typed; nothing at the end of input.
    std::optional<std::string> next(std::string prompt);
    /// Adds a line to the history, and in the file to the lines that it has then: other prompts
    /// may write to it at the same time.
    void remember(const std::string& line);

private:
    struct state;
    std::unique_ptr<state> state_;
};

/// $EDDY_HISTORY, which may be empty, else ~/.eddy_history.
std::string history_file();

}  // namespace eddy::cli
