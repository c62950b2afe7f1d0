// SORT and SORT_RO: O(n log n) of the elements, and a lookup an element for each BY and GET.
#include "cache/acl/access.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

// One element and its sort key. The texts are views of values, which do not move while the command
// runs.
struct sorted_element {
    std::string_view text;
    double score = 0;
    std::string_view weight;
    bool has_weight = true;
    std::size_t order = 0;  // among all
};

struct sort_options {
    bool descending = false;
    bool by_text = false;
    bool sorts = true;
    std::optional<std::string_view> by;
    std::int64_t first = 0;
    std::int64_t count = -1;  // negative: all
    std::vector<std::string_view> get;
    std::optional<std::string_view> store_key;
};

enum class storing : std::uint8_t { allowed, refused };

bool is_constant(std::string_view pattern) noexcept {
    return pattern.substr(0, pattern.find('\0')).find('*') == std::string_view::npos;
}

// False, with the error replied, when they make no sense.
bool parse_options(call& c, storing may_store, sort_options& to) {
    for (std::size_t i = 2; i < c.count; ++i) {
        const std::string_view word = c.arg(i);
        const std::size_t left = c.count - i - 1;
        if (is_word(word, "asc")) {
            to.descending = false;
        } else if (is_word(word, "desc")) {
            to.descending = true;
        } else if (is_word(word, "alpha")) {
            to.by_text = true;
        } else if (is_word(word, "limit") && left >= 2) {
            const auto first = c.integer(i + 1);
            if (!first) return false;
            const auto count = c.integer(i + 2);
            if (!count) return false;
            to.first = *first;
            to.count = *count;
            i += 2;
        } else if (may_store == storing::allowed && is_word(word, "store") && left >= 1) {
            to.store_key = c.arg(++i);
        } else if (is_word(word, "by") && left >= 1) {
            to.by = c.arg(++i);
            // A later pattern does not enable sorting again after a constant one.
            if (is_constant(*to.by)) {
                to.sorts = false;
            } else if (!may_read_all_keys(c)) {
                c.error("ERR BY option of SORT denied due to insufficient ACL permissions.");
                return false;
            }
        } else if (is_word(word, "get") && left >= 1) {
            if (!may_read_all_keys(c)) {
                c.error("ERR GET option of SORT denied due to insufficient ACL permissions.");
                return false;
            }
            to.get.push_back(c.arg(++i));
        } else {
            c.syntax_error();
            return false;
        }
    }
    return true;
}

// Decimal texts of integers, written at the first access.
class written_numbers {
public:
    std::string_view text(const entry& e) {
        if (e.held_as == encoding::integer) return views_.emplace_back()(e);
        text_view view;
        return view(e);
    }

private:
    std::deque<text_view> views_;  // with stable addresses
};

// Pattern of BY or GET: "#" is the element itself; any other pattern names the string key with the
// element in place of the star, or, with "->", a field of the hash under that key.
class pattern {
public:
    explicit pattern(std::string_view text) : text_(text), star_(text.find('*')) {
        if (star_ == std::string_view::npos) return;
        const std::size_t arrow = text.find("->", star_ + 1);
        if (arrow == std::string_view::npos || arrow + 2 == text.size()) return;
        field_ = text.substr(arrow + 2);
        text_ = text.substr(0, arrow);
    }

    std::optional<std::string_view> look_up(call& c, std::string_view element,
                                            written_numbers& numbers) {
        if (text_ == "#") return element;
        if (star_ == std::string_view::npos) return std::nullopt;
        key_.assign(text_, 0, star_);
        key_ += element;
        key_ += text_.substr(star_ + 1);
        const slot* const place = c.find_to_read(key_);
        if (place == nullptr) return std::nullopt;
        const entry& e = *keyspace::at(place);
        if (field_) {
            if (e.type != value_type::hash) return std::nullopt;
            return c.collection_of(place).get(*field_);
        }
        if (e.type != value_type::string) return std::nullopt;
        return numbers.text(e);
    }

private:
    std::string_view text_;
    std::size_t star_;
    std::optional<std::string_view> field_;
    std::string key_;
};

// As strtod reads it, up to a NUL; none when that is not all of it.
std::optional<double> parse_score(std::string_view text) {
    if (const auto number = parse_integer(text)) return static_cast<double>(*number);
    const std::string copy(text);
    char* end = nullptr;
    errno = 0;
    const double value = std::strtod(copy.c_str(), &end);
    if (*end != '\0' || errno == ERANGE || std::isnan(value)) return std::nullopt;
    return value;
}

std::size_t elements_in(call& c, const slot* place) {
    if (place == nullptr) return 0;
    switch (keyspace::at(place)->type) {
        case value_type::list: return call::list_of(place).size();
        case value_type::sorted_set: return c.sorted_set_of(place).size();
        default: return c.collection_of(place).size();
    }
}

// LIMIT: the wanted range of the result.
struct window {
    std::size_t first = 0;
    std::size_t count = 0;
};

window resolve_limit(const sort_options& o, std::size_t size) noexcept {
    const auto all = static_cast<std::int64_t>(size);
    const std::int64_t first = std::clamp<std::int64_t>(o.first, 0, all);
    const std::int64_t left = all - first;
    const std::int64_t count = o.count < 0 ? left : std::min(o.count, left);
    return {static_cast<std::size_t>(first), static_cast<std::size_t>(count)};
}

// The elements in their own order. Of a list or a sorted set that is not sorted, only the wanted
// ones are loaded, from its end if the order is reversed.
std::vector<sorted_element> load_elements(call& c, const slot* place, const sort_options& o,
                                          window& wanted) {
    std::vector<sorted_element> all;
    if (place == nullptr) return all;
    const value_type type = keyspace::at(place)->type;
    if (type == value_type::list || type == value_type::sorted_set) {
        const std::size_t size = elements_in(c, place);
        const bool some = !o.sorts;
        const std::size_t count = some ? wanted.count : size;
        if (count == 0) return all;
        all.reserve(count);
        const bool backwards = some && o.descending;
        const std::size_t first = !some ? 0 : backwards ? size - 1 - wanted.first : wanted.first;
        if (some) wanted.first = 0;
        if (type == value_type::sorted_set) {
            sorted_set::walk walk(c.sorted_set_of(place), first, backwards);
            for (sorted_set::element e; all.size() < count && walk.next(e);) {
                all.emplace_back().text = e.member;
            }
            return all;
        }
        list::position at = call::list_of(place).at(first);
        for (std::size_t i = 0; i < count; ++i) {
            all.emplace_back().text = list::get(at);
            at = backwards ? list::before(at) : list::after(at);
        }
        return all;
    }
    const collection members = c.collection_of(place);
    all.reserve(members.size());
    collection::walk walk(members);
    for (collection::element e; walk.next(e);) {
        all.emplace_back().text = e.field;
    }
    return all;
}

// Without STORE texts are compared as the C library does, up to a NUL; with it as bytes.
std::string_view collated(std::string_view text, const sort_options& o) noexcept {
    return o.store_key ? text : text.substr(0, text.find('\0'));
}

// Finds the sort key of each element. False when one of them is not a number.
bool weigh(call& c, const sort_options& o, std::vector<sorted_element>& all,
           written_numbers& numbers) {
    std::optional<pattern> by;
    if (o.by) by.emplace(*o.by);
    bool all_numbers = true;
    for (sorted_element& each : all) {
        const auto weight = by ? by->look_up(c, each.text, numbers) : each.text;
        each.has_weight = weight.has_value();
        if (!weight) continue;
        if (o.by_text) {
            each.weight = collated(*weight, o);
        } else if (const auto score = parse_score(*weight)) {
            each.score = *score;
        } else {
            all_numbers = false;
        }
    }
    return all_numbers;
}

// Stable sort: equal elements keep their order, also in descending order.
void sort_elements(const sort_options& o, std::vector<sorted_element>& all) {
    const auto compare = [&o](const sorted_element& a, const sorted_element& b) {
        if (!o.by_text) {
            if (a.score != b.score) return a.score < b.score ? -1 : 1;
            return a.text.compare(b.text);
        }
        if (!a.has_weight || !b.has_weight) {
            return static_cast<int>(a.has_weight) - static_cast<int>(b.has_weight);
        }
        return a.weight.compare(b.weight);
    };
    std::size_t order = 0;
    for (sorted_element& each : all) each.order = order++;
    std::ranges::sort(all, [&](const sorted_element& a, const sorted_element& b) {
        const int differ = compare(a, b);
        if (differ == 0) return a.order < b.order;
        return o.descending ? differ > 0 : differ < 0;
    });
}

// Calls `to` with each resulting text; a missing one counts as null.
template <class F>
void for_each_result(call& c, const sort_options& o, const std::vector<sorted_element>& all,
                     window wanted, F&& to) {
    std::vector<pattern> get(o.get.begin(), o.get.end());
    for (std::size_t i = wanted.first; i < wanted.first + wanted.count; ++i) {
        if (get.empty()) {
            if (!to(std::optional(all[i].text))) return;
        }
        for (pattern& each : get) {
            written_numbers numbers;
            if (!to(each.look_up(c, all[i].text, numbers))) return;
        }
    }
}

void store_results(call& c, const sort_options& o, const std::vector<sorted_element>& all,
                   window wanted) {
    const std::string_view key = *o.store_key;
    const std::uint64_t hash = c.keys->hash(key);
    list made;
    std::size_t bytes = 0;
    const std::size_t limit = c.state.settings.options.max_reply;
    for_each_result(c, o, all, wanted, [&](std::optional<std::string_view> text) {
        bytes += text ? text->size() : 0;
        if (bytes <= limit) made.push_back(c.memory(), text.value_or(std::string_view{}));
        return bytes <= limit;
    });
    if (bytes > limit) {
        // NOLINTNEXTLINE(performance-move-const-arg): its chunks change hands
        c.state.data.env.discard(std::move(made));
        return c.error("ERR the list is larger than the limit of " + std::to_string(limit) +
                       " bytes: store fewer elements at a time");
    }
    const std::size_t size = made.size();
    const bool was_there = c.keys->remove(key, hash);
    if (size > 0) {
        call::list_of(c.keys->add(key, hash, value_type::list)) = made;
        c.changed(key_event::list, "sortstore", key);
    } else if (was_there) {
        c.changed(key_event::generic, "del", key);
    }
    c.reply.integer(static_cast<std::int64_t>(size));
}

void run_sort(call& c, storing may_store) {
    sort_options o;
    if (!parse_options(c, may_store, o)) return;
    const slot* place = c.find_to_read();
    if (place != nullptr) {
        const value_type type = keyspace::at(place)->type;
        if (type != value_type::list && type != value_type::set && type != value_type::sorted_set) {
            return c.wrong_type();
        }
        // Redis spreads a packed sorted set, which OBJECT ENCODING, DUMP and the scores of ZSCAN
        // show. In readonly mode nothing changes.
        if (type == value_type::sorted_set &&
            c.state.settings.options.mode != access_mode::readonly) {
            // No element of a table changes, so a snapshot needs no copy.
            const bool is_packed = keyspace::at(place)->held_as == encoding::packed;
            c.sorted_set_of(is_packed ? c.find_to_write() : place).spread();
        }
    }
    // A set has no order of its own: it is sorted, so that a stored result, and the one a script
    // gets, is the same on each server.
    if (!o.sorts && (o.store_key || c.in_script) && place != nullptr &&
        keyspace::at(place)->type == value_type::set) {
        o.sorts = true;
        o.by_text = true;
        o.by.reset();
    }
    window wanted = resolve_limit(o, elements_in(c, place));
    std::vector<sorted_element> all = load_elements(c, place, o, wanted);
    written_numbers numbers;
    if (o.sorts) {
        if (!weigh(c, o, all, numbers)) {
            return c.error("ERR One or more scores can't be converted into double");
        }
        sort_elements(o, all);
    }
    if (o.store_key) return store_results(c, o, all, wanted);
    c.reply.array(wanted.count * std::max<std::size_t>(o.get.size(), 1));
    for_each_result(c, o, all, wanted, [&](std::optional<std::string_view> text) {
        if (c.reply_is_too_large()) return false;
        text ? c.reply.bulk(*text) : c.reply.null();
        return true;
    });
}

}  // namespace

void sort(call& c) { run_sort(c, storing::allowed); }
void sort_ro(call& c) { run_sort(c, storing::refused); }

}  // namespace eddy::cache::commands
