// Words of a text of Lua, the scopes that they are in, and the globals that it reads and assigns.
#include "script/script_check.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/nearest.hpp>

#include "base/text/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace eddy::script {
namespace {

constexpr std::string_view prefix = "on_";

bool is_of_name(char c) noexcept { return is_letter(c) || is_digit(c) || c == '_'; }

bool is_keyword(std::string_view word) noexcept {
    constexpr std::array<std::string_view, 21> all = {
        "and", "break",    "do",     "else", "elseif", "end",   "false",
        "for", "function", "if",     "in",   "local",  "nil",   "not",
        "or",  "repeat",   "return", "then", "true",   "until", "while"};
    return std::ranges::find(all, word) != all.end();
}

bool is_name(std::string_view word) noexcept {
    return !word.empty() && is_of_name(word[0]) && !is_digit(word[0]) && !is_keyword(word);
}

/// Walks through the tokens of a text: names, and single bytes of all else. Strings and comments
/// are left out.
class tokens {
public:
    explicit tokens(std::string_view text) noexcept : text_(text) {}

    /// The next one; empty at the end.
    std::string_view next() noexcept {
        skip();
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_of_name(text_[at_])) ++at_;
        if (at_ == begin && at_ < text_.size()) ++at_;
        return text_.substr(begin, at_ - begin);
    }
    /// The same, which stays the next one.
    std::string_view peek() noexcept {
        const tokens before = *this;
        const std::string_view word = next();
        *this = before;
        return word;
    }
    std::size_t line() const noexcept { return line_; }
    /// The text behind the last token begins an assignment.
    bool is_assigned() noexcept {
        skip();
        return text_.substr(at_, 1) == "=" && text_.substr(at_, 2) != "==";
    }
    /// It begins the arguments of a call.
    bool is_called() noexcept {
        skip_blanks();
        const std::string_view next = text_.substr(at_, 1);
        return next == "(" || next == "{" || next == "\"" || next == "'" ||
               text_.substr(at_, 2) == "[[" || text_.substr(at_, 2) == "[=";
    }

private:
    void skip() noexcept {
        for (;;) {
            skip_blanks();
            const std::size_t before = at_;
            if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
                skip_quoted();
            } else if (text_.substr(at_, 1) == "[") {
                static_cast<void>(skip_long());
            }
            if (at_ == before) return;
        }
    }
    /// White space and comments.
    void skip_blanks() noexcept {
        for (;;) {
            while (at_ < text_.size() &&
                   (text_[at_] == ' ' || (text_[at_] >= 9 && text_[at_] <= 13)))
                advance();
            if (text_.substr(at_, 2) != "--") return;
            at_ += 2;
            if (!skip_long())
                while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        }
    }
    void advance() noexcept {
        if (text_[at_++] == '\n') ++line_;
    }
    void skip_quoted() noexcept {
        const char quote = text_[at_++];
        while (at_ < text_.size() && text_[at_] != quote) {
            if (text_[at_] == '\\' && at_ + 1 < text_.size()) advance();
            advance();
        }
        if (at_ < text_.size()) ++at_;
    }
    /// Skips a string or comment in long brackets; false if none begins here.
    bool skip_long() noexcept {
        std::size_t end = at_ + 1;
        if (text_.substr(at_, 1) != "[") return false;
        while (end < text_.size() && text_[end] == '=') ++end;
        if (text_.substr(end, 1) != "[") return false;
        const std::string close = "]" + std::string(end - at_ - 1, '=') + "]";
        const std::size_t found = text_.find(close, end);
        const std::size_t last =
            found == std::string_view::npos ? text_.size() : found + close.size();
        while (at_ < last) advance();
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
};

/// Uses of a field of a table of functions.
struct field_use {
    std::size_t line = 0;  // of the first call
    bool is_read = false;  // also without a call, as before one that not every version has
};

/// Names of a text, as views of it.
struct usage {
    std::map<std::string_view, std::size_t> defined;   // functions on_…: lines of the first ones
    std::set<std::string_view> used;                   // such names otherwise
    std::map<std::string_view, std::size_t> assigned;  // globals, in callbacks
    std::map<std::string_view, std::string_view> assigned_by;
    std::set<std::string_view> declared;  // globals that are assigned elsewhere
    std::map<std::pair<std::string_view, std::string>, field_use> fields;  // by table and name
    std::set<std::string_view> globals;  // that are read or assigned
};

/// Definitions of callbacks, and names like theirs.
void read_callbacks(std::string_view text, usage& found) {
    tokens in(text);
    std::string_view before, last;
    int braces = 0;
    for (std::string_view word = in.next(); !word.empty(); word = in.next()) {
        braces += word == "{" ? 1 : word == "}" ? -1 : 0;
        if (word.starts_with(prefix)) {
            const std::size_t line = in.line();
            const bool is_field = last == "." || last == ":";
            const bool is_function = last == "function" && before != "local";
            const bool is_set = last != "local" && last != "function" && braces == 0 && !is_field &&
                                in.is_assigned();
            if (is_function || is_set)
                found.defined.emplace(word, line);
            else
                found.used.emplace(word);
        }
        before = last;
        last = word;
    }
}

/// Reader of scopes. Where it is not certain, a name counts as local for longer than it is.
class scope_reader {
public:
    scope_reader(std::string_view text, const script_names& known, usage& into)
        : in_(text), known_(known), found_(into) {}

    void read() {
        open(kind::block);
        for (std::string_view word = in_.next(); !word.empty(); word = in_.next()) {
            // Other than the dot before a field.
            if (word == "." && in_.peek() == ".") {
                while (in_.peek() == ".") in_.next();
                word = "..";
            }
            taken_ = word;
            take(word);
            last_ = taken_;
        }
    }

private:
    enum class kind : unsigned char { function, block, loop, repeat, bracket };
    struct scope {
        kind of;
        std::size_t locals;  // before it
    };

    void open(kind of) { scopes_.push_back({of, locals_.size()}); }
    void close() {
        if (scopes_.size() <= 1) return;
        const scope ended = scopes_.back();
        EDDY_ASSERT(ended.locals <= locals_.size());
        scopes_.pop_back();
        // Locals of `repeat` are known behind `until`, too.
        if (ended.of != kind::repeat) locals_.resize(ended.locals);
        if (ended.of == kind::function && --functions_ == 0) callback_ = {};
    }
    bool is_local(std::string_view name) const noexcept {
        return std::find(locals_.rbegin(), locals_.rend(), name) != locals_.rend();
    }

    void take(std::string_view word) {
        EDDY_ASSERT(!word.empty() && !scopes_.empty());
        if (word == "function") return begin_function();
        if (word == "local") return declare();
        if (word == "for" || word == "while") {
            open(kind::loop);
            if (word == "for") declare();
        } else if (word == "do") {
            if (scopes_.back().of == kind::loop)
                scopes_.back().of = kind::block;
            else
                open(kind::block);
        } else if (word == "then") {
            open(kind::block);
        } else if (word == "repeat") {
            open(kind::repeat);
        } else if (word == "elseif" || word == "end" || word == "until") {
            close();
        } else if (word == "else") {
            close();
            open(kind::block);
        } else if (word == "{" || word == "(" || word == "[") {
            open(kind::bracket);
        } else if (word == "}" || word == ")" || word == "]") {
            if (scopes_.back().of == kind::bracket) close();
        } else if (is_name(word) && last_ != "." && last_ != ":" && !is_local(word)) {
            take_global(word);
        }
    }

    /// The names behind `local`, `for` and the parenthesis of parameters.
    void declare() {
        while (is_name(in_.peek())) {
            taken_ = in_.next();
            locals_.push_back(taken_);
            if (in_.peek() != ",") return;
            in_.next();
        }
    }

    void begin_function() {
        const std::size_t line = in_.line();
        std::string_view name;
        bool is_path = false;
        bool has_self = false;
        for (std::string_view word = in_.next(); !word.empty() && word != "("; word = in_.next()) {
            if (is_name(word) && name.empty()) name = word;
            is_path |= word == "." || word == ":";
            has_self |= word == ":";
        }
        if (last_ == "local") locals_.push_back(name);
        const bool is_global = !name.empty() && !is_path && last_ != "local" && !is_local(name);
        if (is_global) assign(name, line);
        if (functions_++ == 0) callback_ = is_global ? name : assigned_last_;
        open(kind::function);
        if (has_self) locals_.push_back("self");
        declare();
    }

    void take_global(std::string_view name) {
        found_.globals.insert(name);
        const bool is_assigned = in_.is_assigned() && scopes_.back().of != kind::bracket;
        assigned_last_ = {};
        if (is_assigned) {
            assign(name, in_.line());
            tokens ahead = in_;
            ahead.next();
            if (ahead.peek() == "function") assigned_last_ = name;
            return;
        }
        if (std::ranges::find(known_.tables, name) != known_.tables.end()) take_field(name);
    }

    /// The field behind a table's name.
    void take_field(std::string_view table) {
        EDDY_ASSERT(is_name(table) && !is_local(table));
        tokens ahead = in_;
        if (ahead.next() != ".") return;
        const std::size_t line = ahead.line();
        std::string field(ahead.next());
        const std::string inner = field + ".";
        const auto is_inner = [&](const std::string& each) { return each.starts_with(inner); };
        tokens further = ahead;
        if (std::ranges::any_of(known_.functions, is_inner) && further.next() == ".") {
            field = inner + std::string(further.next());
            ahead = further;
        }
        field_use& use = found_.fields[{table, field}];
        if (!ahead.is_called())
            use.is_read = true;
        else if (use.line == 0)
            use.line = line;
    }

    void assign(std::string_view name, std::size_t line) {
        EDDY_ASSERT(is_name(name) && line > 0);
        const bool prepares = callback_ == "on_start" || callback_ == "on_reload";
        const bool is_in_callback = callback_.starts_with(prefix) || callback_ == "handle";
        if (functions_ == 0 || prepares || !is_in_callback) {
            found_.declared.insert(name);
            return;
        }
        if (found_.assigned.emplace(name, line).second) found_.assigned_by[name] = callback_;
    }

    tokens in_;
    const script_names& known_;
    usage& found_;
    std::vector<scope> scopes_;
    std::vector<std::string_view> locals_;
    std::string_view last_;
    std::string_view taken_;          // the last token so far
    std::string_view assigned_last_;  // the global that the function to come is assigned to
    std::string_view callback_;       // the outermost function's name
    std::size_t functions_ = 0;       // that the text is in
};

std::string meant(std::string_view name, const std::vector<std::string>& all,
                  std::string_view before = {}) {
    const std::vector<std::string_view> names(all.begin(), all.end());
    const std::string_view near = nearest_word(name, names);
    return near.empty() ? "" : fmt::format("; did you mean {}{}?", before, near);
}

}  // namespace

std::vector<name_fault> check_names(std::string_view text, const script_names& known) {
    usage found;
    read_callbacks(text, found);
    scope_reader(text, known, found).read();
    const auto uses = [&](std::string_view global) { return found.globals.contains(global); };
    std::vector<name_fault> faults;
    // Such a text may reach its globals by other ways.
    const bool is_closed = !uses("_G") && !uses("getfenv") && !uses("setfenv");
    for (const auto& [each, line] : found.defined) {
        if (!is_closed || found.used.contains(each) ||
            std::ranges::find(known.callbacks, each) != known.callbacks.end())
            continue;
        const std::string owner =
            known.owner.empty() ? "there is no" : fmt::format("{} has no", known.owner);
        faults.push_back(
            {line, fmt::format("{} callback {}{}", owner, each, meant(each, known.callbacks)),
             uses("require")});
    }
    for (const auto& [at, use] : found.fields) {
        const auto& [table, each] = at;
        // It may be another table than ours.
        const bool is_own = found.declared.contains(table) || found.assigned.contains(table);
        if (is_own || known.functions.empty() || uses("setfenv") || use.line == 0 || use.is_read ||
            std::ranges::find(known.functions, each) != known.functions.end())
            continue;
        faults.push_back(
            {use.line, fmt::format("there is no function {}.{}{}", table, each,
                                   meant(each, known.functions, std::string(table) + "."))});
    }
    for (const auto& [each, line] : found.assigned)
        if (!found.declared.contains(each) && is_closed)
            faults.push_back(
                {line,
                 fmt::format("{}() sets the global variable {}, which nothing else does: "
                             "write `local {}` in front, or at the file's beginning",
                             found.assigned_by[each], each, each),
                 true});
    std::ranges::sort(faults, {}, [](const name_fault& of) { return std::tie(of.line, of.text); });
    return faults;
}

}  // namespace eddy::script
