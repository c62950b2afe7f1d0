// Request parser, with a fast and a slow path.
//
// The fast one takes a whole array out of the input in one pass, straight into views; nearly every
// command goes this way. The rest (an incomplete command, an odd number, an inline line, a fault)
// is left to the slow one, which notes its progress as offsets and knows the errors.
#include <eddy/wire/resp/request.hpp>

#include <eddy/base/assert.hpp>

#include "wire/resp/head.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace eddy::resp {
namespace {

constexpr std::string_view error_prefix = "ERR Protocol error: ";

struct fast_limits {
    std::size_t args, bulk, request;
};

// Parses strings from `at` until `args` reaches `last`. Returns where they end, or null to leave
// the command, which begins at `begin`, to the slow path.
inline const char* parse_strings(const char* begin, const char* at, const char* end,
                                 std::string_view* args, std::string_view* const last,
                                 const fast_limits& limits) noexcept {
    for (; args != last; ++args) {
        if (end - at < std::ptrdiff_t{detail::shortest_string}) return nullptr;
        std::size_t size = 0;
        at = detail::read_head<'$'>(at, end, size);
        if (!at || size > limits.bulk) return nullptr;
        if (static_cast<std::size_t>(end - at) < size + 2) return nullptr;
        *args = {at, size};
        at += size + 2;
    }
    return static_cast<std::size_t>(at - begin) <= limits.request ? at : nullptr;
}

// Parses a whole array into `args`, which has room for `room` views. Returns where it ends, or null
// to leave it to the slow path. `argc` is set once the count is known, even when it exceeds `room`.
inline const char* parse_fast(const char* at, const char* end, std::string_view* args,
                              std::size_t room, const fast_limits& limits,
                              std::size_t& argc) noexcept {
    const char* const begin = at;
    argc = 0;
    if (end - at < std::ptrdiff_t{4 + detail::shortest_string}) return nullptr;
    std::size_t count = 0;
    at = detail::read_head<'*'>(at, end, count);
    if (!at || count > limits.args) return nullptr;
    argc = count;
    if (count - 1 >= room) return nullptr;  // no argument at all, or too many
    return parse_strings(begin, at, end, args, args + count, limits);
}

// Beginning of the last command, up to the end of its name: "*2\r\n$3\r\nGET\r\n". In a pipeline
// the next command mostly begins with the same bytes, which then need not be parsed again.
class known_beginning {
public:
    static constexpr std::size_t max_size = 16;

    // Records the beginning of the command at `at`, which has these arguments.
    known_beginning(const char* at, const char* end, const std::string_view* args,
                    std::size_t argc) noexcept
        : name_(static_cast<std::size_t>(args[0].data() - at)), argc_(argc) {
        size_ = name_ + args[0].size() + 2;
        if (size_ > max_size || end - at < std::ptrdiff_t{max_size}) {
            size_ = 0;
            return;
        }
        for (std::size_t i = 0; i < 2; ++i) {
            const std::size_t covered = std::min<std::size_t>(size_ - std::min(size_, i * 8), 8);
            masks_[i] = covered == 0 ? 0 : ~std::uint64_t{0} >> (64 - 8 * covered);
            words_[i] = load(at + i * 8) & masks_[i];
        }
    }

    // Parses the commands at `at` that begin so, as long as they come whole and there is room for
    // them. Returns where they end; `to` and `args` are behind the last one's then.
    [[gnu::noinline]] const char* parse_repeats(const char* at, const char* const end, command*& to,
                                                const command* const to_end,
                                                std::string_view*& args,
                                                const std::string_view* const args_end,
                                                const fast_limits& limits) const noexcept {
        if (size_ == 0) return at;
        command* next = to;
        std::string_view* its = args;
        for (; next != to_end && is_at(at, end); ++next) {
            if (static_cast<std::size_t>(args_end - its) < argc_) break;
            its[0] = {at + name_, size_ - 2 - name_};
            const char* const behind =
                parse_strings(at, at + size_, end, its + 1, its + argc_, limits);
            if (!behind) break;
            *next = {its, argc_, true};
            its += argc_;
            at = behind;
        }
        to = next;
        args = its;
        return at;
    }

private:
    bool is_at(const char* at, const char* end) const noexcept {
        if (end - at < std::ptrdiff_t{max_size}) return false;
        return (((load(at) & masks_[0]) ^ words_[0]) | ((load(at + 8) & masks_[1]) ^ words_[1])) ==
               0;
    }
    static std::uint64_t load(const char* at) noexcept {
        std::uint64_t word;
        std::memcpy(&word, at, sizeof word);
        return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
    }

    std::uint64_t words_[2]{};
    std::uint64_t masks_[2]{};
    std::size_t size_;  // 0: it is too long to be known again
    std::size_t name_;  // where the name begins
    std::size_t argc_;
};

fast_limits limits_for(const request_limits& limits, bool unauthenticated) noexcept {
    if (!unauthenticated) return {limits.max_args, limits.max_bulk, limits.max_request};
    return {std::min(limits.max_args, limits.max_args_unauthenticated),
            std::min(limits.max_bulk, limits.max_bulk_unauthenticated), limits.max_request};
}

// Redis's rule for numbers: no sign but '-', no leading zero, nothing around it.
bool read_integer(std::string_view text, std::int64_t& value) noexcept {
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    if (text.empty() || text.size() > 19) return false;
    if (text[0] == '0' && (text.size() > 1 || negative)) return false;
    std::uint64_t magnitude = 0;  // 19 digits fit
    for (const char c : text) {
        if (detail::digit(c) > 9) return false;
        magnitude = magnitude * 10 + detail::digit(c);
    }
    constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
    if (magnitude > largest + (negative ? 1 : 0)) return false;
    value = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
    return true;
}

// The spaces of the C locale; what separates arguments inside a line is fewer, see ends_word().
bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool ends_word(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

int hex_value(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

char escaped(char c) noexcept {
    switch (c) {
        case 'n': return '\n';
        case 'r': return '\r';
        case 't': return '\t';
        case 'b': return '\b';
        case 'a': return '\a';
        default: return c;
    }
}

}  // namespace

struct request_parser::spill {
    std::vector<argument> arguments;
    std::vector<std::string_view> views;
    std::vector<const char*> placed;  // arguments that are not in the input
    std::string scratch;              // unescaped inline arguments
    std::string error;
};

request_parser::request_parser(const request_limits& limits) { set_limits(limits); }
request_parser::request_parser(request_parser&&) noexcept = default;
request_parser& request_parser::operator=(request_parser&&) noexcept = default;
request_parser::~request_parser() = default;

void request_parser::set_limits(const request_limits& limits) noexcept {
    // Offsets are kept in 32 bits.
    constexpr std::size_t most = 1U << 31;
    EDDY_ASSERT(limits.max_request <= most && limits.max_inline < most && limits.max_args < most);
    limits_ = limits;
}

request_outcome request_parser::next(std::string_view input, bool unauthenticated) {
    trim();
    if (!in_progress()) {
        std::size_t argc = 0;
        const char* const end =
            parse_fast(input.data(), input.data() + input.size(), views_.data(), views_.size(),
                       limits_for(limits_, unauthenticated), argc);
        if (end) {
            request_outcome outcome;
            outcome.status = parse_status::complete;
            outcome.consumed = static_cast<std::size_t>(end - input.data());
            outcome.request = {views_.data(), argc};
            return outcome;
        }
    }
    return next_slow(input, unauthenticated);
}

request_outcome request_parser::next_slow(std::string_view input, bool unauthenticated) {
    EDDY_ASSERT(input.size() >= scanned_);  // the same bytes and more, as next() requires
    request_outcome outcome;
    std::size_t skipped = 0;
    do {
        input.remove_prefix(outcome.consumed);
        if (stage_ == stage::failed) {
            outcome = {};
            outcome.status = parse_status::error;
            outcome.error = spill_->error;
        } else if (input.empty()) {
            outcome = {};
            outcome.wanted = 1;
        } else if (input[0] == '*') {
            outcome = parse_array(input, unauthenticated);
        } else {
            outcome = parse_inline(input);
        }
        skipped += outcome.consumed;
    } while (outcome.status == parse_status::complete && outcome.request.argc == 0);
    outcome.consumed = skipped;
    return outcome;
}

request_outcome request_parser::parse_array(std::string_view input, bool unauthenticated) {
    request_outcome outcome;
    outcome.wanted = 1;
    std::size_t line_end = 0;
    std::int64_t number = 0;
    if (stage_ == stage::start) {
        if (!find_line_end(input, line_end)) {
            if (scanned_ > limits_.max_inline) return fail("too big mbulk count string");
            return outcome;
        }
        if (!read_integer(input.substr(1, line_end - 1), number) ||
            number > static_cast<std::int64_t>(limits_.max_args)) {
            return fail("invalid multibulk length");
        }
        if (unauthenticated &&
            number > static_cast<std::int64_t>(limits_.max_args_unauthenticated)) {
            return fail("unauthenticated multibulk length");
        }
        position_ = static_cast<std::uint32_t>(line_end + 2);
        scanned_ = position_;
        if (number <= 0) return finish(position_);
        args_expected_ = static_cast<std::uint32_t>(number);
        stage_ = stage::bulk_head;
    }
    while (args_seen_ < args_expected_) {
        if (stage_ == stage::bulk_head) {
            if (!find_line_end(input, line_end)) {
                if (scanned_ - position_ > limits_.max_inline) {
                    return fail("too big bulk count string");
                }
                return outcome;
            }
            if (input[position_] != '$') {
                std::string text = "expected '$', got '";
                text += input[position_];
                text += '\'';
                return fail(text);
            }
            if (!read_integer(input.substr(position_ + 1, line_end - position_ - 1), number) ||
                number < 0 || static_cast<std::size_t>(number) > limits_.max_bulk) {
                return fail("invalid bulk length");
            }
            const auto size = static_cast<std::size_t>(number);
            if (unauthenticated && size > limits_.max_bulk_unauthenticated) {
                return fail("unauthenticated bulk length");
            }
            // Redis closes the connection without a word here (client-query-buffer-limit).
            if (placed_bytes_ + line_end + 2 + size + 2 > limits_.max_request)
                return fail("too big request");
            position_ = static_cast<std::uint32_t>(line_end + 2);
            bulk_size_ = static_cast<std::uint32_t>(size);
            stage_ = stage::bulk_body;
        }
        const std::size_t end = std::size_t{position_} + bulk_size_ + 2;
        if (input.size() < end) {
            outcome.wanted = end - input.size();
            return outcome;
        }
        add_argument(position_, bulk_size_);
        position_ = scanned_ = static_cast<std::uint32_t>(end);
        stage_ = stage::bulk_head;
    }
    return finish_array(input.data());
}

// Finds the CR of the line at position_, with a byte behind it. False when it is not there yet, or
// not within the limit: then scanned_ exceeds the limit. The result is the same at any split of the
// input.
bool request_parser::find_line_end(std::string_view input, std::size_t& end) noexcept {
    const std::size_t readable = std::min(input.size(), position_ + limits_.max_inline + 1);
    const std::size_t cr = input.substr(0, readable).find('\r', scanned_);
    scanned_ = static_cast<std::uint32_t>(std::min(cr, readable));
    if (cr >= readable || cr + 1 >= input.size()) return false;
    end = cr;
    return true;
}

void request_parser::place_argument(const char* at) {
    EDDY_ASSERT(open_argument() > 0);
    std::vector<const char*>& placed = spilled().placed;
    const std::size_t number = placed.size();
    placed.push_back(at);
    add_argument(is_placed | number, bulk_size_);
    placed_bytes_ += bulk_size_ + 2;
    scanned_ = position_;
    stage_ = stage::bulk_head;
}

void request_parser::add_argument(std::size_t offset, std::size_t size) {
    const argument added{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)};
    if (args_expected_ <= inline_args) {
        arguments_[args_seen_++] = added;
    } else {
        spilled().arguments.push_back(added);
        ++args_seen_;
    }
}

request_outcome request_parser::finish_array(const char* base) {
    const bool few = args_expected_ <= inline_args;
    const argument* const arguments = few ? arguments_.data() : spill_->arguments.data();
    if (!few) spill_->views.reserve(args_seen_);
    for (std::size_t i = 0; i < args_seen_; ++i) {
        const std::uint32_t offset = arguments[i].offset;
        const char* const at =
            (offset & is_placed) == 0 ? base + offset : spill_->placed[offset & ~is_placed];
        const std::string_view view{at, arguments[i].size};
        if (few) {
            views_[i] = view;
        } else {
            spill_->views.push_back(view);
        }
    }
    return finish(position_);
}

// The command of args_seen_ views is complete. The parser is at the start of the next one.
request_outcome request_parser::finish(std::size_t consumed) {
    request_outcome outcome;
    outcome.status = parse_status::complete;
    outcome.consumed = consumed;
    outcome.request.argc = args_seen_;
    outcome.request.argv = args_seen_ <= inline_args ? views_.data() : spill_->views.data();
    stage_ = stage::start;
    position_ = scanned_ = args_expected_ = args_seen_ = placed_bytes_ = 0;
    return outcome;
}

request_outcome request_parser::parse_inline(std::string_view input) {
    request_outcome outcome;
    const std::size_t readable = std::min(input.size(), limits_.max_inline + 1);
    const std::size_t newline = input.substr(0, readable).find('\n', scanned_);
    if (newline == std::string_view::npos) {
        if (readable > limits_.max_inline) return fail("too big inline request");
        scanned_ = static_cast<std::uint32_t>(readable);
        outcome.wanted = 1;
        return outcome;
    }
    std::string_view line = input.substr(0, newline);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!split_inline(line)) return fail("unbalanced quotes in request");
    return finish(newline + 1);
}

// Splits a line into views. False when a quote stays open or text touches a closing one.
bool request_parser::split_inline(std::string_view line) {
    std::size_t at = 0;
    for (;;) {
        while (at < line.size() && is_space(line[at])) ++at;
        if (at == line.size()) return true;
        const std::size_t begin = at;
        while (at < line.size() && !ends_word(line[at]) && line[at] != '"' && line[at] != '\'')
            ++at;
        if (at == line.size() || ends_word(line[at])) {
            add_view(line.substr(begin, at - begin));
            continue;
        }
        // A quote opens, perhaps within a word: then what stands before it belongs to the argument.
        std::string& scratch = spilled().scratch;
        if (!uses_scratch_) scratch.reserve(line.size());  // never moves: it only gets shorter
        uses_scratch_ = true;
        const std::size_t scratch_begin = scratch.size();
        scratch.append(line, begin, at - begin);
        if (!unquote(line, at)) return false;
        add_view(std::string_view(scratch).substr(scratch_begin));
    }
}

// Appends the quoted text at `at` to the scratch and moves `at` behind its closing quote.
bool request_parser::unquote(std::string_view line, std::size_t& at) {
    std::string& scratch = spill_->scratch;
    const char quote = line[at++];
    for (; at < line.size(); ++at) {
        const char c = line[at];
        if (c == quote) {
            ++at;
            return at == line.size() || is_space(line[at]);
        }
        if (c != '\\' || at + 1 == line.size() || (quote == '\'' && line[at + 1] != '\'')) {
            scratch += c;
            continue;
        }
        ++at;
        const int high = at + 2 < line.size() ? hex_value(line[at + 1]) : -1;
        const int low = at + 2 < line.size() ? hex_value(line[at + 2]) : -1;
        if (line[at] == 'x' && high >= 0 && low >= 0) {
            scratch += static_cast<char>(high * 16 + low);
            at += 2;
        } else {
            scratch += quote == '"' ? escaped(line[at]) : line[at];
        }
    }
    return false;
}

void request_parser::add_view(std::string_view view) {
    if (args_seen_ < inline_args) {
        views_[args_seen_] = view;
    } else {
        std::vector<std::string_view>& views = spilled().views;
        if (args_seen_ == inline_args) views.assign(views_.begin(), views_.end());
        views.push_back(view);
    }
    ++args_seen_;
}

request_outcome request_parser::fail(std::string_view text) {
    stage_ = stage::failed;
    spilled().error = error_prefix;
    spilled().error += text;
    request_outcome outcome;
    outcome.status = parse_status::error;
    outcome.error = spilled().error;
    return outcome;
}

// Forgets the last command's views, and gives back what a huge one had allocated.
void request_parser::trim() noexcept {
    if (!spill_ || in_progress()) return;
    uses_scratch_ = false;
    spill_->arguments.clear();
    spill_->views.clear();
    spill_->placed.clear();
    spill_->scratch.clear();
    if (spill_->arguments.capacity() > kept_args) std::vector<argument>().swap(spill_->arguments);
    if (spill_->views.capacity() > kept_args) std::vector<std::string_view>().swap(spill_->views);
    if (spill_->scratch.capacity() > kept_scratch) std::string().swap(spill_->scratch);
}

request_parser::spill& request_parser::spilled() {
    if (!spill_) spill_ = std::make_unique<spill>();
    return *spill_;
}

batch_outcome request_batch::parse(request_parser& parser, std::string_view input,
                                   bool unauthenticated) {
    batch_outcome outcome;
    const fast_limits limits = limits_for(parser.limits_, unauthenticated);
    const std::size_t most = unauthenticated ? 1 : max_commands;
    const char* at = input.data();
    const char* const end = at + input.size();
    std::size_t count = 0;
    std::size_t used = 0;
    bool resumed = parser.in_progress();
    outcome.status = parse_status::complete;
    parser.trim();
    while (count < most) {
        if (!resumed) {
            const std::size_t room = max_args - used;
            std::size_t argc = 0;
            std::string_view* args = args_.data() + used;
            if (const char* const next = parse_fast(at, end, args, room, limits, argc)) {
                const known_beginning last(at, end, args, argc);
                command* to = commands_.data() + count;
                *to++ = {args, argc};
                args += argc;
                at = last.parse_repeats(next, end, to, commands_.data() + most, args,
                                        args_.data() + max_args, limits);
                count = static_cast<std::size_t>(to - commands_.data());
                used = static_cast<std::size_t>(args - args_.data());
                continue;
            }
            if (used > 0 && argc > room) break;
        }
        resumed = false;
        const request_outcome one =
            parser.next_slow({at, static_cast<std::size_t>(end - at)}, unauthenticated);
        at += one.consumed;
        if (one.status != parse_status::complete) {
            outcome.status = one.status;
            outcome.wanted = one.wanted;
            outcome.error = one.error;
            break;
        }
        const std::size_t argc = one.request.argc;
        if (argc > max_args - used || parser.uses_scratch_) {
            commands_[count++] = one.request;
            break;
        }
        std::copy_n(one.request.argv, argc, args_.data() + used);
        commands_[count++] = {args_.data() + used, argc};
        used += argc;
        parser.trim();
    }
    outcome.consumed = static_cast<std::size_t>(at - input.data());
    outcome.commands = {commands_.data(), count};
    return outcome;
}

}  // namespace eddy::resp
