// Chunks of chat completions.
#include "runtime/stream/sources/completion_reader.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/json.hpp>

#include "runtime/stream/answer.hpp"
#include "runtime/stream/sources/provider_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace eddy::runtime::stream {
namespace {

using value = nlohmann::ordered_json;

/// Members of a chunk's delta with the model's reasoning, by the names that APIs have for it.
constexpr std::array reasoning_members = {"reasoning_content", "reasoning", "reasoning_details"};
/// Members with calls of tools; the second one is the older API's.
constexpr std::array tool_members = {"tool_calls", "function_call"};

/// Name under which the first half of a character in a choice's content is kept.
std::string content_name(std::uint32_t index) { return fmt::format("{}/content", index); }

/// A member with content: not null, and no empty text or list.
const value* find(const value& in, const char* name) {
    const auto found = in.find(name);
    if (found == in.end() || found->is_null()) return nullptr;
    if (found->is_string() && found->get_ref<const std::string&>().empty()) return nullptr;
    return found->is_structured() && found->empty() ? nullptr : &*found;
}

/// Members of an object that have content; an empty object for none.
template <std::size_t N>
value members_of(const value& in, const std::array<const char*, N>& names) {
    value found = value::object();
    for (const char* const name : names)
        if (const value* const its = find(in, name)) found[name] = *its;
    return found;
}

std::uint32_t index_of(const value& in) {
    const auto found = in.find("index");
    if (found == in.end() || !found->is_number_unsigned()) return 0;
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(found->get<std::uint64_t>(), UINT32_MAX));
}

/// Text of a content: a text, or a list of parts of which some are texts.
std::string text_of(const value& content) {
    if (content.is_string()) return content.get<std::string>();
    std::string text;
    if (!content.is_array()) return text;
    for (const value& part : content) {
        if (!part.is_object()) continue;
        const value* const its = find(part, "text");
        if (its != nullptr && its->is_string()) text += its->get_ref<const std::string&>();
    }
    return text;
}

std::string dumped(const value& what) {
    return what.dump(-1, ' ', false, value::error_handler_t::replace);
}

/// An event of the data as it came, but for bytes that are no text.
std::string chunk_event(std::string_view data) {
    byte_buffer out;
    sse::write_data(out, valid_utf8(data));
    return std::string(out.text());
}

bool is_blank(std::string_view text) noexcept {
    return text.find_first_not_of(" \t\n") == std::string_view::npos;
}

}  // namespace

completion_reader::step completion_reader::take(const sse::event& from) {
    events_.clear();
    if (from.data.starts_with("[DONE]")) return step::done;
    if (is_blank(from.data)) return step::pieces;
    const json_excess excess = excess_of(from.data, {.depth = max_depth, .members = max_members});
    if (excess != json_excess::none) {
        detail_ = excess == json_excess::depth
                      ? fmt::format("an event of it nests deeper than {} levels", max_depth)
                      : fmt::format("an event of it has more than {} members", max_members);
        return step::malformed;
    }
    const marked_text marked = mark_halves(from.data);
    value chunk = value::parse(marked.text.empty() ? from.data : marked.text, nullptr, false);
    if (chunk.is_discarded()) {
        detail_ = "an event of it is no JSON: " + from.data;
        return step::malformed;
    }
    const bool is_object = chunk.is_object();
    const value* const error = is_object ? find_error(chunk) : nullptr;
    if (error != nullptr || from.type == "error") {
        detail_ = without_marks(error_text(chunk));
        return step::error;
    }
    if (!is_object) return step::pieces;
    const auto choices = chunk.find("choices");
    const bool has_choices = choices != chunk.end() && choices->is_array();
    const value* const usage = find(chunk, "usage");
    if (wanted_ == completion_events::chunks && (has_choices || usage != nullptr))
        events_.push_back(chunk_event(from.data));
    if (has_choices)
        for (value& each : *choices) read_choice(each, marked.has_marks);
    if (usage != nullptr) add_members("usage", value::object({{"usage", *usage}}), 0);
    return step::pieces;
}

void completion_reader::read_choice(value& from, bool has_marks) {
    if (!from.is_object()) return;
    const std::uint32_t index = index_of(from);
    const auto delta = from.find("delta");
    if (delta != from.end() && delta->is_object() && wanted_ != completion_events::chunks) {
        if (has_marks || joiner_.has_halves()) {
            std::string name = fmt::format("{}", index);
            join_all(*delta, name, has_marks);
        }
        read_delta(*delta, index);
    }
    const value* const reason = find(from, "finish_reason");
    note_choice(index, reason != nullptr);
    if (reason != nullptr)
        add_members("finish_reason", value::object({{"finish_reason", *reason}}), index);
}

void completion_reader::read_delta(value& delta, std::uint32_t index) {
    if (const value reasoning = members_of(delta, reasoning_members); !reasoning.empty())
        add_members("reasoning", reasoning, index);
    if (const value* const content = find(delta, "content")) add_content(text_of(*content), index);
    if (const value* const refused = find(delta, "refusal"))
        add_members("refusal", value::object({{"refusal", *refused}}), index);
    if (const value calls = members_of(delta, tool_members); !calls.empty())
        add_members("tool_calls", calls, index);
}

/// Joins all texts below a value with their pieces before. `name` is the value's path; elements of
/// lists that have an index, such as calls of tools, are named by it. It recurses as deep as chunks
/// nest.
void completion_reader::join_all(value& in, std::string& name, bool has_marks) {
    if (in.is_string()) {
        in = joiner_.join(name, in.get_ref<const std::string&>(), has_marks);
        return;
    }
    const std::size_t size = name.size();
    std::size_t position = 0;
    for (auto each = in.begin(); in.is_structured() && each != in.end(); ++each, ++position) {
        name += '/';
        if (in.is_object())
            name += each.key();
        else
            name += std::to_string(each->is_object() && each->contains("index") ? index_of(*each)
                                                                                : position);
        join_all(*each, name, has_marks);
        name.resize(size);
    }
}

void completion_reader::note_choice(std::uint32_t index, bool is_finished) {
    EDDY_ASSERT(choices_.size() <= max_choices);
    const auto known = std::ranges::find(choices_, index, &choice::index);
    if (known != choices_.end())
        known->is_finished |= is_finished;
    else if (choices_.size() < max_choices)
        choices_.push_back({index, is_finished});
}

void completion_reader::add_content(std::string_view text, std::uint32_t index) {
    if (text.empty()) return;
    events_.push_back(content_event(text, index));
}

void completion_reader::add_members(std::string_view name, const value& members,
                                    std::uint32_t index) {
    EDDY_ASSERT(members.is_object() && !members.empty());
    if (wanted_ != completion_events::pieces) return;
    value data = members;
    if (index > 0) data["index"] = index;
    events_.push_back(fmt::format("event: {}\ndata: {}\n\n", name, dumped(data)));
}

bool completion_reader::is_finished() const noexcept {
    return !choices_.empty() && std::ranges::all_of(choices_, &choice::is_finished);
}

void completion_reader::end() {
    events_.clear();
    if (!joiner_.has_halves()) return;
    for (const choice& each : choices_)
        if (joiner_.take_half(content_name(each.index))) add_content("\uFFFD", each.index);
}

}  // namespace eddy::runtime::stream
