// Header fields of an HTTP message, of whichever version.
#pragma once

#include <eddy/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http1 {

/// One field line. Both views point into the header_list that it came from.
struct header {
    /// As it was spelled.
    std::string_view name;
    /// Without surrounding white space in a parsed field.
    std::string_view value;
};

/// The fields of one message in their order, names as they were spelled; lookups ignore the case
/// of names. It owns its bytes. Views that it gave out end with the next call that changes it, but
/// may be that call's arguments.
/// Lookups are linear: a message has a handful of fields. One thread.
class header_list {
public:
    /// The most that names and values may take together, in bytes.
    static constexpr std::size_t size_limit = 1 << 20;

    /// Number of fields; several may have one name.
    std::size_t size() const noexcept { return entries_.size(); }
    /// True if there are no fields.
    bool empty() const noexcept { return entries_.empty(); }

    /// The field at a position below size().
    header operator[](std::size_t index) const noexcept {
        const entry& e = entries_[index];
        return {{text_.data() + e.name_at, e.name_size}, {text_.data() + e.value_at, e.value_size}};
    }

    /// Walks the fields in their order; ends with a change of the list.
    class iterator {
    public:
        /// At the field `index`, or size() for the end.
        iterator(const header_list& list, std::size_t index) noexcept
            : list_(&list), index_(index) {}
        /// The field.
        header operator*() const noexcept { return (*list_)[index_]; }
        /// Goes to the next field.
        iterator& operator++() noexcept {
            ++index_;
            return *this;
        }
        /// Compares iterators of one list.
        bool operator==(const iterator& other) const noexcept { return index_ == other.index_; }

    private:
        const header_list* list_;
        std::size_t index_;
    };
    /// The first field.
    iterator begin() const noexcept { return {*this, 0}; }
    /// Behind the last one.
    iterator end() const noexcept { return {*this, size()}; }

    /// The value of the first field of that name.
    std::optional<std::string_view> find(std::string_view name) const noexcept;
    /// True if there is a field of that name.
    bool contains(std::string_view name) const noexcept { return find(name).has_value(); }

    /// True if `token` is an item of the comma-separated values of all fields of that name, case
    /// ignored: contains_token("connection", "upgrade").
    bool contains_token(std::string_view name, std::string_view token) const noexcept;

    /// Appends a field. errc::malformed when the name is no token or the value holds CR, LF, NUL or
    /// another control byte than tab; errc::limit_reached beyond size_limit. Copies both.
    [[nodiscard]] result<> add(std::string_view name, std::string_view value);

    /// Replaces every field of that name by one at the end. Errors as of add(), which leave the
    /// list as it was.
    [[nodiscard]] result<> set(std::string_view name, std::string_view value);

    /// Removes every field of that name and says how many there were.
    std::size_t remove(std::string_view name) noexcept;

    /// Empties the list and keeps its memory.
    void clear() noexcept {
        text_.clear();
        entries_.clear();
    }

private:
    friend class message_parser;
    friend struct head_scan;
    friend void remove_hop_by_hop(header_list& from) noexcept;
    // Offsets into text_, where a name comes before its value; other bytes may lie between.
    struct entry {
        std::uint32_t name_at;
        std::uint32_t name_size;
        std::uint32_t value_at;
        std::uint32_t value_size;
    };
    bool has_room(std::string_view name, std::string_view value) const noexcept;
    std::size_t erase_entries(std::string_view name) noexcept;
    void compact() noexcept;
    void append_valid(std::string_view name, std::string_view value);
    void assign_valid(std::string_view text, const entry* entries, std::size_t count);

    std::string text_;
    std::vector<entry> entries_;
};

/// True if the texts are equal without regard to the case of ASCII letters.
bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

/// True for a token of RFC 9110 (5.6.2): a method or a field name.
bool is_token(std::string_view text) noexcept;

/// True if the text may be a field's value: no control byte other than tab.
bool is_field_value(std::string_view text) noexcept;

/// "Not Found" for 404; "Unknown" for a status that has no common name.
std::string_view reason_phrase(int status) noexcept;

}  // namespace eddy::http1
