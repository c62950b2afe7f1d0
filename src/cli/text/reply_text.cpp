// Replies as text. The forms are redis-cli's, so that scripts which read them need no change.
#include "cli/text/reply_text.hpp"

#include "base/text/base64.hpp"
#include "base/text/terminal_text.hpp"
#include "cli/request.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <utility>

namespace eddy::cli {
namespace {

using nlohmann::json;
using resp::reply_type;

bool is_aggregate(reply_type type) noexcept {
    return type == reply_type::array || type == reply_type::map || type == reply_type::set ||
           type == reply_type::push || type == reply_type::attribute;
}

std::string in_quotes(std::string_view text) {
    std::string shown = "\"";
    for (const char c : text) {
        switch (c) {
            case '\\': shown += "\\\\"; break;
            case '"': shown += "\\\""; break;
            case '\n': shown += "\\n"; break;
            case '\r': shown += "\\r"; break;
            case '\t': shown += "\\t"; break;
            case '\a': shown += "\\a"; break;
            case '\b': shown += "\\b"; break;
            default:
                if (c >= ' ' && c <= '~')
                    shown += c;
                else
                    shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
    return shown += '"';
}

std::string decimal(double number) {
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
    return fmt::format("{:.17g}", number);
}

std::string_view empty_text(reply_type type) noexcept {
    switch (type) {
        case reply_type::map: return "(empty hash)\n";
        case reply_type::set: return "(empty set)\n";
        case reply_type::push: return "(empty push)\n";
        default: return "(empty array)\n";
    }
}

std::string show(const reply& of, const std::string& indent) {
    switch (of.type) {
        case reply_type::simple:
        case reply_type::big_number:
        case reply_type::verbatim: return escaped_for_terminal(of.text) + "\n";
        case reply_type::error: return "(error) " + escaped_for_terminal(of.text) + "\n";
        case reply_type::integer: return fmt::format("(integer) {}\n", of.integer);
        case reply_type::bulk: return in_quotes(of.text) + "\n";
        case reply_type::null: return "(nil)\n";
        case reply_type::boolean: return of.integer != 0 ? "(true)\n" : "(false)\n";
        case reply_type::number: return "(double) " + decimal(of.number) + "\n";
        default: break;
    }
    if (of.elements.empty()) return std::string(empty_text(of.type));
    const bool is_map = of.type == reply_type::map;
    const std::size_t step = is_map ? 2 : 1;
    const std::size_t count = of.elements.size() / step;
    const std::size_t width = std::to_string(count).size();
    const std::string_view mark = is_map ? "#" : of.type == reply_type::set ? "~" : ")";
    const std::string inner = indent + std::string(width + 2, ' ');
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        // The first one stands behind what came before.
        if (i > 0) text += indent;
        text += fmt::format("{:>{}}{} ", i + 1, width, mark);
        if (!is_map) {
            text += show(of.elements[i], inner);
            continue;
        }
        std::string key = show(of.elements[2 * i], inner);
        key.pop_back();
        text += key + " => ";
        text += show(of.elements[2 * i + 1], inner);
    }
    return text;
}

void write_raw(const reply& of, std::string& to, bool& first) {
    // One without elements is an empty line, as in redis-cli.
    if (is_aggregate(of.type) && !of.elements.empty()) {
        for (const reply& each : of.elements) write_raw(each, to, first);
        return;
    }
    if (!first) to += '\n';
    first = false;
    switch (of.type) {
        case reply_type::null: break;
        case reply_type::integer: to += std::to_string(of.integer); break;
        case reply_type::boolean: to += of.integer != 0 ? "(true)" : "(false)"; break;
        case reply_type::number: to += decimal(of.number); break;
        default: to += of.text;
    }
}

bool is_utf8(const std::string& text) {
    try {
        static_cast<void>(json(text).dump());
        return true;
    } catch (const json::type_error&) {
        return false;
    }
}

json to_json(const reply& of) {
    switch (of.type) {
        case reply_type::null: return nullptr;
        case reply_type::integer: return of.integer;
        case reply_type::boolean: return of.integer != 0;
        case reply_type::number:
            return std::isfinite(of.number) ? json(of.number) : json(decimal(of.number));
        case reply_type::error:
            return {{"error", is_utf8(of.text) ? json(of.text) : json(in_quotes(of.text))}};
        case reply_type::simple:
        case reply_type::bulk:
        case reply_type::big_number:
        case reply_type::verbatim:
            if (is_utf8(of.text)) return of.text;
            return {{"base64", base64(of.text)}};
        default: break;
    }
    if (of.type == reply_type::map) {
        json object = json::object();
        for (std::size_t i = 0; i + 1 < of.elements.size(); i += 2) {
            json key = to_json(of.elements[i]);
            json value = to_json(of.elements[i + 1]);
            object[key.is_string() ? key.get<std::string>() : key.dump()] = std::move(value);
        }
        return object;
    }
    json list = json::array();
    for (const reply& each : of.elements) list.push_back(to_json(each));
    return list;
}

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

/// True when this was the last part of the reply.
bool reply_reader::add(reply value) {
    for (;;) {
        if (open_.empty()) {
            whole_ = std::move(value);
            return true;
        }
        open_aggregate& above = open_.back();
        if (!above.dropped) above.value.elements.push_back(std::move(value));
        if (--above.left > 0) return false;
        value = std::move(above.value);
        const bool dropped = above.dropped;
        open_.pop_back();
        if (dropped) return false;
    }
}

std::expected<bool, std::string> reply_reader::next(reply& into) {
    std::string_view rest = unread_;
    const auto consume = [&] { unread_.erase(0, unread_.size() - rest.size()); };
    for (;;) {
        const resp::reply_outcome got = parser_.next(rest);
        if (got.status == resp::parse_status::need_more) {
            consume();
            return false;
        }
        if (got.status == resp::parse_status::error) return std::unexpected(std::string(got.error));
        rest.remove_prefix(got.consumed);
        const resp::reply_event& event = got.event;
        reply value{event.type, event.integer, event.number, std::string(event.text), {}};
        const bool is_attribute = event.type == reply_type::attribute;
        bool ended = false;
        if (is_aggregate(event.type) && event.count > 0)
            open_.push_back({std::move(value), event.count, is_attribute});
        else if (!is_attribute)
            ended = add(std::move(value));
        if (!ended) continue;
        consume();
        into = std::move(whole_);
        return true;
    }
}

std::string reply_for_people(const reply& of) { return show(of, ""); }

std::string raw_reply(const reply& of) {
    std::string text;
    bool first = true;
    write_raw(of, text, first);
    return text += '\n';
}

std::string json_reply(const reply& of) { return dump_for_terminal(to_json(of)) + "\n"; }

std::expected<std::vector<std::string>, std::string> split_line(std::string_view line) {
    std::vector<std::string> words;
    const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0'; };
    std::size_t at = 0;
    for (;;) {
        while (at < line.size() && is_space(line[at])) ++at;
        if (at == line.size()) return words;
        std::string word;
        while (at < line.size() && !is_space(line[at])) {
            const char quote = line[at];
            if (quote != '"' && quote != '\'') {
                word += line[at++];
                continue;
            }
            const std::size_t began = at++;
            for (; at < line.size() && line[at] != quote; ++at) {
                if (line[at] != '\\' || at + 1 == line.size()) {
                    word += line[at];
                    continue;
                }
                const char next = line[at + 1];
                if (quote == '\'') {
                    if (next == '\'') ++at;
                    word += line[at];
                    continue;
                }
                ++at;
                const int high = next == 'x' && at + 2 < line.size() ? hex_digit(line[at + 1]) : -1;
                const int low = high >= 0 ? hex_digit(line[at + 2]) : -1;
                if (low >= 0) {
                    word += static_cast<char>(high * 16 + low);
                    at += 2;
                    continue;
                }
                constexpr std::string_view letters = "nrtba";
                constexpr std::string_view meant = "\n\r\t\b\a";
                const std::size_t known = letters.find(next);
                word += known == std::string_view::npos ? next : meant[known];
            }
            if (at == line.size())
                return std::unexpected(
                    fmt::format("the quote at character {} is not closed", began + 1));
            ++at;
            if (at < line.size() && !is_space(line[at]))
                return std::unexpected(
                    fmt::format("behind the closing quote at character {} must be a space", at));
        }
        words.push_back(std::move(word));
    }
}

}  // namespace eddy::cli
