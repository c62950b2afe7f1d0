// Scan of TOML for brackets and dots outside of strings and comments.
#include "cli/stack/toml_depth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::cli {
namespace {

class depth_scan {
public:
    depth_scan(std::string_view text, const std::string& file) : text_(text), file_(file) {}

    std::optional<file_fault> run();

private:
    void skip_comment() { at_ = std::min(text_.find('\n', at_), text_.size()); }
    void skip_string(char quote);
    void end_line();
    void open();
    void close();
    file_fault fault(std::string message) const {
        return {{file_, line_, at_ - line_start_ + 1}, std::move(message)};
    }

    const std::string_view text_;
    const std::string& file_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
    std::size_t line_start_ = 0;
    std::size_t depth_ = 0;
    std::size_t dots_ = 0;
    bool is_line_empty_ = true;  // so far
    bool is_header_ = false;     // [TYPE.NAME], which ends with its line
};

/// Leaves the place at the string's last quote. One of a single line ends with it at the latest.
void depth_scan::skip_string(char quote) {
    const std::string marks(3, quote);
    const bool has_lines = text_.substr(at_).starts_with(marks);
    const std::string_view end =
        has_lines ? std::string_view(marks) : std::string_view(marks).substr(0, 1);
    for (at_ += end.size(); at_ < text_.size(); ++at_) {
        if (text_[at_] == '\n') {
            if (!has_lines) {
                --at_;
                return;
            }
            end_line();
        } else if (text_[at_] == '\\' && quote == '"') {
            if (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
        } else if (text_.substr(at_).starts_with(end)) {
            at_ += end.size() - 1;
            // Up to two quotes before the closing three are the string's own.
            for (int own = 0; has_lines && own < 2 && text_.substr(at_ + 1).starts_with(quote);
                 ++own)
                ++at_;
            return;
        }
    }
}

void depth_scan::end_line() {
    ++line_;
    line_start_ = at_ + 1;
    if (is_header_) depth_ = 0;
    is_header_ = false;
    is_line_empty_ = true;
    dots_ = 0;
}

void depth_scan::open() {
    is_header_ = is_header_ || (text_[at_] == '[' && depth_ == 0 && is_line_empty_);
    ++depth_;
    dots_ = 0;
}

void depth_scan::close() {
    depth_ -= depth_ > 0 ? 1 : 0;
    dots_ = 0;
}

std::optional<file_fault> depth_scan::run() {
    for (; at_ < text_.size(); ++at_) {
        const char c = text_[at_];
        switch (c) {
            case '\n': end_line(); continue;
            case ' ':
            case '\t':
            case '\r': continue;
            case '#':
                skip_comment();
                --at_;
                continue;
            case '"':
            case '\'': skip_string(c); break;
            case '[':
            case '{': open(); break;
            case ']':
            case '}': close(); break;
            case ',':
            case '=': dots_ = 0; break;
            case '.': ++dots_; break;
            default: break;
        }
        is_line_empty_ = false;
        if (depth_ > deepest_toml)
            return fault(fmt::format("lists and tables nest {} deep at most", deepest_toml));
        if (dots_ >= deepest_toml)
            return fault(fmt::format("a key has at most {} parts", deepest_toml));
    }
    return std::nullopt;
}

}  // namespace

std::optional<file_fault> excess_of_depth(std::string_view text, const std::string& file) {
    return depth_scan(text, file).run();
}

}  // namespace eddy::cli
