// Parser of ACL rules, and permission checks by selectors.
#include "cache/acl/acl.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/glob.hpp>

#include "base/text/text.hpp"
#include "cache/catalog/command_keys.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace eddy::cache::acl {
namespace {

using arguments = std::span<const std::string_view>;
using outcome = std::expected<void, std::string_view>;

constexpr std::string_view unknown_command = "Unknown command or category name in ACL";
constexpr std::string_view bad_syntax = "Syntax error";
constexpr std::string_view all_keys_already =
    "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have "
    "any effect. Try 'resetkeys' to start with an empty list of patterns";
constexpr std::string_view all_channels_already =
    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not "
    "have any effect. Try 'resetchannels' to start with an empty list of channels";
constexpr std::string_view bad_hash =
    "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
    "characters";
constexpr std::string_view no_such_password =
    "The password you are trying to remove from the user does not exist";
constexpr std::string_view form_of_form = "Allowing first-arg of a subcommand is not supported";

bool has_spaces(std::string_view text) noexcept {
    return std::ranges::any_of(text, [](unsigned char c) { return std::isspace(c) || c == 0; });
}

// A command is numbered by its place in the table, a form by its place in all_forms() behind them.
command_number place(const command_spec& spec) noexcept {
    return static_cast<command_number>(&spec - all_commands().data());
}
command_number place_of_form(const command_spec& form) noexcept {
    return static_cast<command_number>(all_commands().size()) +
           static_cast<command_number>(&form - all_forms().data());
}

/// The form's number, or the command's where it has no such form.
command_number number_of_form(const command_spec& spec, std::string_view word) noexcept {
    for (const command_spec& form : spec.forms()) {
        if (equal_in_any_case(word, form.name.substr(spec.name.size() + 1)))
            return place_of_form(form);
    }
    return place(spec);
}

/// Calls f(number, spec) for each command and each form.
template <class F>
void for_each_number(F&& f) {
    for (const command_spec& spec : all_commands()) {
        f(place(spec), spec);
        for (const command_spec& form : spec.forms()) f(place_of_form(form), form);
    }
}

// 0: there is no such category.
std::uint32_t category_bit(std::string_view name) {
    const auto names = command_category_names();
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (equal_in_any_case(names[i].substr(1), name)) return 1U << i;
    }
    return 0;
}

std::uint8_t access_of(std::string_view flags) noexcept {
    std::uint8_t access = 0;
    for_each_word(flags, ' ', [&access](std::string_view word) {
        if (word == "access") access |= key_pattern::read;
        if (word == "insert" || word == "delete" || word == "update") access |= key_pattern::write;
    });
    return access;
}

// Channel arguments that ACLs check: `count` of them from the first on.
struct channel_arguments {
    std::size_t count = 0;
    bool patterns = false;
};

channel_arguments channels_of(const command_spec& spec, std::size_t given) noexcept {
    if ((spec.flags & command_flag::names_channels) != 0) return {given - 1, false};
    if ((spec.flags & command_flag::names_patterns) != 0) return {given - 1, true};
    if ((spec.flags & command_flag::sends_message) != 0) return {1, false};
    return {};
}

}  // namespace

command_number number_of(const command_spec& spec, arguments args) noexcept {
    return args.size() < 2 ? place(spec) : number_of_form(spec, args[1]);
}

std::string full_name(const command_spec& spec, arguments args) {
    const command_number number = number_of(spec, args);
    if (number == place(spec)) return std::string(spec.name);
    return std::string(all_forms()[number - all_commands().size()].name);
}

std::optional<std::vector<std::string>> names_in_category(std::string_view category) {
    const std::uint32_t wanted = category_bit(category);
    if (wanted == 0) return std::nullopt;
    std::vector<std::string> names;
    for_each_number([&](command_number, const command_spec& spec) {
        if ((spec.categories & wanted) != 0) names.emplace_back(spec.name);
    });
    return names;
}

std::string key_pattern::written() const {
    return (access == (read | write) ? "~" : access == read ? "%R~" : "%W~") + text;
}

selector::selector(bool all_channels)
    : all_channels_(all_channels), bits_((all_commands().size() + all_forms().size() + 63) / 64) {}

void selector::set(command_number number, bool allowed) {
    const std::uint64_t bit = std::uint64_t{1} << number % 64;
    if (allowed) {
        bits_[number / 64] |= bit;
    } else {
        bits_[number / 64] &= ~bit;
        all_commands_ = false;
    }
    std::erase_if(first_arguments_, [number](const auto& each) { return each.first == number; });
}

void selector::set_with_forms(command_number number, bool allowed) {
    set(number, allowed);
    if (number >= all_commands().size()) return;
    for (const command_spec& form : all_commands()[number].forms())
        set(place_of_form(form), allowed);
}

void selector::set_all(bool allowed) {
    std::ranges::fill(bits_, allowed ? ~std::uint64_t{0} : 0);
    all_commands_ = later_commands_ = allowed;
    first_arguments_.clear();
    rules_.clear();
}

// The latest rule about a name replaces earlier ones, and a rule about a command those about its
// forms.
void selector::note_rule(std::string_view what, bool allowed) {
    const std::string name = lower(what);
    std::string kept;
    for_each_word(rules_, ' ', [&](std::string_view rule) {
        const std::string_view about = rule.substr(std::min<std::size_t>(1, rule.size()));
        const bool replaced =
            about.starts_with(name) && (about.size() == name.size() || about[name.size()] == '|');
        if (replaced) return;
        if (!kept.empty()) kept += ' ';
        kept += rule;
    });
    if (!kept.empty()) kept += ' ';
    kept += allowed ? '+' : '-';
    kept += name;
    rules_ = std::move(kept);
}

outcome selector::apply_category(std::string_view rule) {
    const std::uint32_t wanted = category_bit(rule.substr(2));
    if (wanted == 0) return std::unexpected(unknown_command);
    const bool allowed = rule[0] == '+';
    for_each_number([&](command_number number, const command_spec& spec) {
        if ((spec.categories & wanted) != 0) set_with_forms(number, allowed);
    });
    note_rule(rule.substr(1), allowed);
    return {};
}

outcome selector::apply_command(std::string_view rule) {
    const bool allowed = rule[0] == '+';
    const std::string_view name = rule.substr(1);
    const std::size_t bar = name.find('|');
    const command_spec* const spec = find_command(fold_command_name(name.substr(0, bar)));
    if (spec == nullptr) return std::unexpected(unknown_command);
    if (bar == std::string_view::npos) {
        set_with_forms(place(*spec), allowed);
        note_rule(name, allowed);
        return {};
    }
    const std::string_view form = name.substr(bar + 1);
    const bool has_forms = spec->form_count != 0;
    if (has_forms && form.find('|') != std::string_view::npos) {
        const command_number whole = number_of_form(*spec, form.substr(0, form.find('|')));
        const bool is_form = whole != place(*spec);
        return std::unexpected(is_form && allowed ? form_of_form : unknown_command);
    }
    if (!has_forms && form.find('|') != std::string_view::npos) {
        return std::unexpected(unknown_command);
    }
    if (form.empty() && allowed) return std::unexpected(bad_syntax);
    if (has_forms) {
        const command_number number = number_of_form(*spec, form);
        if (number == place(*spec)) return std::unexpected(unknown_command);
        set(number, allowed);
    } else if (!allowed) {
        return std::unexpected(unknown_command);
    } else {
        const command_number number = place(*spec);
        const std::pair<command_number, std::string> made{number, lower(form)};
        if (std::ranges::find(first_arguments_, made) == first_arguments_.end()) {
            first_arguments_.push_back(made);
        }
    }
    note_rule(name, allowed);
    return {};
}

outcome selector::add_key_pattern(std::string_view rule) {
    if (all_keys_) return std::unexpected(all_keys_already);
    std::uint8_t access = key_pattern::read | key_pattern::write;
    std::size_t begin = 1;
    if (rule[0] == '%') {
        access = 0;
        const std::size_t end = std::min(rule.find('~'), rule.size());
        for (; begin < end; ++begin) {
            const char letter = static_cast<char>(rule[begin] | 0x20);
            const std::uint8_t bit = letter == 'r'   ? key_pattern::read
                                     : letter == 'w' ? key_pattern::write
                                                     : std::uint8_t{0};
            if (bit == 0 || (access & bit) != 0) return std::unexpected(bad_syntax);
            access |= bit;
        }
        if (access == 0) return std::unexpected(bad_syntax);
        begin = std::min(end + 1, rule.size());
    }
    const std::string_view text = rule.substr(begin);
    if (has_spaces(text)) return std::unexpected(bad_syntax);
    const auto same = std::ranges::find(keys_, text, &key_pattern::text);
    if (same != keys_.end()) {
        same->access |= access;
    } else {
        keys_.push_back({access, std::string(text)});
    }
    return {};
}

outcome selector::add_channel(std::string_view pattern) {
    if (all_channels_) return std::unexpected(all_channels_already);
    if (has_spaces(pattern)) return std::unexpected(bad_syntax);
    if (std::ranges::find(channels_, pattern) == channels_.end()) channels_.emplace_back(pattern);
    return {};
}

outcome selector::apply(std::string_view rule) {
    const auto clear_keys = [this](bool all) {
        all_keys_ = all;
        keys_.clear();
    };
    const auto clear_channels = [this](bool all) {
        all_channels_ = all;
        channels_.clear();
    };
    if (is_word(rule, "allkeys") || rule == "~*") {
        clear_keys(true);
    } else if (is_word(rule, "resetkeys")) {
        clear_keys(false);
    } else if (is_word(rule, "allchannels") || rule == "&*") {
        clear_channels(true);
    } else if (is_word(rule, "resetchannels")) {
        clear_channels(false);
    } else if (is_word(rule, "allcommands") || is_word(rule, "+@all")) {
        set_all(true);
    } else if (is_word(rule, "nocommands") || is_word(rule, "-@all")) {
        set_all(false);
    } else if (rule.starts_with('~') || rule.starts_with('%')) {
        return add_key_pattern(rule);
    } else if (rule.starts_with('&')) {
        return add_channel(rule.substr(1));
    } else if (rule.starts_with("+@") || rule.starts_with("-@")) {
        return apply_category(rule);
    } else if (rule.starts_with('+') || rule.starts_with('-')) {
        return apply_command(rule);
    } else {
        return std::unexpected(bad_syntax);
    }
    return {};
}

verdict selector::check(const command_spec& spec, arguments args) const {
    if (!all_commands_ && (spec.flags & command_flag::noauth) == 0) {
        const command_number number = number_of(spec, args);
        const bool by_argument =
            args.size() > 1 && std::ranges::any_of(first_arguments_, [&](const auto& each) {
                return each.first == number && equal_in_any_case(each.second, args[1]);
            });
        if (!has(number) && !by_argument) return {refusal::command, 0};
    }
    if (!all_keys_ && (spec.flags & command_flag::pubsub) == 0 && has_keys(spec, args)) {
        if (const auto keys = find_key_arguments(spec, args)) {
            for (const key_argument& each : *keys) {
                const std::uint8_t access = access_of(each.flags);
                const bool allowed = std::ranges::any_of(keys_, [&](const key_pattern& pattern) {
                    return (pattern.access & access) == access &&
                           glob_match(pattern.text, args[each.index]);
                });
                if (!allowed) return {refusal::key, each.index};
            }
        }
    }
    if (!all_channels_) {
        const channel_arguments its = channels_of(spec, args.size());
        for (std::size_t i = 1; i <= its.count; ++i) {
            if (!allows_channel(args[i], its.patterns)) return {refusal::channel, i};
        }
    }
    return {};
}

bool selector::allows_channel(std::string_view channel, bool is_pattern) const {
    return all_channels_ || std::ranges::any_of(channels_, [&](const std::string& each) {
               return is_pattern ? each == channel : glob_match(each, channel);
           });
}

bool selector::reads_all_keys() const noexcept {
    return all_keys_ || std::ranges::any_of(keys_, [](const key_pattern& each) {
               return each.text == "*" && (each.access & key_pattern::read) != 0;
           });
}

bool selector::has_key(std::string_view key) const {
    return all_keys_ || std::ranges::any_of(keys_, [key](const key_pattern& each) {
               return glob_match(each.text, key);
           });
}

std::string selector::keys() const {
    if (all_keys_) return "~*";
    std::string text;
    for (const key_pattern& each : keys_) {
        if (!text.empty()) text += ' ';
        text += each.written();
    }
    return text;
}

std::string selector::channels() const {
    if (all_channels_) return "&*";
    std::string text;
    for (const std::string& each : channels_) {
        if (!text.empty()) text += ' ';
        text += '&' + each;
    }
    return text;
}

std::string selector::commands() const {
    std::string text = later_commands_ ? "+@all" : "-@all";
    if (!rules_.empty()) text += ' ' + rules_;
    return text;
}

std::string selector::written() const {
    std::string text = keys();
    if (!text.empty()) text += ' ';
    if (!all_channels_) text += "resetchannels ";
    text += channels();
    if (text.back() != ' ' && !text.empty()) text += ' ';
    return text + commands();
}

std::size_t selector::bytes() const noexcept {
    std::size_t all = sizeof *this + bits_.size() * sizeof bits_[0] + rules_.size();
    for (const key_pattern& each : keys_) all += sizeof each + each.text.size();
    for (const std::string& each : channels_) all += sizeof each + each.size();
    for (const auto& each : first_arguments_) all += sizeof each + each.second.size();
    return all;
}

std::expected<void, std::string> user::apply(arguments rules) {
    const auto refuse = [](std::string_view rule, std::string_view why) {
        return std::unexpected("Error in ACL SETUSER modifier '" +
                               std::string(rule.substr(0, rule.find('\0'))) +
                               "': " + std::string(why));
    };
    for (std::size_t i = 0; i < rules.size(); ++i) {
        std::string joined;
        std::string_view rule = rules[i];
        if (rule.starts_with('(') && !rule.ends_with(')')) {
            joined = rule;
            do {
                if (++i == rules.size()) {
                    return std::unexpected("Unmatched parenthesis in acl selector starting at '" +
                                           std::string(rule.substr(0, rule.find('\0'))) + "'.");
                }
                joined += ' ';
                joined += rules[i];
            } while (!rules[i].ends_with(')'));
            rule = joined;
        }
        if (rule.size() > max_user_bytes) return refuse("", "the rule is too long");
        if (auto done = apply_one(rule); !done) return refuse(rule, done.error());
        if (bytes() > max_user_bytes) return refuse(rule, "the user's rules are too many");
    }
    return {};
}

outcome user::add_selector(std::string_view inner) {
    selector made(all_channels_at_first_);
    for (std::size_t at = 0; at < inner.size();) {
        const std::size_t end = std::min(inner.find(' ', at), inner.size());
        if (end > at) {
            if (auto done = made.apply(inner.substr(at, end - at)); !done) return done;
        }
        at = end + 1;
    }
    selectors_.push_back(std::move(made));
    return {};
}

outcome user::apply_one(std::string_view rule) {
    if (rule.empty()) return {};
    const std::string_view rest = rule.substr(1);
    if (is_word(rule, "on") || is_word(rule, "off")) {
        enabled_ = is_word(rule, "on");
    } else if (is_word(rule, "nopass")) {
        no_password_ = true;
        passwords_.clear();
    } else if (is_word(rule, "resetpass")) {
        no_password_ = false;
        passwords_.clear();
    } else if (is_word(rule, "sanitize-payload") || is_word(rule, "skip-sanitize-payload")) {
        sanitizes_ = is_word(rule, "sanitize-payload");
    } else if (rule[0] == '>' || rule[0] == '#') {
        const auto digest = rule[0] == '>' ? sha256(rest) : digest_from_hex(rest);
        if (!digest) return std::unexpected(bad_hash);
        if (std::ranges::find(passwords_, *digest) == passwords_.end()) {
            passwords_.push_back(*digest);
        }
        no_password_ = false;
    } else if (rule[0] == '<' || rule[0] == '!') {
        const auto digest = rule[0] == '<' ? sha256(rest) : digest_from_hex(rest);
        if (!digest) return std::unexpected(bad_hash);
        if (std::erase(passwords_, *digest) == 0) return std::unexpected(no_such_password);
    } else if (rule[0] == '(' && rule.ends_with(')')) {
        return add_selector(rest.substr(0, rest.size() - 1));
    } else if (is_word(rule, "clearselectors")) {
        selectors_.resize(1);
    } else if (is_word(rule, "reset")) {
        *this = user(std::string(name_), all_channels_at_first_);
    } else {
        return selectors_.front().apply(rule);
    }
    return {};
}

bool user::accepts(std::string_view password) const {
    if (!enabled_) return false;
    if (no_password_) return true;
    const sha256_digest given = sha256(password);
    bool found = false;
    for (const sha256_digest& each : passwords_) found |= same_digest(given, each);
    return found;
}

bool user::allows_everything() const noexcept {
    return std::ranges::any_of(selectors_, &selector::allows_everything);
}

verdict user::check(const command_spec& spec, arguments args) const {
    verdict worst{refusal::command, 0};
    for (const selector& each : selectors_) {
        const verdict its = each.check(spec, args);
        if (its.why == refusal::none) return its;
        if (its.why > worst.why || (its.why == worst.why && its.argument > worst.argument)) {
            worst = its;
        }
    }
    return worst;
}

bool user::allows_channel(std::string_view channel, bool is_pattern) const {
    return std::ranges::any_of(
        selectors_, [&](const selector& each) { return each.allows_channel(channel, is_pattern); });
}

bool user::reads_all_keys(const command_spec& spec, arguments args) const {
    return std::ranges::any_of(selectors_, [&](const selector& each) {
        return each.reads_all_keys() && each.check(spec, args).why == refusal::none;
    });
}

bool user::has_key(std::string_view key) const {
    return std::ranges::any_of(selectors_,
                               [key](const selector& each) { return each.has_key(key); });
}

std::vector<std::string_view> user::flags() const {
    std::vector<std::string_view> names{enabled_ ? "on" : "off"};
    if (no_password_) names.emplace_back("nopass");
    names.emplace_back(sanitizes_ ? "sanitize-payload" : "skip-sanitize-payload");
    return names;
}

std::string user::written() const {
    std::string text;
    for (const std::string_view each : flags()) {
        text += each;
        text += ' ';
    }
    for (const sha256_digest& each : passwords_) text += '#' + to_hex(each) + ' ';
    for (const selector& each : selectors_) {
        const bool is_own = &each == &selectors_.front();
        text += is_own ? each.written() : " (" + each.written() + ")";
    }
    return text;
}

std::size_t user::bytes() const noexcept {
    std::size_t all = sizeof *this + name_.size() + passwords_.size() * sizeof(sha256_digest);
    for (const selector& each : selectors_) all += each.bytes();
    return all;
}

users::users(std::string_view password) {
    auto made = std::make_unique<user>("default");
    constexpr std::string_view rules[] = {"on", "nopass", "allkeys", "allchannels", "allcommands"};
    EDDY_ASSERT(made->apply(rules));
    default_ = made.get();
    all_.emplace("default", std::move(made));
    if (!password.empty()) set_default_password(password);
}

void users::add(user made) {
    std::string name = made.name();
    all_.emplace(std::move(name), std::make_unique<user>(std::move(made)));
}

std::unique_ptr<user> users::remove(std::string_view name) {
    const auto found = all_.find(name);
    if (found == all_.end()) return nullptr;
    std::unique_ptr<user> gone = std::move(found->second);
    EDDY_ASSERT(gone.get() != default_);
    all_.erase(found);
    return gone;
}

void users::set_default_password(std::string_view password) {
    const std::string given = password.empty() ? "nopass" : ">" + std::string(password);
    const std::string_view rules[] = {"resetpass", given};
    EDDY_ASSERT(default_->apply(rules));
}

}  // namespace eddy::cache::acl
