// Writing of database after database, some buckets at a time.
#include "cache/rdb/save.hpp"

#include "cache/engine/engine_state.hpp"
#include "cache/engine/version.hpp"
#include "cache/rdb/crc64.hpp"
#include "cache/script/scripting.hpp"
#include "cache/types/timed_fields.hpp"

#include <cstdio>
#include <string>

namespace eddy::cache::rdb {
namespace {

// Entries that are prefetched together before they are written.
constexpr std::size_t fetched_together = 64;

}  // namespace

void put_select(byte_buffer& out, file_form form, std::size_t database) {
    form == file_form::commands ? put_select_command(out, database) : put_select(out, database);
}

void put_library(byte_buffer& out, file_form form, std::string_view code) {
    form == file_form::commands ? put_load_command(out, code) : put_library(out, code);
}

file_writer::file_writer(environment& env, file_form form) noexcept
    : form_(form),
      key_(env, form),
      has_expiring_fields_(env.fields != nullptr && env.fields->size() != 0) {}

void file_writer::count(const byte_buffer& out, std::size_t before) noexcept {
    if (form_ != file_form::commands) sum_ = crc64(sum_, out.text().substr(before));
}

void file_writer::header(byte_buffer& out) {
    const std::size_t before = out.size();
    char magic[16];
    if (has_expiring_fields_ && form_ == file_form::valkey_rdb)
        std::snprintf(magic, sizeof magic, "VALKEY%03u", written_version_of_valkey);
    else
        std::snprintf(
            magic, sizeof magic, "REDIS%04u",
            has_expiring_fields_ ? written_version_with_expiring_fields : written_version);
    out.append(std::string_view(magic));
    count(out, before);
}

void file_writer::begin_file(byte_buffer& out, std::int64_t at_s, std::size_t used_memory,
                             bool aof_base) {
    if (form_ == file_form::commands) return;
    header(out);
    aux(out, "redis-ver", file_version);
    aux(out, "redis-bits", "64");
    aux(out, "ctime", std::to_string(at_s));
    aux(out, "used-mem", std::to_string(used_memory));
    aux(out, "aof-base", aof_base ? "1" : "0");
}

void file_writer::aux(byte_buffer& out, std::string_view name, std::string_view value) {
    if (form_ == file_form::commands) return;
    const std::size_t before = out.size();
    out.append(static_cast<char>(opcode::aux));
    put_text(out, name);
    put_text(out, value);
    count(out, before);
}

void file_writer::library(byte_buffer& out, std::string_view code) {
    const std::size_t before = out.size();
    put_library(out, form_, code);
    count(out, before);
}

void file_writer::select(byte_buffer& out, std::size_t database, std::size_t keys,
                         std::size_t expiring) {
    select(out, database);
    if (form_ == file_form::commands) return;
    const std::size_t before = out.size();
    out.append(static_cast<char>(opcode::sizes));
    put_length(out, keys);
    put_length(out, expiring);
    count(out, before);
}

void file_writer::select(byte_buffer& out, std::size_t database) {
    const std::size_t before = out.size();
    put_select(out, form_, database);
    count(out, before);
}

void file_writer::append(byte_buffer& out, std::string_view made) {
    out.append(made);
    if (form_ != file_form::commands) sum_ = crc64(sum_, made);
}

bool file_writer::write(byte_buffer& out, std::size_t limit) {
    const std::size_t before = out.size();
    const bool done = key_.write(out, limit);
    count(out, before);
    return done;
}

void file_writer::end(byte_buffer& out) {
    if (form_ == file_form::commands) return;
    const std::size_t before = out.size();
    out.append(static_cast<char>(opcode::end));
    count(out, before);
    put_little(out, sum_, checksum_bytes);
}

saver::saver(engine_state& from, file_form form) : state_(from), file_(state_.data.env, form) {}

void saver::begin(byte_buffer& out) {
    begun_ = true;
    file_.begin_file(out, state_.data.env.now_us / 1'000'000, state_.data.env.memory.used_bytes(),
                     false);
    for (const std::string& each : scripting::library_codes(state_)) file_.library(out, each);
}

// The next key is begun, or something else is written; false at the end.
bool saver::advance(byte_buffer& out) {
    if (visited_ < found_.size()) {
        file_.begin(*dictionary::entry_of(found_[visited_++]));
        return true;
    }
    if (database_ == engine_databases) return false;
    const keyspace* const from = state_.data.keyspaces[database_].get();
    if (from == nullptr || from->size() == 0 || at_end_) {
        ++database_;
        in_database_ = at_end_ = false;
        cursor_ = 0;
        return true;
    }
    if (!in_database_) {
        file_.select(out, database_, from->size(), from->expiring());
        in_database_ = true;
    }
    found_.clear();
    visited_ = 0;
    do cursor_ = from->table().scan(cursor_, found_);
    while (cursor_ != 0 && found_.size() < fetched_together);
    at_end_ = cursor_ == 0;
    for (const dictionary::slot each : found_) __builtin_prefetch(dictionary::entry_of(each));
    return true;
}

bool saver::next(byte_buffer& out, std::size_t limit) {
    if (ended_) return false;
    if (!begun_) begin(out);
    while (file_.write(out, limit)) {
        if (out.size() >= limit) return true;
        if (advance(out)) continue;
        file_.end(out);
        ended_ = true;
        return false;
    }
    return true;
}

}  // namespace eddy::cache::rdb
