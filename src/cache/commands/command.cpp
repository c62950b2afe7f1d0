// COMMAND: the list of commands, by which clients find keys and print help.
#include <eddy/base/assert.hpp>
#include <eddy/base/glob.hpp>

#include "base/text.hpp"
#include "cache/catalog/acl_forms.hpp"
#include "cache/catalog/command_docs.hpp"
#include "cache/catalog/command_keys.hpp"
#include "cache/catalog/command_names.hpp"
#include "cache/catalog/command_syntax.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache::commands {
namespace {

void reply_names(call& c, std::uint32_t bits, std::span<const std::string_view> names) {
    c.reply.set(static_cast<std::size_t>(__builtin_popcount(bits)));
    for (std::size_t i = 0; i < names.size(); ++i) {
        if ((bits >> i & 1) != 0) c.reply.simple(names[i]);
    }
}

// What the table's own flags say, where there are no facts.
std::uint32_t flags_of(const command_spec& spec) {
    constexpr std::pair<std::uint16_t, std::string_view> own[] = {
        {command_flag::write, "write"},       {command_flag::readonly, "readonly"},
        {command_flag::denyoom, "denyoom"},   {command_flag::admin, "admin"},
        {command_flag::noscript, "noscript"}, {command_flag::loading, "loading"},
        {command_flag::stale, "stale"},       {command_flag::fast, "fast"},
        {command_flag::noauth, "no_auth"},
    };
    const auto names = command_flag_names();
    std::uint32_t bits = 0;
    for (const auto& [flag, name] : own) {
        if ((spec.flags & flag) == 0) continue;
        bits |= 1U << (std::ranges::find(names, name) - names.begin());
    }
    return bits;
}

void reply_word_set(call& c, std::string_view words, char between) {
    std::size_t count = 0;
    for_each_word(words, between, [&count](std::string_view) { ++count; });
    c.reply.set(count);
    for_each_word(words, between, [&c](std::string_view word) { c.reply.simple(word); });
}

void reply_number(call& c, std::string_view name, int value) {
    c.reply.bulk(name);
    c.reply.integer(value);
}

void reply_key_spec(call& c, const key_spec& spec) {
    c.reply.map(3);
    c.reply.bulk("flags");
    reply_word_set(c, spec.flags, ' ');
    c.reply.bulk("begin_search");
    c.reply.map(2);
    c.reply.bulk("type");
    c.reply.bulk(spec.begin == 'i' ? "index" : spec.begin == 'k' ? "keyword" : "unknown");
    c.reply.bulk("spec");
    c.reply.map(spec.begin == 'i' ? 1 : spec.begin == 'k' ? 2 : 0);
    if (spec.begin == 'k') {
        c.reply.bulk("keyword");
        c.reply.bulk(spec.keyword);
        reply_number(c, "startfrom", spec.from);
    } else if (spec.begin == 'i') {
        reply_number(c, "index", spec.from);
    }
    c.reply.bulk("find_keys");
    c.reply.map(2);
    c.reply.bulk("type");
    c.reply.bulk(spec.find == 'r' ? "range" : spec.find == 'n' ? "keynum" : "unknown");
    c.reply.bulk("spec");
    c.reply.map(spec.find == 'u' ? 0 : 3);
    if (spec.find == 'u') return;
    const bool range = spec.find == 'r';
    reply_number(c, range ? "lastkey" : "keynumidx", spec.numbers[0]);
    reply_number(c, range ? "keystep" : "firstkey", spec.numbers[1]);
    reply_number(c, range ? "limit" : "keystep", spec.numbers[2]);
}

// What is told of a command and of a form alike.
struct described {
    std::string_view name;
    int arity;
    std::uint32_t flags;
    std::array<int, 3> keys;  // the first, the last, the step
    std::uint32_t categories;
    std::string_view tips;
    std::string_view key_specs;
};

void reply_described(call& c, const described& what) {
    c.reply.array(10);
    c.reply.bulk(what.name);
    c.reply.integer(what.arity);
    reply_names(c, what.flags, command_flag_names());
    for (const int each : what.keys) c.reply.integer(each);
    reply_names(c, what.categories, command_category_names());
    std::size_t tip_count = 0;
    for_each_word(what.tips, ',', [&tip_count](std::string_view) { ++tip_count; });
    c.reply.set(tip_count);
    for_each_word(what.tips, ',', [&c](std::string_view tip) { c.reply.bulk(tip); });
    const auto keys = parse_key_specs(what.key_specs);
    c.reply.set(keys.size());
    for (const key_spec& each : keys) reply_key_spec(c, each);
}

void reply_form(call& c, const acl::command_form& form) {
    const command_facts* const facts = find_facts(form.name);
    const std::string_view key_specs = facts != nullptr ? facts->key_specs : std::string_view{};
    // A form that has a key has one, behind both words.
    const auto keys = key_specs.empty() ? std::array{0, 0, 0} : std::array{2, 2, 1};
    reply_described(
        c, {form.name, form.arity, form.flags, keys, form.categories, form.tips, key_specs});
    c.reply.array(0);
}

void reply_spec(call& c, const command_spec& spec) {
    const command_facts* const facts = find_facts(spec.name);
    described what{spec.name, spec.arity, flags_of(spec), {}, 0, {}, {}};
    what.keys = {spec.first_key, spec.last_key, spec.key_step};
    if (facts != nullptr) {
        what.flags = facts->flags;
        what.categories = facts->categories;
        what.tips = facts->tips;
        what.key_specs = facts->key_specs;
    }
    reply_described(c, what);
    const auto forms = acl::forms_of(spec.name);
    if (forms.empty()) return c.reply.array(0);
    c.reply.array(forms.size());
    for (const acl::command_form& each : forms) reply_form(c, each);
}

struct named {
    const command_spec* command = nullptr;    // null: nothing is called so
    const acl::command_form* form = nullptr;  // null: the command itself is
    bool operator==(const named&) const noexcept = default;
};

// "config" or "config|get", in any case.
named find_any(const call& c, std::string_view name) {
    const std::size_t bar = name.find('|');
    const command_spec* const spec =
        find_named(c.state.renamed.get(), fold_command_name(name.substr(0, bar)));
    if (spec == nullptr || bar == std::string_view::npos) return {spec, nullptr};
    const std::string wanted = std::string(spec->name) + lower(name.substr(bar));
    for (const acl::command_form& each : acl::forms_of(spec->name)) {
        if (each.name == wanted) return {spec, &each};
    }
    return {};
}

// Renamed ones have their old names in all replies, as in Redis; those without a name are left out.
bool is_callable(const call& c, const command_spec& spec) noexcept {
    return c.state.renamed == nullptr || c.state.renamed->is_callable(spec);
}

std::vector<const command_spec*> callable_commands(const call& c) {
    std::vector<const command_spec*> found;
    for (const command_spec& each : all_commands()) {
        if (is_callable(c, each)) found.push_back(&each);
    }
    return found;
}

void reply_all(call& c) {
    const auto all = callable_commands(c);
    c.reply.array(all.size());
    for (const command_spec* const each : all) reply_spec(c, *each);
}

void command_info(call& c) {
    if (c.count == 2) return reply_all(c);
    c.reply.array(c.count - 2);
    for (std::size_t i = 2; i < c.count && !c.reply_is_too_large(); ++i) {
        const auto [command, form] = find_any(c, c.arg(i));
        if (command == nullptr) {
            c.reply.null();
        } else if (form != nullptr) {
            reply_form(c, *form);
        } else {
            reply_spec(c, *command);
        }
    }
}

// Nothing if there is no text.
void reply_text(call& c, std::string_view name, std::string_view text) {
    if (text.empty()) return;
    c.reply.bulk(name);
    c.reply.bulk(text);
}

void reply_arguments(call& c, std::span<const command_argument> arguments) {
    c.reply.bulk("arguments");
    c.reply.array(arguments.size());
    for (const command_argument& each : arguments) {
        const bool is_group = !each.arguments.empty();
        const bool has_flags = each.optional || each.multiple;
        // MIGRATE's word for no key is an empty one.
        const bool has_token = !each.token.empty() || each.type == "pure-token";
        c.reply.map(3U + (each.key_group >= 0) + has_token + !each.since.empty() +
                    !each.deprecated_since.empty() + has_flags);
        reply_text(c, "name", each.name);
        reply_text(c, "type", each.type);
        if (!is_group)
            reply_text(c, "display_text", each.display.empty() ? each.name : each.display);
        if (each.key_group >= 0) reply_number(c, "key_spec_index", each.key_group);
        if (has_token) {
            c.reply.bulk("token");
            c.reply.bulk(each.token);
        }
        reply_text(c, "since", each.since);
        reply_text(c, "deprecated_since", each.deprecated_since);
        if (has_flags) {
            c.reply.bulk("flags");
            c.reply.set(std::size_t{each.optional} + each.multiple + each.repeats_token);
            if (each.optional) c.reply.simple("optional");
            if (each.multiple) c.reply.simple("multiple");
            if (each.repeats_token) c.reply.simple("multiple_token");
        }
        if (is_group) reply_arguments(c, each.arguments);
    }
}

// Of a command with its forms, or of one form.
void reply_docs(call& c, std::string_view name, std::span<const acl::command_form> forms) {
    const command_facts* const facts = find_facts(name.substr(0, name.find('|')));
    const auto syntax = find_command_syntax(name);
    EDDY_ASSERT(facts != nullptr && syntax);
    const auto arguments = parse_arguments(syntax->arguments);
    EDDY_ASSERT(arguments);
    const bool is_form = name.contains('|');
    const bool deprecated = !syntax->deprecated_since.empty();
    const bool has_flags = deprecated || syntax->internal;
    c.reply.bulk(name);
    c.reply.map(3U + has_flags + deprecated + !arguments->empty() + !forms.empty());
    reply_text(c, "summary", is_form ? syntax->summary : facts->summary);
    reply_text(c, "since", is_form ? syntax->since : facts->since);
    reply_text(c, "group", facts->group);
    if (has_flags) {
        c.reply.bulk("doc_flags");
        c.reply.set(std::size_t{deprecated} + syntax->internal);
        if (deprecated) c.reply.simple("deprecated");
        if (syntax->internal) c.reply.simple("syscmd");
    }
    reply_text(c, "deprecated_since", syntax->deprecated_since);
    if (!arguments->empty()) reply_arguments(c, *arguments);
    if (forms.empty()) return;
    c.reply.bulk("subcommands");
    c.reply.map(forms.size());
    for (const acl::command_form& each : forms) reply_docs(c, each.name, {});
}

// The same name twice comes once, as in Redis.
void command_docs(call& c) {
    std::vector<named> wanted;
    if (c.count == 2) {
        for (const command_spec* const each : callable_commands(c))
            wanted.push_back({each, nullptr});
    }
    for (std::size_t i = 2; i < c.count; ++i) {
        const named found = find_any(c, c.arg(i));
        if (found.command != nullptr && std::ranges::find(wanted, found) == wanted.end()) {
            wanted.push_back(found);
        }
    }
    c.reply.map(wanted.size());
    for (const named& each : wanted) {
        if (c.reply_is_too_large()) return;
        if (each.form != nullptr) {
            reply_docs(c, each.form->name, {});
        } else {
            reply_docs(c, each.command->name, acl::forms_of(each.command->name));
        }
    }
}

// Of a command that has forms: whether the word behind its name is none of them.
bool lacks_form(const command_spec& spec, std::span<const std::string_view> args) {
    if (args.size() < 2) return false;
    const std::string wanted = std::string(spec.name) + '|' + lower(args[1]);
    const auto forms = acl::forms_of(spec.name);
    return !forms.empty() &&
           std::ranges::find(forms, wanted, &acl::command_form::name) == forms.end();
}

enum class with_flags : bool { no, yes };

void command_getkeys(call& c, with_flags flags) {
    if (c.count < 3) return c.wrong_arity(flags == with_flags::yes ? "getkeysandflags" : "getkeys");
    const command_spec* const spec = find_named(c.state.renamed.get(), fold_command_name(c.arg(2)));
    if (spec == nullptr) return c.error("ERR Invalid command specified");
    const std::span<const std::string_view> args(c.args + 2, c.count - 2);
    if (lacks_form(*spec, args)) return c.error("ERR Invalid command specified");
    if (!has_keys(*spec, args)) return c.error("ERR The command has no key arguments");
    const auto given = static_cast<std::int64_t>(c.count) - 2;
    if (spec->arity >= 0 ? given != spec->arity : given < -spec->arity) {
        return c.error("ERR Invalid number of arguments specified for command");
    }
    const auto keys = find_key_arguments(*spec, args);
    if (!keys || keys->empty()) {
        // EVAL may come without keys, or with a number of them that makes no sense; others may not.
        const command_facts* const facts = find_facts(spec->name);
        const auto names = command_flag_names();
        const auto optional = std::ranges::find(names, "no_mandatory_keys") - names.begin();
        if (facts == nullptr || (facts->flags >> optional & 1) == 0) {
            return c.error("ERR Invalid arguments specified for command");
        }
        return c.reply.array(0);
    }
    c.reply.array(keys->size());
    for (const key_argument& each : *keys) {
        if (c.reply_is_too_large()) return;
        const std::string_view key = c.arg(each.index + 2);
        if (flags == with_flags::no) {
            c.reply.bulk(key);
        } else {
            c.reply.array(2);
            c.reply.bulk(key);
            reply_word_set(c, each.flags, ' ');
        }
    }
}

void command_list(call& c) {
    enum class filter : std::uint8_t { none, nothing, category, pattern };
    filter by = filter::none;
    std::uint32_t category = 0;
    std::string pattern;
    if (c.count != 2) {
        if (c.count != 5 || !is_word(c.arg(2), "filterby")) return c.syntax_error();
        pattern = lower(c.arg(4));
        if (is_word(c.arg(3), "module")) {
            by = filter::nothing;
        } else if (is_word(c.arg(3), "aclcat")) {
            by = filter::category;
            const auto names = command_category_names();
            const auto found = std::ranges::find(names, "@" + pattern);
            if (found != names.end()) category = 1U << (found - names.begin());
        } else if (is_word(c.arg(3), "pattern")) {
            by = filter::pattern;
        } else {
            return c.syntax_error();
        }
    }
    std::vector<std::string_view> found;
    const auto add = [&](std::string_view name, std::uint32_t categories) {
        const bool wanted = by == filter::none ||
                            (by == filter::pattern && glob_match(pattern, name)) ||
                            (by == filter::category && (categories & category) != 0);
        if (wanted) found.push_back(name);
    };
    for (const command_spec* const each : callable_commands(c)) {
        const command_facts* const facts = find_facts(each->name);
        add(each->name, facts != nullptr ? facts->categories : 0);
        for (const acl::command_form& form : acl::forms_of(each->name))
            add(form.name, form.categories);
    }
    c.reply.array(found.size());
    for (const std::string_view name : found) c.reply.bulk(name);
}

}  // namespace

void command(call& c) {
    if (c.count == 1) return reply_all(c);
    const std::string_view what = c.arg(1);
    if (is_word(what, "count")) {
        if (c.count != 2) return c.wrong_arity("count");
        return c.reply.integer(static_cast<std::int64_t>(callable_commands(c).size()));
    }
    if (is_word(what, "docs")) return command_docs(c);
    if (is_word(what, "info")) return command_info(c);
    if (is_word(what, "getkeys")) return command_getkeys(c, with_flags::no);
    if (is_word(what, "getkeysandflags")) return command_getkeys(c, with_flags::yes);
    if (is_word(what, "list")) return command_list(c);
    if (is_word(what, "help") && c.count == 2) {
        return c.help(
            {"COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", "(no subcommand)",
             "    All commands.", "COUNT", "    Their number.", "DOCS [<command-name> ...]",
             "    What they are for, and their arguments.", "GETKEYS <full-command>",
             "    The keys among its arguments.", "GETKEYSANDFLAGS <full-command>",
             "    The same, and what is done with them.", "INFO [<command-name> ...]",
             "    Arity, flags and keys.", "LIST [FILTERBY (MODULE|ACLCAT|PATTERN) <what>]",
             "    Their names, and those of their forms.", "HELP", "    Print this help."});
    }
    c.unknown_subcommand();
}

}  // namespace eddy::cache::commands
