// Templates: pages of HTML from a folder of mustache files (mustache(5)) and the data of a request.
//
//     auto pages = http::templates::open("pages");  // pages/note.mustache: <h1>{{title}}</h1>
//     ...
//     co_return pages->render("note", {{"title", "Milk & bread"}, {"done", false}});
//
// Understood are {{name}}, escaped for HTML; {{{name}}} and {{&name}}, not escaped; {{#name}} and
// {{^name}} up to {{/name}}; {{a.b}}, {{.}}, {{! comments}} and {{> partial}}. Other delimiters
// ({{=) are refused.
#pragma once

#include <eddy/http/response.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace eddy::http {

struct template_member;

/// The data of a page: false or true, a text, a list, or an object of named values. Numbers are
/// texts. One thread, as any value.
class template_data {
public:
    /// A list; a section is rendered for each of its values.
    using list = std::vector<template_data>;
    /// An object; where a name is there twice, the first one counts.
    using object = std::vector<template_member>;

    /// false: no text, and sections of it are left out.
    template_data() noexcept;
    /// A boolean: true if sections of it are rendered.
    template_data(std::same_as<bool> auto truth) noexcept : template_data(boolean{truth}) {}
    /// A text, which should be UTF-8. Sections of an empty one are left out.
    template_data(std::string text) noexcept;
    /// The same, copied.
    template_data(std::string_view text);
    /// The same.
    template_data(const char* text);
    /// An integer, as its decimal digits.
    template_data(std::integral auto number)
        requires(!std::same_as<decltype(number), bool> && !std::same_as<decltype(number), char>)
        : template_data(std::to_string(number)) {}
    /// A number, with the fewest digits that read back as the same.
    template_data(std::floating_point auto number) : template_data(text_of(double{number})) {}
    /// A list.
    template_data(list values) noexcept;
    /// An object.
    template_data(object members) noexcept;
    /// The same: {{"name", "Ada"}, {"age", 36}}.
    template_data(std::initializer_list<template_member> members);

    /// `other` is false afterwards, or empty.
    template_data(template_data&& other) noexcept;
    /// The same.
    template_data& operator=(template_data&& other) noexcept;
    /// Copies all of it.
    template_data(const template_data& other);
    /// The same.
    template_data& operator=(const template_data& other);
    ~template_data();

    /// The text; null for another kind.
    const std::string* text() const noexcept { return std::get_if<std::string>(&value_); }
    /// The list; null for another kind.
    const list* values() const noexcept { return std::get_if<list>(&value_); }
    /// The value of an object's member; null where there is none.
    const template_data* member(std::string_view name) const noexcept;
    /// True if sections of it are rendered: not for false, an empty text or an empty list.
    bool is_true() const noexcept;

private:
    struct boolean {
        bool is_true;
    };
    explicit template_data(boolean truth) noexcept;
    static std::string text_of(double number);

    std::variant<bool, std::string, list, object> value_;
};

/// A named value of an object.
struct template_member {
    std::string name;     ///< without '.', which stands for members of members
    template_data value;  ///< of any kind
};

/// Options of templates, most of them limits.
struct template_options {
    /// Reads new files, and files whose time or size has changed, in each render(): for
    /// development, since it waits for the disk. Errors of a template then also appear in the
    /// response.
    bool reload = false;
    /// Bytes of a file.
    std::size_t file_bytes = 256 * 1024;
    /// Files below the folder.
    std::size_t file_count = 1000;
    /// Sections within each other in one file.
    std::size_t section_depth = 32;
    /// Partials within each other in a page, such as one that includes itself.
    std::size_t partial_depth = 32;
    /// Bytes of a page.
    std::size_t page_bytes = 16 * 1024 * 1024;
};

/// The templates `NAME.mustache` below a folder. The name of one in a folder below is
/// "folder/name". Each is compiled once. Names are looked up only among the files that were found,
/// so none leads out of the folder; symbolic links are not followed. One thread: each loop opens
/// its own.
class templates {
public:
    /// Reads and compiles all templates below `folder`; it waits for the disk. Fails with a
    /// sentence that names the file, and the line: for a folder or file that cannot be read, a
    /// folder without a template (unless `reload` reads it again), a file or a number of files
    /// beyond its limit, a tag or section without its end, sections too deep, and a partial that
    /// does not exist.
    static std::expected<templates, std::string> open(const std::string& folder,
                                                      const template_options& options = {});

    /// `other` may then only be assigned to or destroyed.
    templates(templates&& other) noexcept;
    /// The same.
    templates& operator=(templates&& other) noexcept;
    ~templates();

    /// A response of HTML: the template of this name with that data. Names that the data lacks
    /// yield nothing. What cannot be rendered is noted in the log and answered by 500.
    response render(std::string_view name, const template_data& data, int status = 200);

    /// The page alone. Fails with a sentence: for a name that is no template, partials too deep,
    /// and a page beyond the limit.
    std::expected<std::string, std::string> text(std::string_view name, const template_data& data);

private:
    struct state;
    explicit templates(std::unique_ptr<state> made) noexcept;
    std::unique_ptr<state> state_;
};

}  // namespace eddy::http
