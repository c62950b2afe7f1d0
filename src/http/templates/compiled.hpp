// Compiled template: a tree of texts and tags, and its rendering.
#pragma once

#include <eddy/http/templates.hpp>

#include <cstddef>
#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// A part of a template.
struct template_node {
    enum class kind : unsigned char { text, escaped, raw, section, inverted, partial, comment };

    kind what = kind::text;
    std::string text;                     ///< the text, or the tag's name
    std::vector<template_node> children;  ///< of a section
    std::size_t line = 0;                 ///< where it begins, from 1
};

/// Parts of a template in their order.
using template_nodes = std::vector<template_node>;

/// Compiles a template. The error is a sentence that begins with the line: "3: ...". Any thread.
std::expected<template_nodes, std::string> compile_template(const std::string& text,
                                                            std::size_t section_depth);

/// Finds a template by its name; null where there is none.
using template_finder = std::function<const template_nodes*(std::string_view name)>;

/// Calls `visit` for each partial in a template, at any depth of its sections.
void for_each_partial(const template_nodes& of,
                      const std::function<void(const template_node&)>& visit);

/// Renders a template. The error is a sentence. Any thread.
std::expected<std::string, std::string> render_template(const template_nodes& page,
                                                        const template_data& data,
                                                        const template_finder& find,
                                                        const template_options& limits);

}  // namespace eddy::http
