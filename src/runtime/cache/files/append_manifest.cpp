// Format of the manifest: "file NAME seq NUMBER type b|i|h", a line for each part.
#include "runtime/cache/files/append_manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace eddy::runtime::cache {
namespace {

using part = append_manifest::part;

// Characters for which Redis quotes a name.
bool needs_quotes(std::string_view name) {
    return name.empty() || std::ranges::any_of(name, [](char c) {
               return c <= ' ' || c > '~' || c == '"' || c == '\'' || c == '\\';
           });
}

std::string in_quotes(std::string_view name) {
    if (!needs_quotes(name)) return std::string(name);
    std::string text = "\"";
    for (const char c : name) {
        if (c == '"' || c == '\\')
            text += fmt::format("\\{}", c);
        else if (c < ' ' || c > '~')
            text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
            text += c;
    }
    return text + '"';
}

// Takes the first word, with its quotes resolved; false when there is none.
bool take_word(std::string_view& line, std::string& word) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) return false;
    word.clear();
    if (line[0] != '"') {
        word = line.substr(0, line.find(' '));
        line.remove_prefix(word.size());
        return true;
    }
    line.remove_prefix(1);
    while (!line.empty() && line[0] != '"') {
        if (line[0] == '\\' && line.size() >= 4 && line[1] == 'x') {
            unsigned value = 0;
            const char* const digits = line.data() + 2;
            if (std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) return false;
            word += static_cast<char>(value);
            line.remove_prefix(4);
            continue;
        }
        if (line[0] == '\\') {
            line.remove_prefix(1);
            if (line.empty()) return false;
        }
        word += line[0];
        line.remove_prefix(1);
    }
    if (line.empty()) return false;
    line.remove_prefix(1);
    return true;
}

bool is_file_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." &&
           name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

bool parse_line(std::string_view line, part& to, char& type) {
    std::string key;
    std::string value;
    bool has_sequence = false;
    type = 0;
    while (take_word(line, key)) {
        if (!take_word(line, value)) return false;
        if (key == "file") {
            to.name = value;
        } else if (key == "seq") {
            const char* const end = value.data() + value.size();
            const auto [at, failed] = std::from_chars(value.data(), end, to.sequence);
            has_sequence = failed == std::errc{} && at == end;
        } else if (key == "type") {
            type = value.size() == 1 ? value[0] : '\0';
        }
    }
    return is_file_name(to.name) && has_sequence && type != 0;
}

}  // namespace

outcome<append_manifest> parse_manifest(std::string_view text) {
    append_manifest read;
    std::set<std::string> names;
    std::size_t number = 0;
    const auto wrong = [&number](std::string_view why) {
        return refuse(500, fmt::format("its line {} {}", number, why));
    };
    while (!text.empty()) {
        ++number;
        const std::size_t size = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, size);
        text.remove_prefix(std::min(size + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.starts_with('#')) continue;
        part one;
        char type = 0;
        if (!parse_line(line, one, type)) return wrong("is not \"file NAME seq NUMBER type TYPE\"");
        // One that was also history would be removed.
        if (!names.insert(one.name).second) return wrong("names a file for the second time");
        if (type == 'b') {
            if (read.base) return wrong("names a second base");
            read.last_base = one.sequence;
            read.base = std::move(one);
        } else if (type == 'i') {
            if (one.sequence <= read.last_increment) return wrong("is out of order");
            read.last_increment = one.sequence;
            read.increments.push_back(std::move(one));
        } else if (type == 'h') {
            read.history.push_back(std::move(one));
        } else {
            return wrong("has a type other than b, i and h");
        }
    }
    if (!read.base && read.increments.empty()) return refuse(500, "it names no file");
    return read;
}

std::string to_text(const append_manifest& of) {
    std::string text;
    const auto add = [&text](const part& one, char type) {
        text += fmt::format("file {} seq {} type {}\n", in_quotes(one.name), one.sequence, type);
    };
    if (of.base) add(*of.base, 'b');
    for (const part& each : of.history) add(each, 'h');
    for (const part& each : of.increments) add(each, 'i');
    return text;
}

}  // namespace eddy::runtime::cache
