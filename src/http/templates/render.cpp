// Rendering of compiled templates: names in their contexts, sections, partials, and lines of tags
// alone.
#include "http/html.hpp"
#include "http/templates/compiled.hpp"

#include <utility>

namespace eddy::http {
namespace {

bool is_blank(std::string_view text) noexcept {
    return text.find_first_not_of(" \t") == std::string_view::npos;
}

class renderer {
public:
    renderer(const template_finder& find, const template_options& limits) noexcept
        : find_(find), limits_(limits) {}

    std::expected<std::string, std::string> render(const template_nodes& page,
                                                   const template_data& data) {
        contexts_.push_back(&data);
        if (!render_all(page)) return std::unexpected(std::move(error_));
        end_line();
        return std::move(page_);
    }

private:
    using kind = template_node::kind;

    bool fail(std::string why) {
        error_ = std::move(why);
        return false;
    }

    bool render_all(const template_nodes& nodes) {
        for (const template_node& each : nodes) {
            if (!render_one(each)) return false;
            if (page_.size() > limits_.page_bytes)
                return fail("the page has more than " + std::to_string(limits_.page_bytes) +
                            " bytes");
        }
        return true;
    }

    bool render_one(const template_node& node) {
        switch (node.what) {
            case kind::text: append_text(node.text); return true;
            case kind::comment: has_tag_ = true; return true;
            case kind::escaped:
            case kind::raw: append_value(node); return true;
            case kind::partial: return render_partial(node);
            case kind::section:
            case kind::inverted: break;
        }
        has_tag_ = true;
        const template_data* const value = find(node.text);
        const bool is_true = value != nullptr && value->is_true();
        bool good = true;
        if (node.what == kind::inverted) {
            if (!is_true) good = render_all(node.children);
        } else if (is_true) {
            good = render_section(node, *value);
        }
        has_tag_ = true;
        return good;
    }

    bool render_section(const template_node& node, const template_data& value) {
        const template_data::list* const all = value.values();
        if (all == nullptr) return render_within(node, value);
        for (const template_data& each : *all)
            if (!render_within(node, each)) return false;
        return true;
    }

    bool render_within(const template_node& node, const template_data& value) {
        has_tag_ = true;
        contexts_.push_back(&value);
        const bool good = render_all(node.children);
        contexts_.pop_back();
        return good;
    }

    bool render_partial(const template_node& node) {
        const template_nodes* const partial = find_(node.text);
        if (partial == nullptr) return fail("there is no partial \"" + node.text + "\"");
        if (depth_ == limits_.partial_depth)
            return fail("more than " + std::to_string(limits_.partial_depth) +
                        " partials are within each other, the last one \"" + node.text + "\"");
        ++depth_;
        has_tag_ = true;
        const bool good = render_all(*partial);
        has_tag_ = true;
        --depth_;
        return good;
    }

    void append_value(const template_node& node) {
        const template_data* const value = find(node.text);
        const std::string* const text = value != nullptr ? value->text() : nullptr;
        if (text == nullptr) return;
        if (node.what == kind::raw)
            page_ += *text;
        else
            append_escaped_html(page_, *text);
    }

    /// Appends a text of the template. A line of tags alone, other than values, yields no line.
    void append_text(std::string_view text) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) {
            page_ += text;
            return;
        }
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        page_ += line;
        if (!end_line()) page_ += text.substr(line.size(), end + 1 - line.size());
        page_ += text.substr(end + 1);
        line_at_ = page_.size() - (text.size() - text.rfind('\n') - 1);
        has_tag_ = false;
    }

    /// True if the line that ends is one of tags alone, which is dropped.
    bool end_line() {
        if (!has_tag_ || !is_blank(std::string_view(page_).substr(line_at_))) return false;
        page_.resize(line_at_);
        return true;
    }

    const template_data* find(std::string_view name) const noexcept {
        if (name == ".") return contexts_.back();
        const std::size_t dot = name.find('.');
        const std::string_view first = name.substr(0, dot);
        for (auto at = contexts_.rbegin(); at != contexts_.rend(); ++at) {
            const template_data* const found = (*at)->member(first);
            if (found == nullptr) continue;
            return dot == std::string_view::npos ? found : member_of(found, name.substr(dot + 1));
        }
        return nullptr;
    }

    /// The rest of a name with dots is looked up within what its first part stands for.
    static const template_data* member_of(const template_data* of, std::string_view rest) noexcept {
        while (of != nullptr) {
            const std::size_t dot = rest.find('.');
            of = of->member(rest.substr(0, dot));
            if (dot == std::string_view::npos) return of;
            rest.remove_prefix(dot + 1);
        }
        return nullptr;
    }

    const template_finder& find_;
    const template_options& limits_;
    std::vector<const template_data*> contexts_;
    std::string page_;
    std::string error_;
    std::size_t line_at_ = 0;  // of page_, where the line began
    std::size_t depth_ = 0;    // of partials
    bool has_tag_ = false;     // the line has a tag that is no value
};

}  // namespace

std::expected<std::string, std::string> render_template(const template_nodes& page,
                                                        const template_data& data,
                                                        const template_finder& find,
                                                        const template_options& limits) {
    return renderer(find, limits).render(page, data);
}

}  // namespace eddy::http
