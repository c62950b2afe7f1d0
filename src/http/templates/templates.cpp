// Templates: files of the folder, their data, and responses.
#include <eddy/http/templates.hpp>

#include <eddy/base/log.hpp>

#include "http/templates/compiled.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

namespace eddy::http {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view file_suffix = ".mustache";

}  // namespace

template_data::template_data() noexcept : value_(false) {}
template_data::template_data(boolean truth) noexcept : value_(truth.is_true) {}
template_data::template_data(std::string text) noexcept : value_(std::move(text)) {}
template_data::template_data(std::string_view text) : value_(std::string(text)) {}
template_data::template_data(const char* text) : value_(std::string(text)) {}
template_data::template_data(list values) noexcept : value_(std::move(values)) {}
template_data::template_data(object members) noexcept : value_(std::move(members)) {}
template_data::template_data(std::initializer_list<template_member> members)
    : value_(object(members)) {}

template_data::template_data(template_data&& other) noexcept = default;
template_data& template_data::operator=(template_data&& other) noexcept = default;
template_data::template_data(const template_data& other) = default;
template_data& template_data::operator=(const template_data& other) = default;
template_data::~template_data() = default;

const template_data* template_data::member(std::string_view name) const noexcept {
    const auto* const members = std::get_if<object>(&value_);
    if (members == nullptr) return nullptr;
    const auto found = std::ranges::find(*members, name, &template_member::name);
    return found == members->end() ? nullptr : &found->value;
}

bool template_data::is_true() const noexcept {
    if (const bool* const truth = std::get_if<bool>(&value_)) return *truth;
    if (const std::string* const its = text()) return !its->empty();
    if (const list* const its = values()) return !its->empty();
    return true;
}

std::string template_data::text_of(double number) {
    std::array<char, 32> digits;
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    return {digits.data(), written.ptr};
}

struct templates::state {
    struct file {
        fs::file_time_type time;
        std::uintmax_t size = 0;
        template_nodes compiled;
    };
    using files = std::map<std::string, file, std::less<>>;

    std::string folder;
    template_options options;
    files known;

    std::expected<void, std::string> load();
    std::expected<void, std::string> load_file(const fs::directory_entry& entry, files& into) const;
    std::expected<void, std::string> check_partials(const files& of) const;
    std::string path_of(std::string_view name) const {
        return folder + "/" + std::string(name) + std::string(file_suffix);
    }
};

/// Compiles the files that have changed. After an error everything is as before.
std::expected<void, std::string> templates::state::load() {
    std::error_code error;
    files found;
    auto at = fs::recursive_directory_iterator(folder, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
        if (!at->path().native().ends_with(file_suffix) || at->is_symlink(error) ||
            !at->is_regular_file(error))
            continue;
        if (found.size() == options.file_count)
            return std::unexpected(folder + ": there are more than " +
                                   std::to_string(options.file_count) + " templates");
        if (auto loaded = load_file(*at, found); !loaded) return loaded;
    }
    if (error) return std::unexpected(folder + ": " + error.message());
    if (auto good = check_partials(found); !good) return good;
    known = std::move(found);
    return {};
}

std::expected<void, std::string> templates::state::load_file(const fs::directory_entry& entry,
                                                             files& into) const {
    const std::string path = entry.path().native();
    std::error_code error;
    file made;
    made.time = entry.last_write_time(error);
    if (!error) made.size = entry.file_size(error);
    if (error) return std::unexpected(path + ": " + error.message());
    std::string name = entry.path().lexically_relative(folder).generic_string();
    name.resize(name.size() - file_suffix.size());
    const auto before = known.find(name);
    if (before != known.end() && before->second.time == made.time &&
        before->second.size == made.size) {
        made.compiled = before->second.compiled;
        into.emplace(std::move(name), std::move(made));
        return {};
    }
    std::string text(options.file_bytes + 1, '\0');
    std::ifstream stream(path, std::ios::binary);
    if (!stream) return std::unexpected(path + ": the file cannot be read");
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    if (text.size() > options.file_bytes)
        return std::unexpected(path + ": the file has more than " +
                               std::to_string(options.file_bytes) + " bytes");
    auto compiled = compile_template(text, options.section_depth);
    if (!compiled) return std::unexpected(path + ":" + compiled.error());
    made.compiled = std::move(*compiled);
    into.emplace(std::move(name), std::move(made));
    return {};
}

std::expected<void, std::string> templates::state::check_partials(const files& of) const {
    for (const auto& [name, each] : of) {
        std::string error;
        for_each_partial(each.compiled, [&](const template_node& partial) {
            if (error.empty() && !of.contains(partial.text))
                error = path_of(name) + ":" + std::to_string(partial.line) +
                        ": there is no partial \"" + partial.text + "\", which would be " +
                        path_of(partial.text);
        });
        if (!error.empty()) return std::unexpected(error);
    }
    return {};
}

std::expected<templates, std::string> templates::open(const std::string& folder,
                                                      const template_options& options) {
    auto made = std::make_unique<state>();
    made->folder = folder;
    made->options = options;
    if (auto loaded = made->load(); !loaded) return std::unexpected(loaded.error());
    // An empty folder may be filled later, and is read again by `reload` alone.
    if (made->known.empty() && !options.reload)
        return std::unexpected(folder + ": no file's name ends with " + std::string(file_suffix));
    return templates(std::move(made));
}

templates::templates(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
templates::templates(templates&& other) noexcept = default;
templates& templates::operator=(templates&& other) noexcept = default;
templates::~templates() = default;

std::expected<std::string, std::string> templates::text(std::string_view name,
                                                        const template_data& data) {
    if (state_->options.reload) {
        if (auto loaded = state_->load(); !loaded) return std::unexpected(loaded.error());
    }
    const template_finder find = [&](std::string_view wanted) -> const template_nodes* {
        const auto found = state_->known.find(wanted);
        return found == state_->known.end() ? nullptr : &found->second.compiled;
    };
    const template_nodes* const page = find(name);
    if (page == nullptr) return std::unexpected("there is no template " + state_->path_of(name));
    auto rendered = render_template(*page, data, find, state_->options);
    if (!rendered) return std::unexpected(state_->path_of(name) + ": " + rendered.error());
    return rendered;
}

response templates::render(std::string_view name, const template_data& data, int status) {
    auto page = text(name, data);
    if (page) return html(std::move(*page), status);
    log_error("http", page.error());
    return http::text(state_->options.reload ? page.error() + "\n" : "the page could not be made\n",
                      500);
}

}  // namespace eddy::http
