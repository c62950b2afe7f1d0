// Recording of changes, their units and their delivery.
#include "cache/persistence/propagation.hpp"

#include <eddy/wire/resp/reply_writer.hpp>

#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/script/scripting.hpp"

#include <algorithm>
#include <utility>

namespace eddy::cache {
namespace {

// Capacity above this, from a large unit, is released.
constexpr std::size_t kept_text = 64 * 1024;
constexpr std::size_t kept_items = 1024;

constexpr std::string_view begin_text = "*1\r\n$5\r\nMULTI\r\n";
constexpr std::string_view end_text = "*1\r\n$4\r\nEXEC\r\n";

// These commands are recorded by the commands that they run.
bool runs_others(const command_spec& spec) noexcept {
    return (spec.flags & (command_flag::executes_queue | command_flag::runs_script)) != 0;
}

}  // namespace

void change_writer::write(byte_buffer& to, std::span<const change> unit, bool with_messages) {
    for (const change& each : unit) {
        if (each.is_message && !with_messages) continue;
        if (each.database != change::any_database && each.database != selected_) {
            const decimal number(each.database);
            const std::string_view select[] = {"SELECT", number};
            resp::write_command(to, select);
            selected_ = each.database;
        }
        to.append(each.commands);
    }
}

void add_sink(engine_state& s, change_sink& to) {
    if (s.persistence.propagating == nullptr)
        s.persistence.propagating = std::make_unique<propagation>();
    s.persistence.propagating->add(to);
    s.clients.slow_path |= slow_path::propagates;
    s.note_observers();
}

void remove_sink(engine_state& s, change_sink& from) noexcept {
    if (s.persistence.propagating == nullptr) return;
    s.persistence.propagating->remove(from);
    if (!s.persistence.propagating->has_sinks()) stop_propagation(s);
}

void stop_propagation(engine_state& s) noexcept {
    s.clients.slow_path &= static_cast<std::uint16_t>(~slow_path::propagates);
    s.note_observers();
}

void propagate_as(call& c, std::span<const std::string_view> command) {
    if (!propagates(c)) return;
    c.state.persistence.propagating->record(c.keys->number(), command, false);
    c.state.persistence.propagating->given_ = true;
}

void propagate_nothing(call& c) {
    if (propagates(c)) c.state.persistence.propagating->given_ = true;
}

void propagate_message(call& c) {
    if (propagates(c))
        c.state.persistence.propagating->record(c.keys->number(), {c.args, c.count}, true);
}

void propagate_alone(engine_state& s, unsigned database,
                     std::initializer_list<std::string_view> command) {
    const recorded_alone told(s, database, command);
}

recorded_alone::recorded_alone(engine_state& s, unsigned database,
                               std::initializer_list<std::string_view> command)
    : to_(propagates(s) ? s.persistence.propagating.get() : nullptr) {
    if (to_ == nullptr) return;
    try {
        to_->record(database, {command.begin(), command.size()}, false);
    } catch (...) {
        to_->deliver_if_closed();
        throw;
    }
}

recorded_alone::~recorded_alone() {
    if (to_ == nullptr) return;
    if (std::uncaught_exceptions() > exceptions_) to_->missed_ = true;
    to_->deliver_if_closed();
}

void propagation::add(change_sink& to) { sinks_.push_back({&to, items_.size()}); }

void propagation::remove(change_sink& from) noexcept {
    std::erase_if(sinks_, [&from](const taker& each) { return each.sink == &from; });
}

void propagation::record(unsigned database, std::span<const std::string_view> command,
                         bool is_message) {
    const std::size_t before = text_.size();
    try {
        resp::write_command(text_, command);
        // deliver() must not allocate: its changes have happened already.
        constexpr std::size_t marks = 2;
        if (unit_.capacity() < items_.size() + 1 + marks)
            unit_.reserve(2 * (items_.size() + 1) + marks);
        items_.push_back({database, text_.size(), is_message});
    } catch (...) {
        // Half a command would corrupt all following ones.
        text_.truncate(before);
        missed_ = true;
        throw;
    }
}

void propagation::deliver() noexcept {
    if (std::exchange(missed_, false)) {
        for (taker& each : sinks_) each.first = 0;
        forget_unit();
        // Sinks may detach meanwhile.
        for (std::size_t i = sinks_.size(); i > 0; --i) {
            if (i <= sinks_.size()) sinks_[i - 1].sink->missed();
        }
        return;
    }
    if (items_.empty()) return;
    const std::string_view text = text_.text();
    for (taker& each : sinks_) {
        const std::size_t first = std::exchange(each.first, 0);
        if (first == items_.size()) continue;
        const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(first);
        const auto is_message = [](const item& one) { return one.is_message; };
        const auto messages =
            static_cast<std::size_t>(std::count_if(begin, items_.end(), is_message));
        const std::size_t count = items_.size() - first;
        // A file needs no framing of messages, or of a single command.
        const bool is_transaction = count > 1;
        const bool marks_are_messages = count - messages < 2;
        unit_.clear();
        // SELECT follows MULTI, as in Redis 7.2; in 7.0 it precedes it.
        if (is_transaction) unit_.push_back({change::any_database, begin_text, marks_are_messages});
        std::size_t at = first == 0 ? 0 : items_[first - 1].end;
        for (std::size_t i = first; i < items_.size(); ++i) {
            const item& one = items_[i];
            unit_.push_back({one.database, text.substr(at, one.end - at), one.is_message});
            at = one.end;
        }
        if (is_transaction) unit_.push_back({change::any_database, end_text, marks_are_messages});
        each.sink->changed(unit_);
    }
    forget_unit();
}

void propagation::forget_unit() noexcept {
    items_.clear();
    text_.clear();
    if (text_.capacity() > kept_text) text_ = byte_buffer();
    if (items_.capacity() > kept_items) {
        items_ = std::vector<item>();
        unit_ = std::vector<change>();
    }
}

recording::recording(engine_state& s, const command_spec& of) noexcept
    : state_(s),
      spec_(of),
      to_(propagates(s) ? s.persistence.propagating.get() : nullptr),
      changes_(s.data.changes) {
    if (to_ == nullptr) return;
    outer_given_ = std::exchange(to_->given_, false);
    outermost_ = !to_->open_;
    to_->open_ = true;
}

void recording::end(std::span<const std::string_view> args, unsigned database) {
    if (to_ == nullptr || to_->given_ || state_.data.changes == changes_ || runs_others(spec_))
        return;
    if (state_.settings.renamed == nullptr) return to_->record(database, args, false);
    // Files and replicas use its original name.
    std::vector<std::string_view> named(args.begin(), args.end());
    named.front() = spec_.name;
    to_->record(database, named, false);
}

recording::~recording() {
    if (to_ == nullptr) return;
    to_->given_ = outer_given_;
    if (std::uncaught_exceptions() > exceptions_ &&
        ((spec_.flags & command_flag::write) != 0 || state_.data.changes != changes_))
        to_->missed_ = true;
    if (!outermost_ || scripting::is_late(state_)) return;
    to_->open_ = false;
    to_->deliver();
}

void finish_unit(engine_state& s) {
    if (s.persistence.propagating == nullptr || !s.persistence.propagating->open_) return;
    s.persistence.propagating->open_ = false;
    s.persistence.propagating->given_ = false;
    s.persistence.propagating->deliver();
}

void discard_unit(engine_state& s) noexcept {
    if (s.persistence.propagating == nullptr || !s.persistence.propagating->open_) return;
    s.persistence.propagating->open_ = s.persistence.propagating->given_ =
        s.persistence.propagating->missed_ = false;
    for (auto& each : s.persistence.propagating->sinks_) each.first = 0;
    s.persistence.propagating->forget_unit();
}

expired_keys fate_of_expired(const engine_state& s) noexcept {
    constexpr auto keeping = slow_path::replica | slow_path::pause;
    return (s.clients.slow_path & keeping) != 0 ? expired_keys::hide : expired_keys::go;
}

expiry_scope::expiry_scope(const call& c) noexcept
    : env_(c.state.data.env), before_(c.state.data.env.expired) {
    if ((c.client.special & client_session::master) != 0) {
        env_.expired = expired_keys::stay;
    } else if ((c.state.clients.slow_path & (slow_path::replica | slow_path::pause)) != 0) {
        const bool reads = (c.spec->flags & command_flag::write) == 0;
        env_.expired = reads ? expired_keys::hide : expired_keys::go;
    }
}

}  // namespace eddy::cache
