// Reading of stack files: includes, tables of types, and the name of the stack.
#include "cli/stack/stack_file.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/glob.hpp>

#include "base/files/regular_file.hpp"
#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"
#include "cli/local_path.hpp"
#include "cli/request.hpp"
#include "cli/stack/declaration.hpp"
#include "cli/stack/lua_declarations.hpp"
#include "cli/stack/toml_file.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace eddy::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view default_file = "eddy.toml";

/// Device and number: a file, by whatever name.
using identity = std::pair<dev_t, ino_t>;

std::optional<identity> identity_of(const std::string& path) {
    struct stat about{};
    if (::stat(path.c_str(), &about) != 0) return std::nullopt;
    return identity(about.st_dev, about.st_ino);
}

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == 0 ? "/" : path.substr(0, slash);
}

/// Entries of folders that the pattern being expanded may read on; glob(3) passes no context.
thread_local std::size_t entries_left = 0;

dirent* next_entry(void* folder) {
    if (entries_left == 0) return nullptr;
    --entries_left;
    return ::readdir(static_cast<DIR*>(folder));
}

/// Sorted names of what a pattern matches; itself without wildcards. None if that takes too much.
std::optional<std::vector<std::string>> matches(const std::string& pattern) {
    if (!glob_has_wildcard(pattern)) return std::vector{pattern};
    glob_t found{};
    found.gl_opendir = [](const char* path) -> void* { return ::opendir(path); };
    found.gl_readdir = next_entry;
    found.gl_closedir = [](void* folder) { ::closedir(static_cast<DIR*>(folder)); };
    found.gl_stat = [](const char* path, struct stat* into) { return ::stat(path, into); };
    found.gl_lstat = [](const char* path, struct stat* into) { return ::lstat(path, into); };
    entries_left = most_include_entries;
    std::optional<std::vector<std::string>> all(std::in_place);
    if (::glob(pattern.c_str(), GLOB_ALTDIRFUNC, nullptr, &found) == 0)
        for (std::size_t i = 0; i < found.gl_pathc; ++i) all->emplace_back(found.gl_pathv[i]);
    ::globfree(&found);
    if (entries_left == 0) all.reset();
    return all;
}

bool is_open_to_others(const std::string& path, mode_t how) {
    struct stat about{};
    return ::stat(path.c_str(), &about) == 0 && (about.st_mode & how) != 0;
}

class stack_reader {
public:
    stack_reader(context& with, const environment& variables)
        : with_(with), variables_(variables) {}

    stack_file read(const std::string& path);

private:
    void read_file(const std::string& path, const place& from);
    void read_toml(std::string_view text, const std::string& path);
    void read_lua(std::string text, const std::string& path);
    void take_type(const toml_member& type, const declaration_source& from);
    void take_includes(const toml_member& list, const declaration_source& from);
    void take_name(const toml_member& name, const declaration_source& from);
    void check_duplicates();
    void choose_name(const std::string& path);
    void blame(const place& at, std::string message) {
        made_.faults.push_back({at, std::move(message)});
    }

    context& with_;
    const environment& variables_;
    stack_file made_;
    std::vector<identity> chain_;  // of files that include the present one, and it
    std::set<identity> read_;
    std::size_t bytes_ = 0;
    bool is_unread_ = false;  // the file that the others are included by
};

/// The error of a file that cannot be read, in words.
std::string reading_fault(std::error_code error) {
    if (error == errc::limit_reached)
        return fmt::format("it has more than {} MiB", stack_file_size >> 20);
    return fmt::format("it cannot be read: {}", error.message());
}

void stack_reader::read_file(const std::string& path, const place& from) {
    if (chain_.size() > deepest_include)
        return blame(from, fmt::format("includes go {} deep at most", deepest_include));
    if (read_.size() >= most_stack_files)
        return blame(from, fmt::format("a stack has at most {} files", most_stack_files));
    made_.files.push_back(path);
    const auto own = identity_of(path);
    if (own && std::ranges::find(chain_, *own) != chain_.end())
        return blame(from, fmt::format("{} includes itself", printable(path)));
    if (own && !read_.insert(*own).second)
        return blame(from, fmt::format("{} is included twice", printable(path)));
    auto text = read_regular(path, stack_file_size);
    if (!text) {
        is_unread_ = from.file.empty();
        if (is_unread_ && text.error() == errno_code(ENOENT) &&
            fs::path(path).filename() == default_file)
            return blame({path},
                         "there is none; name the file (-f FILE), or write one: "
                         "`eddy export > eddy.toml` prints the runtimes that there are");
        const place at = from.file.empty() ? place{path} : from;
        return blame(at, from.file.empty()
                             ? reading_fault(text.error())
                             : fmt::format("{}: {}", printable(path), reading_fault(text.error())));
    }
    if (is_open_to_others(path, S_IWOTH))
        made_.warnings.push_back(
            {{path},
             "other users can write it, and so decide what runs here; to end that: chmod o-w"});
    bytes_ += text->size();
    if (bytes_ > stack_files_size)
        return blame(from.file.empty() ? place{path} : from,
                     fmt::format("the files of a stack have at most {} MiB together",
                                 stack_files_size >> 20));
    if (own) chain_.push_back(*own);
    if (path.ends_with(".lua"))
        read_lua(std::move(*text), path);
    else
        read_toml(*text, path);
    if (!own) return;
    EDDY_ASSERT(!chain_.empty() && chain_.back() == *own);
    chain_.pop_back();
}

void stack_reader::read_toml(std::string_view text, const std::string& path) {
    auto members = parse_toml(text, path);
    if (!members) {
        made_.faults.push_back(std::move(members.error()));
        if (path.ends_with(".yml") || path.ends_with(".yaml"))
            blame({path},
                  "files are TOML, not YAML: [TYPE.NAME] begins a runtime, and lines such as "
                  "port = 6379 are its options; docs/stacks.md is a tour");
        return;
    }
    const declaration_source from{with_, variables_, folder_of(path), true, &made_.warnings};
    for (const toml_member& each : *members) {
        if (each.key == "stack" && !each.is_table)
            take_name(each, from);
        else if (each.key == "include" && !each.is_table)
            take_includes(each, from);
        else
            take_type(each, from);
    }
}

void stack_reader::take_name(const toml_member& name, const declaration_source& from) {
    if (chain_.size() > 1)
        return blame(name.at, "the name of the stack is for the file that includes the others");
    if (!name.value.is_string()) return blame(name.at, "stack must be a text: the stack's name");
    made_.name = expanded_text(from, name.value.get<std::string>(), name.at, made_.faults);
}

void stack_reader::take_includes(const toml_member& list, const declaration_source& from) {
    nlohmann::json all = list.value;
    if (all.is_string()) all = nlohmann::json::array({all});
    if (!all.is_array()) return blame(list.at, "include must be a list of files");
    for (const nlohmann::json& each : all) {
        if (!each.is_string()) return blame(list.at, "include must be a list of files");
        const std::size_t before = made_.faults.size();
        const std::string name =
            expanded_text(from, each.get<std::string>(), list.at, made_.faults);
        if (made_.faults.size() != before) continue;
        const local_path whole = absolute_path(name, from.folder);
        if (!whole) {
            blame(list.at, whole.error());
            continue;
        }
        if (glob_has_wildcard(*whole)) made_.patterns.push_back(*whole);
        const auto paths = matches(*whole);
        if (!paths) {
            blame(list.at,
                  fmt::format("{}: its folders have more than {} entries; write a narrower pattern",
                              printable(name), most_include_entries));
            continue;
        }
        for (const std::string& path : *paths) read_file(path, list.at);
    }
}

/// [TYPE.NAME] and all of its members.
void stack_reader::take_type(const toml_member& type, const declaration_source& from) {
    if (std::string fault = type_fault(with_, type.key, {"stack", "include"}); !fault.empty())
        return blame(type.at, type.is_table
                                  ? std::move(fault)
                                  : fmt::format("{} stands in no runtime: write [TYPE.NAME] above "
                                                "it, such as [cache.db]",
                                                printable(type.key)));
    if (!type.is_table)
        return blame(type.at, fmt::format("{0} needs a name: [{0}.NAME], and below it the options",
                                          type.key));
    for (const toml_member& each : type.members) {
        if (!each.is_table) {
            blame(each.at, fmt::format("{0} stands in no runtime: write [{1}.NAME] above it",
                                       printable(each.key), type.key));
            continue;
        }
        declared_runtime made;
        made.type = type.key;
        made.name = each.key;
        made.at = each.at;
        for (const toml_member& member : each.members) {
            if (!member.fault.empty() || member.is_table)
                blame(member.at,
                      fmt::format("{}: {} cannot be used: {}", each.key, printable(member.key),
                                  member.is_table ? "it is a table" : member.fault));
            else
                declare(from, made, member.key, member.value, member.at, made_.faults);
        }
        complete(from, made);
        made_.runtimes.push_back(std::move(made));
    }
}

void stack_reader::read_lua(std::string text, const std::string& path) {
    auto declared = declarations_of_script(with_, std::move(text), path);
    if (!declared) return blame({path}, std::move(declared.error()));
    // The file has variables of its own.
    const declaration_source from{with_, variables_, folder_of(path), false, &made_.warnings};
    for (const nlohmann::json& each : *declared) {
        declared_runtime made;
        made.type = text_of(each, "type");
        made.name = text_of(each, "name");
        made.at = {path};
        if (std::string fault = type_fault(with_, made.type, {}); !fault.empty()) {
            blame(made.at, fmt::format("{}: {}", printable(made.name), fault));
            continue;
        }
        const nlohmann::json inner = each.value("options", nlohmann::json::object());
        for (const auto& [name, value] : each.items())
            if (name != "type" && name != "name" && name != "options")
                declare(from, made, name, value, made.at, made_.faults);
        for (const auto& [name, value] : inner.items())
            declare(from, made, name, value, made.at, made_.faults);
        complete(from, made);
        made_.runtimes.push_back(std::move(made));
    }
}

void stack_reader::check_duplicates() {
    std::map<std::string_view, const declared_runtime*> names;
    for (const declared_runtime& each : made_.runtimes) {
        const auto [other, is_new] = names.emplace(each.name, &each);
        if (!is_new)
            blame(each.at, fmt::format("there is a runtime \"{}\" in {} already",
                                       printable(each.name), other->second->at.to_string()));
    }
}

/// Name of the stack: the file's `stack`, else its folder for an eddy.toml, else its own name.
void stack_reader::choose_name(const std::string& path) {
    if (!made_.name.empty() || is_unread_) return;
    const fs::path file(path);
    made_.name = file.filename() == default_file ? file.parent_path().filename().string()
                                                 : file.stem().string();
    const bool is_good = !made_.name.empty() && !made_.name.starts_with('.') &&
                         std::ranges::all_of(made_.name, [](char c) {
                             return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-';
                         });
    if (!is_good)
        blame({path}, fmt::format("its name, or its folder's, is no name of a stack; write one at "
                                  "the top: stack = \"NAME\""));
}

stack_file stack_reader::read(const std::string& given) {
    if (given == "-") {
        auto text = read_input(stack_file_size, "the largest stack file");
        const local_path here = absolute_path(".");
        if (!text || !here) {
            blame({"-"}, text ? here.error() : text.error());
            return std::move(made_);
        }
        read_toml(*text, *here + "/-");
        choose_name(*here + "/" + std::string(default_file));
    } else {
        const local_path whole = absolute_path(given);
        if (!whole) {
            blame({given}, whole.error());
            return std::move(made_);
        }
        std::string path = *whole;
        std::error_code ignored;
        if (fs::is_directory(path, ignored)) path += "/" + std::string(default_file);
        read_file(path, {});
        choose_name(path);
    }
    check_duplicates();
    return std::move(made_);
}

}  // namespace

std::string place::to_string() const {
    // Files of the working folder are shown as they were named.
    std::string shown = file;
    if (const local_path here = absolute_path("."); here && shown.starts_with(*here + "/"))
        shown = shown.substr(here->size() + 1);
    shown = printable(shown);
    return line == 0 ? shown : fmt::format("{}:{}:{}", shown, line, column);
}

const declared_runtime* stack_file::find(std::string_view runtime) const noexcept {
    const auto found = std::ranges::find(runtimes, runtime, &declared_runtime::name);
    return found == runtimes.end() ? nullptr : &*found;
}

nlohmann::json stack_file::request() const {
    nlohmann::json all = nlohmann::json::array();
    for (const declared_runtime& each : runtimes)
        all.push_back({{"name", each.name},
                       {"type", each.type},
                       {"owner", each.owner},
                       {"on_parent_stop", each.on_parent_stop},
                       {"group", each.group},
                       {"start", each.is_to_run},
                       {"options", each.options}});
    return {{"runtimes", std::move(all)}};
}

stack_file read_stack(context& with, const std::string& path, const environment& of) {
    return stack_reader(with, of).read(path);
}

}  // namespace eddy::cli
