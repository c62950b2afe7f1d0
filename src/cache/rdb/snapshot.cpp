// The snapshot's walk, and its copies of values before they change.
#include "cache/rdb/snapshot.hpp"

#include <eddy/base/assert.hpp>

#include "cache/clients/waits.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/rdb/format.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/scripting.hpp"
#include "cache/types/packed_block.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace eddy::cache::rdb {
namespace {

constexpr const char* too_many_changes =
    "too many keys were changed before they could be written: the limit on what may wait was "
    "reached";
constexpr const char* no_memory = "there is no memory for it";

// A larger removed value is kept for later: writing it at once would take longer than a slice.
constexpr std::size_t big_bytes = 16U << 10;
constexpr std::size_t big_elements = 64;

bool is_big(const entry& e) noexcept {
    switch (e.held_as) {
        case encoding::bytes:
        case encoding::integer:
        case encoding::packed: return false;
        case encoding::external: return e.pointer<text_block>()->size > big_bytes;
        case encoding::list: {
            const list& elements = *e.pointer<list>();
            return elements.size() > big_elements || elements.memory_bytes() > big_bytes;
        }
        case encoding::indexed: return e.pointer<indexed_block>()->used > big_bytes;
        default: return true;
    }
}

// Approximate; O(1) for any type.
std::size_t bytes_of(const environment& env, const entry& e) {
    constexpr std::size_t samples = 5;
    if (e.held_as != encoding::list) return memory_usage(env, e, samples);
    const list& elements = *e.pointer<list>();
    std::size_t seen = 0;
    std::size_t bytes = 0;
    for (list::position p = elements.first(); p && seen < samples; p = list::after(p), ++seen)
        bytes += list::get(p).size() + 1;
    return seen == 0 ? 0 : elements.size() * bytes / seen;
}

void mark(entry& e) noexcept { e.flags |= entry::in_snapshot; }
void unmark(entry& e) noexcept { e.flags &= static_cast<std::uint8_t>(~entry::in_snapshot); }

}  // namespace

bool snapshot::may_begin(engine& of) noexcept {
    const engine_state& s = of.internals();
    return s.persistence.snapshot == nullptr && !s.persistence.has_half_script;
}

bool snapshot::is_clearing(engine& of) noexcept {
    const auto& image = of.internals().persistence.snapshot;
    return image != nullptr && image->ended_;
}

snapshot* snapshot::begin(engine& of, snapshot_options options) {
    return begin(of.internals(), options);
}

snapshot* snapshot::begin(engine_state& of, snapshot_options options) {
    if (of.persistence.snapshot != nullptr || of.persistence.has_half_script) return nullptr;
    of.persistence.snapshot.reset(new snapshot(of, options));
    return of.persistence.snapshot.get();
}

snapshot::snapshot(engine_state& of, snapshot_options options)
    : state_(of),
      options_(options),
      file_(of.data.env, options.form),
      at_s_(of.data.env.now_us / 1'000'000),
      used_memory_(of.data.env.memory.used_bytes()),
      current_(of.data.env, options.form),
      ahead_(of.data.env, options.form),
      change_writer_(of.data.env, options.form) {
    const replication* const stream = of.replication.replicating.get();
    const auto stands =
        options.names_stream && stream != nullptr ? stream->position() : std::nullopt;
    if (stands) {
        stream_fields_ = {{stream_database_aux, std::to_string(stands->database)},
                          {stream_id_aux, stands->id},
                          {stream_offset_aux, std::to_string(stands->offset)}};
    }
    // Before all keys, in pieces.
    byte_buffer made;
    if (options.has_libraries) {
        for (const std::string& each : scripting::library_codes(state_))
            put_library(made, options_.form, each);
    }
    for (std::string_view rest = made.text(); !rest.empty();) {
        const std::string_view piece = rest.substr(0, options_.piece_bytes);
        pieces_.emplace_back().append(piece);
        waiting_ += piece.size();
        rest.remove_prefix(piece.size());
    }
    // From here on keys are observed: nothing may fail.
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        part& its = parts_[i];
        its.of = this;
        its.database = i;
        keyspace* const keys = state_.data.keyspaces[i].get();
        if (keys == nullptr || keys->size() == 0 || !options.has_keys) continue;
        its.live = keys;
        its.keys = keys->size();
        its.expiring = keys->expiring();
        keys_ += its.keys;
        keys->set_keeper(&its);
    }
    state_.clients.slow_path |= slow_path::snapshot;
}

snapshot::~snapshot() {
    for (writing_entry* const each : {&current_, &ahead_}) let_go(*each);
    for (part& each : parts_) leave_part(each);
    for (const adopted_entry& each : adopted_) release_entry(state_.data.env, each.of);
}

void snapshot::end() {
    ended_ = true;
    stop_writing();
    slice_limit slice(nullptr, 0);
    if (clear_some(0, slice)) return;
    engine_state& home = state_;
    home.persistence.snapshot.reset();  // this
    home.note_obstacle_ended();
}

void snapshot::fail(const char* why) noexcept {
    fault_ = why;
    stop_writing();
    for (writing_entry* const each : {&current_, &ahead_}) {
        // Its changes are no longer observed.
        if (!each->is_owned) each->of = nullptr;
        each->pieces.clear();
    }
    pieces_.clear();
    waiting_ = 0;
}

void snapshot::stop_writing() noexcept {
    writing_ = false;
    state_.clients.slow_path &= static_cast<std::uint16_t>(~slow_path::snapshot);
    let_changes_go();
}

bool snapshot::holds_changes() noexcept {
    if (!is_crowded_ && waiting_ > options_.max_waiting / 2) {
        is_crowded_ = true;
        hold_ends_us_ = state_.data.env.steady_us + options_.longest_hold_us;
    }
    return is_crowded_ && writing_ && state_.data.env.steady_us < hold_ends_us_;
}

void snapshot::let_changes_go() noexcept {
    if (std::exchange(is_crowded_, false)) end_room_waits(state_);
}

bool snapshot::is_huge(const entry& e) const {
    if (e.held_as == encoding::external) return e.pointer<text_block>()->size > options_.huge_bytes;
    if (e.held_as < encoding::external || e.held_as == encoding::packed) return false;
    return elements_of(e) > options_.huge_elements ||
           bytes_of(state_.data.env, e) > options_.huge_bytes;
}

bool snapshot::part::takes_long(const entry& e, std::uint64_t hash) const noexcept {
    if (!of->writing_) return false;
    if (&e == of->ahead_.of) return true;
    if (&e != of->current_.of && (e.has(entry::in_snapshot) || at.passed(hash))) return false;
    // Beyond the limit the snapshot fails, for a huge value as for a small one.
    return of->waiting_ <= of->options_.max_waiting && of->is_huge(e);
}

void snapshot::part::prepare(entry& e) noexcept {
    if (&e == of->current_.of)
        of->current_is_awaited_ = true;
    else if (of->ahead_.of == nullptr)
        of->begin_ahead(e, database);
}

bool snapshot::part::lacks(const entry& e, std::uint64_t hash) const noexcept {
    if (!of->writing_) return false;
    if (&e == of->current_.of || &e == of->ahead_.of) return true;
    return !e.has(entry::in_snapshot) && !at.passed(hash);
}

void snapshot::part::before_change(entry& e, std::uint64_t hash) noexcept {
    if (!of->writing_) return;
    for (writing_entry* const each : {&of->current_, &of->ahead_})
        if (&e == each->of) return of->finish(*each);
    if (e.has(entry::in_snapshot) || at.passed(hash)) return;
    mark(e);
    of->write_now(e, database);
}

bool snapshot::part::removed(entry& e, std::uint64_t hash) noexcept {
    for (writing_entry* const each : {&of->current_, &of->ahead_})
        if (&e == each->of) return of->own(*each);
    if (!of->writing_ || e.has(entry::in_snapshot) || at.passed(hash)) return false;
    if (is_big(e) && of->adopted_.size() < max_adopted) {
        of->adopted_.push_back({&e, database, bytes_of(of->state_.data.env, e)});
        of->held_ += of->adopted_.back().bytes;
        return true;
    }
    of->write_now(e, database);
    return false;
}

void snapshot::part::added(entry& e, std::uint64_t hash) noexcept {
    if (of->writing_ && !at.passed(hash)) mark(e);
}

void snapshot::part::cleared(dictionary&& all) noexcept {
    live = nullptr;
    flushed.emplace(std::move(all));
    // Estimated by its share of the keys.
    std::size_t keys_of_all = flushed->size();
    for (const auto& each : of->state_.data.keyspaces) keys_of_all += each ? each->size() : 0;
    const std::size_t used = of->state_.data.env.memory.used_bytes();
    const std::size_t others = used - std::min(used, of->held_);
    held = static_cast<std::size_t>(static_cast<double>(others) *
                                    (static_cast<double>(flushed->size()) /
                                     static_cast<double>(std::max<std::size_t>(keys_of_all, 1))));
    of->held_ += held;
}

// The last piece of a queue, or a new one.
byte_buffer& snapshot::open_piece(std::deque<byte_buffer>& pieces) {
    if (pieces.empty() || pieces.back().size() >= options_.piece_bytes) {
        pieces.emplace_back();
    }
    return pieces.back();
}

// Writes a key that is about to change.
void snapshot::write_now(entry& e, std::size_t database) {
    if (waiting_ > options_.max_waiting) return fail(too_many_changes);
    try {
        if (pieces_.empty()) waiting_database_ = written_database_;
        byte_buffer* to = &open_piece(pieces_);
        std::size_t before = to->size();
        if (waiting_database_ != database) put_select(*to, options_.form, database);
        waiting_database_ = database;
        change_writer_.begin_key(e);
        for (bool whole = false; !whole; before = to->size()) {
            whole = change_writer_.write(*to, options_.piece_bytes);
            waiting_ += to->size() - before;
            if (!whole) to = &open_piece(pieces_);
        }
    } catch (const std::bad_alloc&) {
        fail(no_memory);
    }
}

// True if changes and the removal of the entry reach the snapshot: it belongs to the snapshot, or
// its database has the keeper.
bool snapshot::is_kept(const writing_entry& one) const noexcept {
    return one.is_owned || parts_[one.database].has_table();
}

// True if the walk may leave the part: all of its entries that are being written belong to the
// snapshot.
bool snapshot::may_leave(const part& its) const noexcept {
    return std::ranges::none_of(std::array{&current_, &ahead_}, [&](const writing_entry* each) {
        return each->of != nullptr && !each->is_owned && each->database == its.database;
    });
}

// True while the walk stays at the end of a database, or of all, until the value written ahead is
// complete.
bool snapshot::awaits_ahead() const noexcept {
    if (ahead_.of == nullptr) return false;
    return part_ == parts_.size() || (parts_[part_].is_over() && !may_leave(parts_[part_]));
}

// Writes a slice into memory; true when the value is complete.
bool snapshot::write_slice(writing_entry& one) {
    EDDY_ASSERT(is_kept(one));
    byte_buffer& to = open_piece(one.pieces);
    const std::size_t before = to.size();
    std::size_t parts = options_.slice_parts;
    const bool whole = one.writer.write(to, options_.piece_bytes, parts);
    waiting_ += to.size() - before;
    return whole;
}

// Completes a key that is being written and is about to change.
void snapshot::finish(writing_entry& one) {
    try {
        while (!write_slice(one)) {
        }
        end(one);
    } catch (const std::bad_alloc&) {
        fail(no_memory);
    }
}

bool snapshot::own(writing_entry& one) {
    one.bytes = bytes_of(state_.data.env, *one.of);
    held_ += one.bytes;
    return one.is_owned = true;
}

void snapshot::begin_ahead(entry& e, std::size_t database) noexcept {
    mark(e);
    ahead_.of = &e;
    ahead_.database = database;
    ahead_.writer.begin_key(e);
}

bool snapshot::write_ahead() {
    if (!writing_) return true;
    try {
        if (current_is_awaited_) {
            if (write_slice(current_)) end_current();
        } else if (ahead_.of != nullptr && write_slice(ahead_)) {
            end_ahead();
        }
    } catch (const std::bad_alloc&) {
        fail(no_memory);
        return true;
    }
    return std::exchange(written_ahead_, false);
}

void snapshot::begin_key(byte_buffer& out, entry& e, std::size_t database) {
    ++begun_keys_;
    if (written_database_ != database) file_.select(out, database);
    written_database_ = database;
    mark(e);
    current_.of = &e;
    current_.database = database;
    current_.writer.begin_key(e);
}

void snapshot::end(writing_entry& one) { return &one == &current_ ? end_current() : end_ahead(); }

// The value is complete. Its remaining pieces go before all others.
void snapshot::end_current() {
    if (!current_.pieces.empty() && pieces_.empty()) waiting_database_ = written_database_;
    for (; !current_.pieces.empty(); current_.pieces.pop_back())
        pieces_.push_front(std::move(current_.pieces.back()));
    written_ahead_ |= std::exchange(current_is_awaited_, false);
    let_go(current_);
}

void snapshot::end_ahead() {
    if (pieces_.empty()) waiting_database_ = written_database_;
    if (waiting_database_ != ahead_.database) {
        byte_buffer& to = open_piece(pieces_);
        const std::size_t before = to.size();
        put_select(to, options_.form, ahead_.database);
        waiting_ += to.size() - before;
    }
    waiting_database_ = ahead_.database;
    for (; !ahead_.pieces.empty(); ahead_.pieces.pop_front())
        pieces_.push_back(std::move(ahead_.pieces.front()));
    written_ahead_ = true;
    let_go(ahead_);
}

void snapshot::let_go(writing_entry& one) {
    entry* const written = std::exchange(one.of, nullptr);
    if (!std::exchange(one.is_owned, false)) return;
    held_ -= std::exchange(one.bytes, 0);
    release_entry(state_.data.env, written);
}

void snapshot::take_piece(std::deque<byte_buffer>& from, byte_buffer& out, std::size_t limit) {
    byte_buffer& first = from.front();
    const std::size_t now = std::min(first.size(), limit - out.size());
    file_.append(out, first.text().substr(0, now));
    first.consume(now);
    waiting_ -= now;
    if (first.empty()) from.pop_front();
    // Below the mark where they were held: otherwise each command that continues would hold all
    // others again.
    if (is_crowded_ && waiting_ <= options_.max_waiting / 8 * 3) let_changes_go();
}

void snapshot::take_waiting(byte_buffer& out, std::size_t limit) {
    take_piece(pieces_, out, limit);
    if (pieces_.empty()) written_database_ = waiting_database_;
}

void snapshot::leave_part(part& of) noexcept {
    EDDY_ASSERT(may_leave(of));
    if (of.live != nullptr) of.live->set_keeper(nullptr);
    of.live = nullptr;
    held_ -= std::exchange(of.held, 0);
    if (of.flushed) state_.data.env.discard(std::move(*of.flushed));
    of.flushed.reset();
}

// Clears the marks of the bucket at the cursor, releases a flushed database's entries, and
// advances.
void snapshot::leave_bucket(part& of) {
    for (const dictionary::slot each : found_) {
        entry* const e = dictionary::entry_of(each);
        unmark(*e);
        if (!of.flushed) continue;
        const std::size_t share = of.held / std::max<std::size_t>(of.flushed->size(), 1);
        of.held -= share;
        held_ -= share;
        const std::uint64_t hash = of.flushed->hash(e->key());
        of.flushed->erase(of.flushed->find(e->key(), hash), hash);
        if (e == ahead_.of)
            own(ahead_);
        else
            release_entry(state_.data.env, e);
    }
    of.at.advance();
    visited_ = false;
}

// Begins a key, or advances the walk; false at the end.
bool snapshot::advance(byte_buffer& out) {
    if (part_ == parts_.size()) return false;
    part& its = parts_[part_];
    if (its.is_over()) {
        leave_part(its);
        ++part_;
        return true;
    }
    const dictionary& table = its.flushed ? *its.flushed : its.live->table();
    if (!its.head_written) {
        its.head_written = true;
        file_.select(out, its.database, its.keys, its.expiring);
        written_database_ = its.database;
    }
    if (!visited_) {
        table.visit(its.at, found_);
        next_found_ = 0;
        visited_ = true;
    }
    while (next_found_ < found_.size()) {
        entry& e = *dictionary::entry_of(found_[next_found_++]);
        if (e.has(entry::in_snapshot)) continue;
        begin_key(out, e, its.database);
        return true;
    }
    leave_bucket(its);
    return true;
}

snapshot::status snapshot::step(byte_buffer& out, std::size_t limit) {
    if (!writing_) return fault_ == nullptr ? status::done : status::failed;
    try {
        if (!begun_) {
            file_.begin_file(out, at_s_, used_memory_, options_.aof_base);
            if (options_.stream_database >= 0) {
                file_.aux(out, stream_database_aux, std::to_string(options_.stream_database));
            }
            for (const auto& [name, value] : stream_fields_) file_.aux(out, name, value);
        }
        begun_ = true;
        // Entries found before may have been removed.
        visited_ = false;
        std::size_t parts = options_.slice_parts;
        for (std::size_t work = 0; work < slice_work && out.size() < limit; ++work) {
            if (current_.of != nullptr) {
                if (!current_.pieces.empty()) {
                    take_piece(current_.pieces, out, limit);
                    continue;
                }
                EDDY_ASSERT(is_kept(current_));
                const std::size_t before = out.size();
                const bool whole = current_.writer.write(out, limit, parts);
                file_.count(out, before);
                if (!whole) break;
                end_current();
            } else if (!pieces_.empty()) {
                take_waiting(out, limit);
            } else if (!adopted_.empty()) {
                const adopted_entry next = adopted_.front();
                begin_key(out, *next.of, next.database);
                current_.is_owned = true;
                current_.bytes = next.bytes;
                adopted_.pop_front();
            } else if (awaits_ahead()) {
                if (!write_slice(ahead_)) break;
                end_ahead();
            } else if (!advance(out)) {
                file_.end(out);
                stop_writing();
                return status::done;
            }
        }
        return status::writing;
    } catch (const std::bad_alloc&) {
        fail(no_memory);
        return status::failed;
    }
}

bool snapshot::clear_some(std::size_t buckets, slice_limit& slice) {
    for (writing_entry* const each : {&current_, &ahead_}) {
        let_go(*each);
        each->pieces.clear();
    }
    pieces_.clear();
    // The environment frees them in slices.
    for (; !adopted_.empty(); adopted_.pop_front()) {
        held_ -= adopted_.front().bytes;
        release_entry(state_.data.env, adopted_.front().of);
    }
    visited_ = false;
    while (part_ < parts_.size()) {
        part& its = parts_[part_];
        if (its.live == nullptr || its.at.at_end()) {
            leave_part(its);
            ++part_;
            continue;
        }
        if (buckets-- == 0 || slice.is_over_after(keyspace::bucket_weight)) return true;
        its.live->table().visit(its.at, found_);
        leave_bucket(its);
    }
    return false;
}

}  // namespace eddy::cache::rdb
