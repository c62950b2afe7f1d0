// Union, intersection and difference of sorted sets, and of plain sets, whose members count as 1.
//
// ZINTER is O(the smallest set × the number of sets), ZUNION and ZDIFF O(all members), and the
// results are put in order, O(log n) a member.
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/commands/sorted_sets/sorted_set_reply.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

enum class operation : std::uint8_t { intersection, both, difference };
enum class aggregate : std::uint8_t { sum, min, max };

// One of the sets, which may be missing.
struct operand {
    entry* holder = nullptr;
    std::size_t number = 0;  // as the client named them
    double weight = 1;

    bool is_plain() const noexcept { return holder->type == value_type::set; }
    std::size_t size(environment& env) const noexcept {
        if (holder == nullptr) return 0;
        return is_plain() ? collection(env, *holder).size() : sorted_set(env, *holder).size();
    }
    std::optional<double> score(environment& env, std::string_view member) const noexcept {
        if (holder == nullptr) return std::nullopt;
        if (is_plain()) {
            if (!collection(env, *holder).contains(member)) return std::nullopt;
            return 1;
        }
        const sorted_set::place at = sorted_set(env, *holder).find(member);
        if (!at) return std::nullopt;
        return at.score;
    }
    // Its members, each with its score, until `visit` returns false.
    template <class Visit>
    void each(environment& env, Visit visit) const {
        if (holder == nullptr) return;
        if (is_plain()) {
            collection::walk walk(collection(env, *holder));
            for (collection::element e; walk.next(e);) {
                if (!visit(e.field, 1.0)) return;
            }
            return;
        }
        sorted_set::walk walk(sorted_set(env, *holder));
        for (sorted_set::element e; walk.next(e);) {
            if (!visit(e.member, e.score)) return;
        }
    }
};

struct algebra {
    operation what;
    std::vector<operand> operands;
    aggregate by = aggregate::sum;
    bool with_scores = false;
    std::size_t limit = SIZE_MAX;  // of ZINTERCARD

    // Reads what stands from args[first] on; false with the error replied.
    bool parse(call& c, std::size_t first, bool stores, bool counts);
    bool parse_option(call& c, std::size_t& i, bool stores, bool counts);

    // Puts the result into `to`, if there is one; returns the number of members.
    std::size_t compute(environment& env, sorted_set_result* to);

private:
    double combine(double a, double b) const noexcept;
    std::size_t intersect(environment& env, sorted_set_result* to) const;
    void unite(environment& env, sorted_set_result& to) const;
    void subtract(environment& env, sorted_set_result& to) const;
};

bool algebra::parse(call& c, std::size_t first, bool stores, bool counts) {
    const auto keys = c.integer(first);
    if (!keys) return false;
    if (*keys < 1) {
        c.error("ERR at least 1 input key is needed for '" + std::string(c.spec->name) +
                "' command");
        return false;
    }
    if (static_cast<std::uint64_t>(*keys) > c.count - first - 1) {
        c.syntax_error();
        return false;
    }
    std::size_t i = first + 1;
    // Looking a key up may remove another, expired one, but never moves an entry.
    for (const std::size_t last = first + static_cast<std::size_t>(*keys); i <= last; ++i) {
        const slot* const place = c.find_to_read(c.arg(i));
        if (place != nullptr && keyspace::at(place)->type != value_type::set &&
            c.is_not(place, value_type::sorted_set)) {
            return false;
        }
        operands.push_back({place == nullptr ? nullptr : keyspace::at(place), i});
    }
    while (i < c.count) {
        if (!parse_option(c, i, stores, counts)) return false;
    }
    return true;
}

bool algebra::parse_option(call& c, std::size_t& i, bool stores, bool counts) {
    const std::string_view word = c.arg(i);
    const std::size_t left = c.count - i - 1;
    const bool weighs = what != operation::difference && !counts;
    if (weighs && left >= operands.size() && is_word(word, "weights")) {
        for (operand& each : operands) {
            const auto weight = parse_double(c.arg(++i));
            if (!weight) {
                c.error("ERR weight value is not a float");
                return false;
            }
            each.weight = *weight;
        }
    } else if (weighs && left >= 1 && is_word(word, "aggregate")) {
        const std::string_view how = c.arg(++i);
        if (is_word(how, "sum")) {
            by = aggregate::sum;
        } else if (is_word(how, "min")) {
            by = aggregate::min;
        } else if (is_word(how, "max")) {
            by = aggregate::max;
        } else {
            c.syntax_error();
            return false;
        }
    } else if (!stores && !counts && is_word(word, "withscores")) {
        with_scores = true;
    } else if (counts && left >= 1 && is_word(word, "limit")) {
        const auto given = c.integer_in(++i, 0, INT64_MAX, "ERR LIMIT can't be negative");
        if (!given) return false;
        limit = *given == 0 ? SIZE_MAX : static_cast<std::size_t>(*given);
    } else {
        c.syntax_error();
        return false;
    }
    ++i;
    return true;
}

// Opposite infinities make 0, as in Redis.
double algebra::combine(double a, double b) const noexcept {
    switch (by) {
        case aggregate::sum: {
            const double sum = a + b;
            return std::isnan(sum) ? 0 : sum;
        }
        case aggregate::min: return b < a ? b : a;
        case aggregate::max: return b > a ? b : a;
    }
    return a;
}

// 0 and -0 are equal, and not the same.
bool is_same(double a, double b) noexcept { return a == b && std::signbit(a) == std::signbit(b); }

double weighted(double weight, double score) noexcept {
    const double product = weight * score;
    return std::isnan(product) ? 0 : product;
}

std::size_t algebra::intersect(environment& env, sorted_set_result* to) const {
    const operand& smallest = operands[0];
    std::size_t found = 0;
    smallest.each(env, [&](std::string_view member, double own) {
        double score = weighted(smallest.weight, own);
        for (std::size_t i = 1; i < operands.size(); ++i) {
            const auto other = operands[i].score(env, member);
            if (!other) return true;
            score = combine(score, *other * operands[i].weight);
        }
        if (to != nullptr) to->put(member, score);
        return ++found < limit;
    });
    return found;
}

void algebra::unite(environment& env, sorted_set_result& to) const {
    for (const operand& one : operands) {
        one.each(env, [&](std::string_view member, double own) {
            const double score = weighted(one.weight, own);
            sorted_set members = to.members();
            const sorted_set::place at = members.find(member);
            if (!at) {
                members.add(member, score, at);
            } else if (const double sum = combine(at.score, score); !is_same(sum, at.score)) {
                members.change(at, sum);
            }
            return true;
        });
    }
}

void algebra::subtract(environment& env, sorted_set_result& to) const {
    operands[0].each(env, [&](std::string_view member, double score) {
        const bool elsewhere =
            std::any_of(operands.begin() + 1, operands.end(),
                        [&](const operand& other) { return other.score(env, member).has_value(); });
        if (!elsewhere) to.put(member, score);
        return true;
    });
}

std::size_t algebra::compute(environment& env, sorted_set_result* to) {
    if (what == operation::difference) {
        subtract(env, *to);
        return to->members().size();
    }
    // From the smallest to the largest, which is also the order in which scores are added.
    std::sort(operands.begin(), operands.end(), [&](const operand& a, const operand& b) {
        return std::pair(a.size(env), a.number) < std::pair(b.size(env), b.number);
    });
    if (what == operation::intersection) return intersect(env, to);
    unite(env, *to);
    return to->members().size();
}

void reply_with(call& c, operation what) {
    algebra request{what, {}};
    if (!request.parse(c, 1, false, false)) return;
    sorted_set_result result(c.state.data.env);
    const std::size_t size = request.compute(c.state.data.env, &result);
    reply_members(c, result.members(), 0, size, false, request.with_scores);
}

void store(call& c, operation what, std::string_view event) {
    algebra request{what, {}};
    if (!request.parse(c, 2, true, false)) return;
    sorted_set_result result(c.state.data.env);
    request.compute(c.state.data.env, &result);
    result.store(c, c.arg(1), c.hash, event);
}

}  // namespace

void zunion(call& c) { reply_with(c, operation::both); }
void zinter(call& c) { reply_with(c, operation::intersection); }
void zdiff(call& c) { reply_with(c, operation::difference); }
void zunionstore(call& c) { store(c, operation::both, "zunionstore"); }
void zinterstore(call& c) { store(c, operation::intersection, "zinterstore"); }
void zdiffstore(call& c) { store(c, operation::difference, "zdiffstore"); }

void zintercard(call& c) {
    algebra request{operation::intersection, {}};
    if (!request.parse(c, 1, false, true)) return;
    c.reply.integer(static_cast<std::int64_t>(request.compute(c.state.data.env, nullptr)));
}

}  // namespace eddy::cache::commands
