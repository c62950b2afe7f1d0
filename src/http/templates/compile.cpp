// Compilation of templates: limits, the parser of kainjow's mustache, and its tree made compact.
#include "http/templates/compiled.hpp"

#include <kainjow/mustache.hpp>

#include <algorithm>
#include <charconv>
#include <exception>
#include <utility>

namespace eddy::http {
namespace {

namespace mustache = kainjow::mustache;
using component = mustache::component<std::string>;

std::unexpected<std::string> fail_at(std::size_t line, const std::string& what) {
    return std::unexpected(std::to_string(line) + ": " + what);
}

/// Positions of a text as lines, for positions that ascend.
class line_counter {
public:
    explicit line_counter(std::string_view text) noexcept : text_(text) {}
    std::size_t line_of(std::size_t position) noexcept {
        position = std::min(position, text_.size());
        if (position < at_) at_ = 0, line_ = 1;
        for (; at_ < position; ++at_) line_ += text_[at_] == '\n' ? 1U : 0U;
        return line_;
    }

private:
    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
};

/// Checks what the parser, which is recursive, takes for granted. Tags are found as it finds them.
std::expected<void, std::string> check(std::string_view text, std::size_t section_depth) {
    line_counter lines(text);
    std::size_t depth = 0;
    for (std::size_t at = text.find("{{"); at != std::string_view::npos; at = text.find("{{", at)) {
        const bool is_raw = text.substr(at, 3) == "{{{";
        const std::string_view end = is_raw ? "}}}" : "}}";
        const std::size_t begin = at + end.size();
        const std::size_t close = text.find(end, begin);
        if (close == std::string_view::npos)
            return fail_at(lines.line_of(at), "a tag has no end: write " + std::string(end));
        std::string_view tag = text.substr(begin, close - begin);
        tag.remove_prefix(std::min(tag.find_first_not_of(" \t\n\v\f\r"), tag.size()));
        if (!is_raw && tag.starts_with('='))
            return fail_at(lines.line_of(at), "other delimiters are not supported: use {{ and }}");
        if (!is_raw && (tag.starts_with('#') || tag.starts_with('^')) && ++depth > section_depth)
            return fail_at(lines.line_of(at), "more than " + std::to_string(section_depth) +
                                                  " sections are within each other");
        if (!is_raw && tag.starts_with('/') && depth > 0) --depth;
        at = close + end.size();
    }
    return {};
}

/// The position at the end of a message of the parser: "Unclosed section "x" at 17".
std::size_t position_in(std::string_view message) noexcept {
    std::size_t position = 0;
    const std::size_t at = message.rfind(' ') + 1;
    std::from_chars(message.data() + at, message.data() + message.size(), position);
    return position;
}

template_node::kind kind_of(mustache::tag_type type) noexcept {
    using kind = template_node::kind;
    switch (type) {
        case mustache::tag_type::text: return kind::text;
        case mustache::tag_type::variable: return kind::escaped;
        case mustache::tag_type::unescaped_variable: return kind::raw;
        case mustache::tag_type::section_begin: return kind::section;
        case mustache::tag_type::section_begin_inverted: return kind::inverted;
        case mustache::tag_type::partial: return kind::partial;
        default: return kind::comment;
    }
}

/// The parser's tree has a component for each blank; here texts are as long as they can be.
template_nodes convert(const std::vector<component>& from, line_counter& lines) {
    template_nodes made;
    for (const component& each : from) {
        const auto what = kind_of(each.tag.type);
        if (what == template_node::kind::text) {
            if (made.empty() || made.back().what != what) made.emplace_back();
            made.back().text += each.text;
            continue;
        }
        template_node node;
        node.what = what;
        node.text = each.tag.name;
        node.line = lines.line_of(each.position);
        node.children = convert(each.children, lines);
        made.push_back(std::move(node));
    }
    return made;
}

}  // namespace

std::expected<template_nodes, std::string> compile_template(const std::string& text,
                                                            std::size_t section_depth) {
    if (auto good = check(text, section_depth); !good) return std::unexpected(good.error());
    line_counter lines(text);
    component root;
    std::string error;
    try {
        mustache::context<std::string> none;
        mustache::context_internal<std::string> context(none);
        const mustache::parser<std::string> parsed(text, context, root, error);
    } catch (const std::exception& thrown) {
        return fail_at(1, std::string("the template cannot be read: ") + thrown.what());
    }
    if (!error.empty())
        return fail_at(lines.line_of(position_in(error)), error.substr(0, error.rfind(" at ")));
    return convert(root.children, lines);
}

void for_each_partial(const template_nodes& of,
                      const std::function<void(const template_node&)>& visit) {
    for (const template_node& each : of) {
        if (each.what == template_node::kind::partial) visit(each);
        for_each_partial(each.children, visit);
    }
}

}  // namespace eddy::http
