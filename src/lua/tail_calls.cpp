// Reader of Lua's tokens that parses just enough to find the ends of "return" statements.
#include "lua/tail_calls.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace eddy::lua {
namespace {

bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_letter(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

enum class token_kind : std::uint8_t { word, number, text, sign, end };

struct token {
    token_kind kind = token_kind::end;
    std::string_view text;
    std::size_t at = 0;
};

class token_reader {
public:
    explicit token_reader(std::string_view text) noexcept : text_(text) {}

    token next() noexcept {
        skip_blank();
        const std::size_t begin = at_;
        if (at_ >= text_.size()) return {token_kind::end, {}, begin};
        const char c = text_[at_];
        token_kind kind = token_kind::sign;
        if (is_letter(c)) {
            while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
            kind = token_kind::word;
        } else if (is_digit(c)) {
            // An exponent's sign becomes a token of its own, which changes nothing here.
            while (at_ < text_.size() &&
                   (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.'))
                ++at_;
            kind = token_kind::number;
        } else if (c == '"' || c == '\'') {
            for (++at_; at_ < text_.size() && text_[at_] != c; ++at_) {
                if (text_[at_] == '\\') ++at_;
            }
            at_ = std::min(at_ + 1, text_.size());
            kind = token_kind::text;
        } else if (c == '[' && skip_long()) {
            kind = token_kind::text;
        } else {
            ++at_;
        }
        return {kind, text_.substr(begin, at_ - begin), begin};
    }

private:
    void skip_blank() noexcept {
        while (at_ < text_.size()) {
            if (is_space(text_[at_])) {
                ++at_;
            } else if (text_.substr(at_, 2) == "--") {
                at_ += 2;
                if (at_ < text_.size() && text_[at_] == '[' && skip_long()) continue;
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else {
                return;
            }
        }
    }
    // "[[ ... ]]", "[=[ ... ]=]".
    bool skip_long() noexcept {
        std::size_t level = 0;
        while (at_ + 1 + level < text_.size() && text_[at_ + 1 + level] == '=') ++level;
        if (at_ + 1 + level >= text_.size() || text_[at_ + 1 + level] != '[') return false;
        for (std::size_t i = at_ + 2 + level; i + 1 + level < text_.size(); ++i) {
            if (text_[i] != ']' || text_[i + 1 + level] != ']') continue;
            const std::string_view between = text_.substr(i + 1, level);
            if (between.find_first_not_of('=') != std::string_view::npos) continue;
            at_ = i + 2 + level;
            return true;
        }
        at_ = text_.size();
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

constexpr std::array<std::string_view, 5> ends_block{"end", "else", "elseif", "until", ";"};

// Tokens that are kept of a path: one more than is asked for.
constexpr std::size_t longest_path = 4;

// Some microseconds.
constexpr std::size_t tokens_a_piece = 256;

// Functions that return one value.
bool is_single(const std::vector<token>& path) noexcept {
    if (path.size() == 1) {
        const std::string_view name = path[0].text;
        return name == "error" || name == "tonumber" || name == "tostring" ||
               name == "setmetatable";
    }
    return path.size() == 3 && path[1].text == "." &&
           (path[0].text == "redis" || path[0].text == "cjson" || path[0].text == "server");
}

// A "return" whose end is not there yet.
struct open_return {
    std::size_t begin;               // behind the word
    std::size_t blocks;              // open around it
    std::size_t opened_at;           // tokens up to the word
    std::size_t call_closed_at = 0;  // tokens up to the end of the call that follows the path
    bool in_function = false;
    bool is_list = false;
    bool is_path = true;  // so far it is a.b.c
    std::vector<token> path;
    std::vector<char> brackets;
};

/// One pass over a script, which finds where brackets around returned calls belong.
class return_finder {
public:
    explicit return_finder(std::string_view text) noexcept : reader_(text) {}

    /// False when the text is no Lua, which its compiler will report.
    bool find_all(const std::function<void()>& between) {
        for (token one = reader_.next(); one.kind != token_kind::end; one = reader_.next()) {
            if (between && tokens_ % tokens_a_piece == 0) between();
            const bool is_word = one.kind == token_kind::word;
            const bool is_end = (is_word || one.text == ";") &&
                                std::ranges::find(ends_block, one.text) != ends_block.end();
            if (is_end && is_in_return() && returns_.back().brackets.empty()) close(blocks_.size());
            if (is_word && (one.text == "end" || one.text == "until")) {
                if (blocks_.empty()) return false;
                functions_ -= blocks_.back() == "function" ? 1 : 0;
                blocks_.pop_back();
            }
            end_ = one.at + one.text.size();
            ++tokens_;
            if (is_in_return() && !extend(returns_.back(), one)) return false;
            if (is_word && (one.text == "function" || one.text == "do" || one.text == "if" ||
                            one.text == "repeat")) {
                blocks_.push_back(one.text);
                functions_ += one.text == "function" ? 1 : 0;
            }
            if (is_word && one.text == "return") {
                // Two without an end between them.
                if (is_in_return()) return false;
                open();
            }
        }
        if (!blocks_.empty()) return false;
        close(0);
        std::ranges::sort(brackets_);
        return true;
    }
    /// Brackets and their places, in the order of these.
    const std::vector<std::pair<std::size_t, char>>& brackets() const noexcept { return brackets_; }

private:
    /// True while tokens belong to a "return", and to no block within it.
    bool is_in_return() const noexcept {
        return !returns_.empty() && returns_.back().blocks == blocks_.size();
    }

    void open() {
        open_return made;
        made.begin = end_;
        made.opened_at = tokens_;
        made.blocks = blocks_.size();
        made.in_function = functions_ > 0;
        returns_.push_back(std::move(made));
    }

    /// Adds a token to a "return". False at a bracket that was not opened.
    bool extend(open_return& last, const token& one) const {
        const bool is_word = one.kind == token_kind::word;
        const char c = one.kind == token_kind::sign ? one.text[0] : '\0';
        const bool was_path = last.is_path;
        last.is_path = was_path && (is_word || c == '.');
        if (last.is_path && last.path.size() < longest_path) last.path.push_back(one);
        if (c == '(' || c == '{' || c == '[') last.brackets.push_back(was_path ? c : ' ');
        if (c == ')' || c == '}' || c == ']') {
            if (last.brackets.empty()) return false;
            // The call's own bracket is the first one, right behind the path.
            if (last.brackets.size() == 1 && last.brackets[0] == '(') last.call_closed_at = tokens_;
            last.brackets.pop_back();
        }
        if (c == ',' && last.brackets.empty()) last.is_list = true;
        return true;
    }

    /// Ends each "return" within so many blocks and more.
    void close(std::size_t count) {
        while (!returns_.empty() && returns_.back().blocks >= count) {
            const open_return& last = returns_.back();
            const bool closed_call = last.call_closed_at == tokens_;
            const bool wanted =
                last.in_function ? closed_call && is_single(last.path) : !last.is_list;
            if (tokens_ > last.opened_at && wanted) {
                brackets_.emplace_back(last.begin, '(');
                brackets_.emplace_back(end_, ')');
            }
            returns_.pop_back();
        }
    }

    token_reader reader_;
    std::vector<std::pair<std::size_t, char>> brackets_;
    std::vector<std::string_view> blocks_;
    std::vector<open_return> returns_;
    std::size_t functions_ = 0;
    std::size_t tokens_ = 0;
    std::size_t end_ = 0;  // of the last token
};

}  // namespace

std::string without_tail_calls(std::string_view text, const std::function<void()>& between) {
    return_finder finder(text);
    if (!finder.find_all(between) || finder.brackets().empty()) return std::string(text);
    std::string made;
    made.reserve(text.size() + finder.brackets().size());
    std::size_t done = 0;
    for (const auto& [at, what] : finder.brackets()) {
        made += text.substr(done, at - done);
        made += what;
        done = at;
    }
    made += text.substr(done);
    return made;
}

}  // namespace eddy::lua
