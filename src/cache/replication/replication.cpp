// The stream, its replicas, and timeouts.
#include "cache/replication/replication.hpp"

#include <eddy/base/assert.hpp>

#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/waits.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace eddy::cache {
namespace {

constexpr std::int64_t second_us = 1'000'000;
constexpr std::string_view ping_text = "*1\r\n$4\r\nPING\r\n";
constexpr std::string_view ask_text = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";
/// Kept capacity of the writer's buffer after the bytes were copied.
constexpr std::size_t kept_written = 64 * 1024;
/// At most so many bytes of keepalives wait for a silent replica.
constexpr std::size_t max_head = 256;

const std::string no_id(40, '0');

bool takes_feed(const replica& of) noexcept {
    using enum replica::stage;
    return of.now == copying || of.now == copied || of.now == online;
}

}  // namespace

replication::replication(engine_state& of)
    : state_(of),
      id_(of.replication.run_id),
      second_id_(no_id),
      alone_since_us_(of.data.env.steady_us),
      pinged_us_(of.data.env.steady_us) {}

replication::~replication() {
    if (listens_) remove_sink(state_, *this);
}

replication& replication::of(engine_state& s) {
    if (s.replication.replicating == nullptr)
        s.replication.replicating = std::make_unique<replication>(s);
    return *s.replication.replicating;
}

replication* replication::find(engine& home) noexcept {
    return home.internals().replication.replicating.get();
}

// --- The stream -------------------------------------------------------------------------------

void replication::take_new_id() {
    // In place, as it must work without memory.
    write_run_id(id_, state_.data.env.random);
    second_id_ = no_id;
    second_offset_ = -1;
}

void replication::activate() {
    if (!active_ && !is_replica()) take_new_id();
    active_ = true;
    note_mode();
}

std::optional<stream_position> replication::position() const {
    if (state_.persistence.propagating != nullptr &&
        state_.persistence.propagating->has_undelivered())
        return std::nullopt;
    if (is_replica()) {
        if (!resumable_ || is_loading()) return std::nullopt;
        return stream_position{id_, feed_.end(), stream_database};
    }
    if (!active_) return std::nullopt;
    return stream_position{id_, feed_.end(), static_cast<std::uint8_t>(writer_.database())};
}

void replication::restore(const stream_position& saved, bool follows) {
    EDDY_ASSERT(saved.id.size() == run_id_size);
    if (active_ || is_replica()) return;
    if (follows) {
        id_ = saved.id;
        stream_database = saved.database;
    } else {
        take_new_id();
        second_id_ = saved.id;
        second_offset_ = static_cast<std::int64_t>(saved.offset) + 1;
    }
    feed_.restart(saved.offset);
    alone_since_us_ = state_.data.env.steady_us;
    active_ = true;
    note_mode();
}

void replication::deactivate() {
    active_ = false;
    feed_.restart(feed_.end());
    take_new_id();
    note_mode();
}

// The hooks' undelivered values are copied: the keys will be another server's.
void replication::keep_hooked_values() noexcept {
    if (state_.hooked == nullptr) return;
    try {
        state_.hooked->keep_values();
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): large values are lost
    }
}

// Updates the source of the stream, and the flags of the slow path.
void replication::note_mode() {
    const bool listens = active_ && !is_replica();
    if (listens != listens_) listens ? add_sink(state_, *this) : remove_sink(state_, *this);
    listens_ = listens;
    const auto set = [this](std::uint8_t bit, bool on) {
        state_.clients.slow_path = static_cast<std::uint16_t>(on ? state_.clients.slow_path | bit
                                                                 : state_.clients.slow_path & ~bit);
    };
    if (is_replica() && (state_.clients.slow_path & slow_path::replica) == 0) keep_hooked_values();
    set(slow_path::replica, is_replica());
    if (!is_replica()) expirations_.clear();
    state_.note_observers();
    state_.data.env.expired = fate_of_expired(state_);
}

void replication::changed(std::span<const change> unit) noexcept {
    try {
        writer_.write(written_, unit, true);
        feed(written_.text());
        written_.clear();
        if (written_.capacity() > kept_written) written_ = byte_buffer();
    } catch (const std::bad_alloc&) {
        written_ = byte_buffer();
        missed();
    }
}

/// A gap in the stream: all replicas resynchronise.
void replication::missed() noexcept {
    disconnect_replicas();
    feed_.restart(feed_.end());
    take_new_id();
}

void replication::feed(std::string_view commands) {
    if (!active_ || is_replica()) return;
    feed_.append(commands);
    appended();
    if (state_.clients.executing != nullptr) state_.clients.executing->written_offset = feed_.end();
}

void replication::feed_from_master(std::string_view bytes) {
    feed_.append(bytes);
    appended();
}

void replication::appended() {
    check_limits();
    forget_old();
    for (replica* const each : replicas_) {
        if (each->now == replica::stage::online) each->who.feed_grew();
    }
}

void replication::forget_old() noexcept {
    std::uint64_t keep =
        feed_.end() -
        std::min<std::uint64_t>(feed_.end(), state_.settings.options.replication.backlog_size);
    for (const replica* const each : replicas_) {
        if (takes_feed(*each)) keep = std::min(keep, each->next);
    }
    feed_.forget_before(keep);
}

void replication::check_limits() {
    const auto which = static_cast<std::size_t>(client_class::replica);
    const output_limit limit = state_.settings.options.clients.output[which];
    const std::size_t hard = std::min(
        limit.hard == 0 ? state_.settings.options.clients.max_outbox
                        : std::max(limit.hard, state_.settings.options.replication.backlog_size),
        state_.settings.options.clients.max_outbox);
    const std::vector<replica*> all = replicas_.size() > 1 ? replicas_ : std::vector<replica*>();
    const auto check = [&](replica& each) {
        if (!takes_feed(each) || each.who.closing) return;
        const std::uint64_t waiting = feed_.end() - each.next;
        bool over = waiting > hard;
        if (limit.soft == 0 || waiting < limit.soft) {
            each.over_since_us = 0;
        } else if (each.over_since_us == 0) {
            each.over_since_us = state_.data.env.steady_us;
        } else {
            over |= state_.data.env.steady_us - each.over_since_us > limit.soft_seconds * second_us;
        }
        if (!over) return;
        ++state_.data.env.counters.output_closed;
        kill(state_, each.who);
        // Its backlog is released before its connection has ended.
        std::erase(replicas_, &each);
        leave(each);
    };
    if (replicas_.size() == 1) return check(*replicas_.front());
    for (replica* const each : all) check(*each);
}

// --- Master -----------------------------------------------------------------------------------

replica* replication::introduce(client_session& who) {
    session_extras& extras = extras_of(who);
    if (extras.as_replica == nullptr) extras.as_replica = std::make_shared<replica>(who);
    return extras.as_replica.get();
}

replica* replication::find(client_session& who) noexcept {
    return who.extras == nullptr ? nullptr : who.extras->as_replica.get();
}

void replication::forget(client_session& who) {
    replica* const gone = find(who);
    if (gone == nullptr) return;
    const bool was_active = std::erase(replicas_, gone) > 0;
    const std::shared_ptr<full_copy> copy = std::move(gone->copy);
    who.extras->as_replica.reset();
    if (replicas_.empty()) alone_since_us_ = state_.data.env.steady_us;
    if (was_active) forget_old();
    if (copy != nullptr) drop_sent(*copy);
    if (host != nullptr) host->replicas_advanced();
}

// It is no longer a replica, though its connection is still open.
void replication::leave(replica& of) {
    of.now = replica::stage::introduced;
    const std::shared_ptr<full_copy> copy = std::exchange(of.copy, nullptr);
    if (copy != nullptr) drop_sent(*copy);
    if (host != nullptr) host->replicas_advanced();
}

bool replication::can_continue(std::string_view id, std::uint64_t from) const noexcept {
    // Some clients send the ID in upper case, which redis-server accepts.
    const auto is = [id](std::string_view own) { return id == own || is_word(id, own); };
    const bool is_own = is(id_);
    const bool is_second =
        is(second_id_) && second_offset_ >= 0 && from < static_cast<std::uint64_t>(second_offset_);
    return active_ && (is_own || is_second) && feed_.has(from);
}

void replication::go_on(replica& with, std::uint64_t from) {
    with.now = replica::stage::online;
    with.next = with.acked = from;
    with.confirmed = false;
    with.acked_us = with.progress_us = state_.data.env.steady_us;
    with.who.special |= client_session::replica;
    replicas_.push_back(&with);
    writer_.forget();
    ++continued;
    if (host != nullptr) host->copy_wanted();
}

void replication::wait_for_copy(replica& with) {
    activate();
    const bool is_first = std::ranges::none_of(
        replicas_, [](const replica* each) { return each->now == replica::stage::waiting; });
    if (is_first) waiting_since_us_ = state_.data.env.steady_us;
    with.now = replica::stage::waiting;
    with.acked_us = with.progress_us = state_.data.env.steady_us;
    with.who.special |= client_session::replica;
    replicas_.push_back(&with);
    ++full_copies;
    if (host != nullptr) host->copy_wanted();
}

void replication::disconnect_replicas() {
    const std::vector<replica*> all = std::exchange(replicas_, {});
    for (replica* const each : all) {
        leave(*each);
        kill(state_, each->who);
    }
    alone_since_us_ = state_.data.env.steady_us;
}

bool replication::copy_is_due() const noexcept {
    if (is_loading() || (is_replica() && link_ != link_state::connected)) return false;
    if (is_failing_over()) return false;
    const bool anyone = std::ranges::any_of(replicas_, [](const replica* each) {
        return each->now == replica::stage::waiting && !each->who.closing;
    });
    if (!anyone) return false;
    const replication_options& options = state_.settings.options.replication;
    const auto waiting = std::ranges::count_if(
        replicas_, [](const replica* each) { return each->now == replica::stage::waiting; });
    if (options.enough_for_copy > 0 && waiting >= options.enough_for_copy) return true;
    return state_.data.env.steady_us - waiting_since_us_ >= options.sync_delay_s * second_us;
}

std::shared_ptr<full_copy> replication::begin_copy() {
    auto made = std::make_shared<full_copy>();
    // Without expiring fields the forms are the same.
    const field_clock* const fields = state_.data.env.fields.get();
    const bool has_fields = fields != nullptr && fields->size() != 0;
    const auto gets_valkeys_form = [has_fields](const replica* each) {
        return has_fields && each->takes_valkeys_form();
    };
    // Replicas that request the same content in the same form as the first one.
    const replica* first = nullptr;
    const auto takes_part = [&first, &gets_valkeys_form](const replica* each) {
        return each->now == replica::stage::waiting &&
               (first == nullptr || (each->content == first->content &&
                                     gets_valkeys_form(each) == gets_valkeys_form(first)));
    };
    for (const replica* const each : replicas_) {
        if (!takes_part(each)) continue;
        if (first == nullptr) first = each;
        made->is_sized |= !each->takes_eof;
    }
    EDDY_ASSERT(first != nullptr);
    made->content = first->content;
    made->has_valkeys_form = gets_valkeys_form(first);
    if (!made->is_sized) {
        made->end_mark = make_run_id(state_.data.env.random);
        EDDY_ASSERT(made->end_mark.size() == run_id_size);
    }
    try {
        for (replica* const each : replicas_) {
            if (!takes_part(each)) continue;
            std::string head;
            if (!each->plain)
                head = "+FULLRESYNC " + id_ + ' ' + std::to_string(feed_.end()) + "\r\n";
            if (!made->is_sized) head += "$EOF:" + made->end_mark + "\r\n";
            each->head += head;
            // In case of bad_alloc nothing of it has happened.
            each->now = replica::stage::copying;
            each->copy = made;
            each->next_piece = 0;
            each->next = feed_.end();
            each->progress_us = state_.data.env.steady_us;
            each->who.feed_grew();
        }
    } catch (...) {
        give_up(*made);
        throw;
    }
    // A new replica needs a SELECT first.
    writer_.forget();
    return made;
}

std::vector<std::shared_ptr<full_copy>> replication::part_copy(const full_copy& whole) {
    std::vector<std::shared_ptr<full_copy>> parts(takers(whole));
    for (std::shared_ptr<full_copy>& each : parts) {
        each = std::make_shared<full_copy>();
        each->content = whole.content;
        each->has_valkeys_form = whole.has_valkeys_form;
        each->is_sized = whole.is_sized;
    }
    auto next = parts.begin();
    for (replica* const each : replicas_)
        if (each->copy.get() == &whole) each->copy = *next++;
    return parts;
}

void replication::announce_size(const full_copy& of, std::uint64_t bytes) {
    const std::string head = '$' + std::to_string(bytes) + "\r\n";
    for (replica* const each : replicas_) {
        if (each->copy.get() != &of) continue;
        each->head += head;
        each->progress_us = state_.data.env.steady_us;
        each->who.feed_grew();
    }
}

void replication::add_piece(full_copy& to, byte_buffer&& bytes, bool is_last) {
    if (is_last) bytes.append(std::string_view(to.end_mark));
    to.pieces.push_back(std::make_shared<const byte_buffer>(std::move(bytes)));
    to.complete |= is_last;
    for (replica* const each : replicas_) {
        if (each->copy.get() == &to) each->who.feed_grew();
    }
}

std::size_t replication::takers(const full_copy& of) const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        replicas_, [&of](const replica* each) { return each->copy.get() == &of; }));
}

void replication::give_up(const full_copy& copy) {
    // Closed replicas may leave the list at once.
    for (std::size_t i = replicas_.size(); i > 0; --i) {
        if (i > replicas_.size()) continue;
        replica& each = *replicas_[i - 1];
        if (each.copy.get() == &copy) kill(state_, each.who);
    }
}

replication::output replication::next_output(replica& of) {
    if (!of.head.empty()) {
        auto head = std::make_shared<const std::string>(std::exchange(of.head, {}));
        return {head, *head, output::part::head};
    }
    if (of.now == replica::stage::copying && of.copy != nullptr) {
        const std::uint64_t index = of.next_piece - of.copy->first;
        if (index >= of.copy->pieces.size()) return {};
        const auto& piece = of.copy->pieces[index];
        return {piece, piece->text(), output::part::copy};
    }
    if (of.now == replica::stage::online && feed_.has(of.next)) {
        replication_feed::piece next = feed_.at(of.next);
        return {std::move(next.kept), next.text, output::part::feed};
    }
    return {};
}

void replication::note_sent(replica& of, const output& sent) {
    of.progress_us = state_.data.env.steady_us;
    if (sent.from == output::part::feed) {
        of.next += sent.text.size();
        return;
    }
    if (sent.from != output::part::copy || of.copy == nullptr) return;
    const std::shared_ptr<full_copy> held = of.copy;
    full_copy& copy = *held;
    ++of.next_piece;
    if (copy.complete && of.next_piece == copy.first + copy.pieces.size()) {
        // A replica that knew the size before knows the stream's begin, and may not acknowledge the
        // copy.
        of.now = copy.is_sized ? replica::stage::online : replica::stage::copied;
        of.acked_us = state_.data.env.steady_us;
        of.copy.reset();
        if (copy.is_sized) of.who.feed_grew();
    }
    drop_sent(copy);
}

void replication::drop_sent(full_copy& copy) {
    std::uint64_t slowest = UINT64_MAX;
    for (const replica* const each : replicas_) {
        if (each->copy.get() == &copy) slowest = std::min(slowest, each->next_piece);
    }
    while (!copy.pieces.empty() && copy.first < slowest) {
        copy.pieces.pop_front();
        ++copy.first;
    }
    if (host != nullptr) host->copy_wanted();
}

void replication::acknowledge(replica& of, std::uint64_t offset, std::uint64_t synced) {
    of.acked_us = state_.data.env.steady_us;
    if (of.now == replica::stage::copied) {
        of.now = replica::stage::online;
        of.who.feed_grew();
    }
    if (of.now != replica::stage::online) return;
    of.confirmed = true;
    // It cannot have bytes that were not sent to it.
    of.acked = std::max(of.acked, std::min(offset, of.next));
    of.synced = std::max(of.synced, std::min(synced, of.next));
    serve_waits();
    if (host == nullptr) return;
    host->replicas_advanced();
    if (is_failing_over()) host->link_changed();
}

std::size_t replication::replicas_with(std::uint64_t offset) const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(replicas_, [offset](const replica* each) {
        return each->now == replica::stage::online && each->acked >= offset;
    }));
}

std::size_t replication::disks_with(std::uint64_t offset) const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(replicas_, [offset](const replica* each) {
        return each->now == replica::stage::online && each->synced >= offset;
    }));
}

std::size_t replication::good_replicas() const noexcept {
    const std::int64_t most_us =
        state_.settings.options.replication.min_replicas_max_lag_s * second_us;
    return static_cast<std::size_t>(std::ranges::count_if(replicas_, [&](const replica* each) {
        return each->now == replica::stage::online &&
               state_.data.env.steady_us - each->acked_us <= most_us;
    }));
}

bool replication::awaits_replicas() const noexcept {
    return is_failing_over() || holds_writes(state_, write_hold::shutdown);
}

std::size_t replication::late_replicas() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(replicas_, [&](const replica* each) {
        return each->now == replica::stage::online && !each->plain && each->acked < feed_.end();
    }));
}

// --- WAIT -------------------------------------------------------------------------------------

bool replication::lacks_own_disk(const awaited_copies& wanted) const noexcept {
    return wanted.own_disk && !state_.settings.options.append.enabled;
}

replication::copies replication::count(std::uint64_t offset,
                                       const awaited_copies& wanted) const noexcept {
    const append_log* const log = state_.persistence.appending.get();
    copies have{};
    have.replicas = wanted.on_disks ? disks_with(offset) : replicas_with(offset);
    have.own_disk = log != nullptr && log->has_on_disk(wanted.log_position);
    have.are_enough = have.replicas >= wanted.replicas && (have.own_disk || !wanted.own_disk);
    return have;
}

namespace {

void reply_copies(resp::reply_writer& to, bool on_disks, bool own_disk, std::size_t replicas) {
    if (on_disks) {
        to.array(2);
        to.integer(own_disk ? 1 : 0);
    }
    to.integer(static_cast<std::int64_t>(replicas));
}

}  // namespace

bool replication::has_copies(call& c, const awaited_copies& wanted) const {
    const copies have = count(c.client.written_offset, wanted);
    if (!have.are_enough && !c.in_exec) return false;
    reply_copies(c.reply, wanted.on_disks, have.own_disk, have.replicas);
    return true;
}

void replication::wait_for_copies(call& c, const awaited_copies& wanted, std::int64_t deadline_us) {
    session_extras& extras = extras_of(c.client);
    extras.waits_for = wait_kind::replicas;
    extras.awaited = wanted;
    extras.deadline_us = deadline_us;
    state_.clients.copy_waits.push_back(&c.client);
    c.client.blocked = true;
    ++state_.clients.blocked_sessions;
    if (wanted.replicas == 0 || awaits_replicas()) return;
    // Otherwise replicas acknowledge once a second.
    const std::uint64_t written = c.client.written_offset;
    ask_for_acknowledgements();
    c.client.written_offset = written;
}

void replication::ask_for_acknowledgements() { feed(ask_text); }

void replication::answer(client_session& who, const copies& have) {
    session_extras& extras = *who.extras;
    const bool is_quiet =
        (who.special & (client_session::reply_off | client_session::reply_skip)) != 0;
    who.special &= static_cast<std::uint16_t>(~client_session::reply_skip);
    if (!is_quiet) {
        resp::reply_writer reply(extras.outbox, who.protocol);
        if (lacks_own_disk(extras.awaited)) {
            reply.error(no_own_disk_text);
            state_.count_error(no_own_disk_text);
        } else {
            reply_copies(reply, extras.awaited.on_disks, have.own_disk, have.replicas);
        }
    }
    forget_wait(state_, who);
    who.wake();
}

void replication::serve_waits() {
    for (std::size_t i = 0; i < state_.clients.copy_waits.size();) {
        client_session& who = *state_.clients.copy_waits[i];
        const awaited_copies& wanted = who.extras->awaited;
        const copies have = count(who.written_offset, wanted);
        if (have.are_enough || lacks_own_disk(wanted))
            answer(who, have);  // removes it from the list
        else
            ++i;
    }
}

void replication::end_wait(client_session& who) {
    answer(who, count(who.written_offset, who.extras->awaited));
}

// --- From time to time ------------------------------------------------------------------------

void replication::tick() {
    const replication_options& options = state_.settings.options.replication;
    const std::int64_t now_us = state_.data.env.steady_us;
    const std::vector<replica*> all = replicas_;
    for (replica* const each : all) {
        using enum replica::stage;
        if (each->who.closing) continue;
        const std::int64_t silent_since_us =
            each->now == online && !each->plain ? each->acked_us : each->progress_us;
        const bool waits_for_us =
            each->now == waiting || (each->now == online && each->plain) ||
            (each->now == copying && each->copy != nullptr && each->head.empty() &&
             each->next_piece == each->copy->first + each->copy->pieces.size());
        if (!waits_for_us && now_us - silent_since_us > options.timeout_s * second_us) {
            kill(state_, each->who);
        }
    }
    check_limits();
    if (now_us - kept_alive_us_ >= second_us) {
        kept_alive_us_ = now_us;
        for (replica* const each : replicas_) {
            const bool waits_for_size = each->copy != nullptr && each->copy->is_sized &&
                                        each->copy->pieces.empty() && each->next_piece == 0;
            const bool waits = each->now == replica::stage::waiting || waits_for_size;
            if (!waits || each->head.size() > max_head) continue;
            each->head += '\n';
            each->who.feed_grew();
        }
    }
    if (now_us - pinged_us_ >= options.ping_period_s * second_us) {
        pinged_us_ = now_us;
        if (!replicas_.empty() && !awaits_replicas()) feed(ping_text);
    }
    const bool is_alone = active_ && replicas_.empty() && !is_replica();
    if (is_alone && options.backlog_ttl_s != 0 &&
        now_us - alone_since_us_ > options.backlog_ttl_s * second_us) {
        deactivate();
    }
    note_expiring_fields();
    advance_failover();
    if (host != nullptr && copy_is_due()) host->copy_wanted();
}

}  // namespace eddy::cache
