// GEOSEARCH and its predecessors GEORADIUS and GEORADIUSBYMEMBER: members within a circle or box.
//
// The area is covered with a few ranges of scores, whose members are checked one by one: O(log n +
// their number). Without ASC, DESC or COUNT they come in Redis's order.
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/commands/sorted_sets/geo_arguments.hpp"
#include "cache/commands/sorted_sets/sorted_set_reply.hpp"
#include "cache/engine/call.hpp"
#include "cache/types/sorted_sets/geo.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

enum class form : std::uint8_t {
    radius,            // GEORADIUS
    radius_read_only,  // GEORADIUS_RO
    member,            // GEORADIUSBYMEMBER
    member_read_only,  // GEORADIUSBYMEMBER_RO
    search,            // GEOSEARCH
    search_store,      // GEOSEARCHSTORE
};

enum class sorting : std::uint8_t { none, ascending, descending };

struct found {
    std::string_view member;
    double score;
    geo::position where;
    double metres;
};

class search {
public:
    search(call& c, form f) noexcept : c_(c), form_(f) {}
    void run();

private:
    bool is_search() const noexcept { return form_ == form::search || form_ == form::search_store; }
    bool may_store() const noexcept { return form_ == form::radius || form_ == form::member; }

    // Each returns false with the error replied.
    bool parse_place(std::size_t& next);
    bool parse_options(std::size_t next);
    std::optional<bool> parse_option(std::size_t& i);
    bool parse_search_option(std::size_t& i);
    bool check() const;
    bool from_member(std::size_t at);
    bool from_position(std::size_t at);
    bool by_radius(std::size_t at);
    bool by_box(std::size_t at);
    std::optional<double> length(std::size_t at, std::string_view not_a_number) const;

    void collect();
    void sort();
    void reply() const;
    void store();

    call& c_;
    form form_;
    const slot* source_ = nullptr;
    geo::area area_;
    double unit_ = 1;  // metres
    bool has_centre_ = false;
    bool centre_is_member_ = false;
    bool has_shape_ = false;
    bool with_distance_ = false;
    bool with_hash_ = false;
    bool with_position_ = false;
    bool any_ = false;
    bool store_distance_ = false;
    std::optional<std::string_view> target_;
    sorting sorting_ = sorting::none;
    std::size_t count_ = 0;  // 0: all
    std::vector<found> found_;
};

std::optional<double> search::length(std::size_t at, std::string_view not_a_number) const {
    const auto value = parse_double(c_.arg(at));
    if (!value) c_.error(not_a_number);
    return value;
}

bool search::from_member(std::size_t at) {
    has_centre_ = centre_is_member_ = true;
    if (source_ == nullptr) return true;
    const sorted_set::place member = c_.sorted_set_of(source_).find(c_.arg(at));
    if (member) {
        area_.centre = geo::decode(member.score);
    } else {
        c_.error("ERR could not decode requested zset member");
    }
    return static_cast<bool>(member);
}

bool search::from_position(std::size_t at) {
    has_centre_ = true;
    const auto where = geo_position(c_, at);
    if (where) area_.centre = *where;
    return where.has_value();
}

bool search::by_radius(std::size_t at) {
    has_shape_ = true;
    const auto radius = length(at, "ERR need numeric radius");
    if (!radius) return false;
    if (*radius < 0) {
        c_.error("ERR radius cannot be negative");
        return false;
    }
    const auto unit = geo_unit(c_, at + 1);
    if (!unit) return false;
    unit_ = *unit;
    area_.radius = *radius * unit_;
    return true;
}

bool search::by_box(std::size_t at) {
    has_shape_ = area_.is_box = true;
    const auto width = length(at, "ERR need numeric width");
    if (!width) return false;
    const auto height = length(at + 1, "ERR need numeric height");
    if (!height) return false;
    if (*width < 0 || *height < 0) {
        c_.error("ERR height or width cannot be negative");
        return false;
    }
    const auto unit = geo_unit(c_, at + 2);
    if (!unit) return false;
    unit_ = *unit;
    area_.width = *width * unit_;
    area_.height = *height * unit_;
    return true;
}

// Parses the arguments at fixed positions.
bool search::parse_place(std::size_t& next) {
    switch (form_) {
        case form::radius:
        case form::radius_read_only: next = 6; return from_position(2) && by_radius(4);
        case form::member:
        case form::member_read_only:
            next = 5;
            // Without a key these arguments are not checked.
            return source_ == nullptr || (from_member(2) && by_radius(3));
        case form::search: next = 2; return true;
        case form::search_store:
            next = 3;
            target_ = c_.arg(1);
            return true;
    }
    return false;
}

// Options of all forms. None for another word; false with the error replied.
std::optional<bool> search::parse_option(std::size_t& i) {
    const std::string_view word = c_.arg(i);
    if (is_word(word, "withdist")) {
        with_distance_ = true;
    } else if (is_word(word, "withhash")) {
        with_hash_ = true;
    } else if (is_word(word, "withcoord")) {
        with_position_ = true;
    } else if (is_word(word, "any")) {
        any_ = true;
    } else if (is_word(word, "asc")) {
        sorting_ = sorting::ascending;
    } else if (is_word(word, "desc")) {
        sorting_ = sorting::descending;
    } else if (is_word(word, "count") && i + 1 < c_.count) {
        const auto given = c_.integer(++i);
        if (!given) return false;
        if (*given <= 0) {
            c_.error("ERR COUNT must be > 0");
            return false;
        }
        count_ = static_cast<std::size_t>(*given);
    } else if (may_store() && i + 1 < c_.count &&
               (is_word(word, "store") || is_word(word, "storedist"))) {
        store_distance_ = is_word(word, "storedist");
        target_ = c_.arg(++i);
    } else {
        return std::nullopt;
    }
    return true;
}

bool search::parse_search_option(std::size_t& i) {
    const std::string_view word = c_.arg(i);
    const std::size_t at = i + 1;
    const std::size_t left = c_.count - at;
    const bool has_position = has_centre_ && !centre_is_member_;
    if (form_ == form::search_store && is_word(word, "storedist")) {
        store_distance_ = true;
        return true;
    }
    if (is_word(word, "frommember") && left >= 1 && !has_position) {
        i += 1;
        return from_member(at);
    }
    if (is_word(word, "fromlonlat") && left >= 2 && !centre_is_member_) {
        i += 2;
        return from_position(at);
    }
    if (is_word(word, "byradius") && left >= 2 && !area_.is_box) {
        i += 2;
        return by_radius(at);
    }
    if (is_word(word, "bybox") && left >= 3 && (!has_shape_ || area_.is_box)) {
        i += 3;
        return by_box(at);
    }
    c_.syntax_error();
    return false;
}

bool search::parse_options(std::size_t next) {
    for (std::size_t i = next; i < c_.count; ++i) {
        const auto known = parse_option(i);
        if (known && !*known) return false;
        if (known) continue;
        if (!is_search()) {
            c_.syntax_error();
            return false;
        }
        if (!parse_search_option(i)) return false;
    }
    return true;
}

// Checks that the options are compatible.
bool search::check() const {
    const std::string name(c_.arg(0));
    if (target_ && (with_distance_ || with_hash_ || with_position_)) {
        c_.error(form_ == form::search_store
                     ? "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD "
                       "options"
                     : "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH "
                       "and WITHCOORD options");
        return false;
    }
    if (is_search() && !has_centre_) {
        c_.error("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + name);
        return false;
    }
    if (is_search() && !has_shape_) {
        c_.error("ERR exactly one of BYRADIUS and BYBOX can be specified for " + name);
        return false;
    }
    if (any_ && count_ == 0) {
        c_.error("ERR the ANY argument requires COUNT argument");
        return false;
    }
    return true;
}

void search::collect() {
    const sorted_set members = c_.sorted_set_of(source_);
    for (const geo::score_range& range : geo::in_order_of_redis(area_)) {
        const std::size_t first = members.count_below(range.begin, false);
        sorted_set::walk walk(members, first, false);
        for (sorted_set::element e; walk.next(e) && e.score < range.end;) {
            const geo::position where = geo::decode(e.score);
            double metres = 0;
            if (!area_.has(where, metres)) continue;
            found_.push_back({e.member, e.score, where, metres});
            if (any_ && found_.size() == count_) return;
        }
    }
}

void search::sort() {
    const std::size_t size = found_.size();
    const std::size_t wanted = count_ == 0 ? size : std::min(count_, size);
    // COUNT without ANY means the nearest.
    const bool by_distance = sorting_ != sorting::none || (count_ > 0 && !any_);
    if (by_distance) {
        const bool descending = sorting_ == sorting::descending;
        const auto before = [descending](const found& a, const found& b) {
            if (a.metres != b.metres) return (a.metres < b.metres) != descending;
            return a.score < b.score || (a.score == b.score && a.member < b.member);
        };
        std::partial_sort(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(wanted),
                          found_.end(), before);
    }
    found_.resize(wanted);
}

void search::reply() const {
    const std::size_t options = static_cast<std::size_t>(with_distance_) +
                                static_cast<std::size_t>(with_hash_) +
                                static_cast<std::size_t>(with_position_);
    c_.reply.array(found_.size());
    for (const found& each : found_) {
        if (c_.reply_is_too_large()) return;
        if (options > 0) c_.reply.array(options + 1);
        c_.reply.bulk(each.member);
        if (with_distance_) reply_distance(c_, each.metres / unit_);
        if (with_hash_) c_.reply.integer(static_cast<std::int64_t>(each.score));
        if (with_position_) {
            c_.reply.array(2);
            reply_coordinate(c_, each.where.longitude);
            reply_coordinate(c_, each.where.latitude);
        }
    }
}

void search::store() {
    sorted_set_result result(c_.state.data.env);
    for (const found& each : found_) {
        result.put(each.member, store_distance_ ? each.metres / unit_ : each.score);
    }
    result.store(c_, *target_, c_.keys->hash(*target_),
                 is_search() ? "geosearchstore" : "georadiusstore");
}

void search::run() {
    source_ = c_.find_to_read(c_.arg(form_ == form::search_store ? 2 : 1));
    if (source_ != nullptr && c_.is_not(source_, value_type::sorted_set)) return;
    std::size_t next = 0;
    if (!parse_place(next) || !parse_options(next) || !check()) return;
    if (source_ != nullptr) collect();
    sort();
    target_ ? store() : reply();
}

}  // namespace

void georadius(call& c) { search(c, form::radius).run(); }
void georadius_ro(call& c) { search(c, form::radius_read_only).run(); }
void georadiusbymember(call& c) { search(c, form::member).run(); }
void georadiusbymember_ro(call& c) { search(c, form::member_read_only).run(); }
void geosearch(call& c) { search(c, form::search).run(); }
void geosearchstore(call& c) { search(c, form::search_store).run(); }

}  // namespace eddy::cache::commands
