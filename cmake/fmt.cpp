// {fmt} 9 compiled once, for all files that format: what its headers define, and the templates that
// they declare as instantiated elsewhere.
#include <fmt/format-inl.h>

namespace fmt::inline v9::detail {

template std::locale locale_ref::get<std::locale>() const;
template char decimal_point_impl<char>(locale_ref);
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal<float>(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal<double>(double) noexcept;

}  // namespace fmt::inline v9::detail
