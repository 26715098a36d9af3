/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of stencils from C++ functions: what hanare/stencil.hpp makes of a lambda.  Header only,
 * C++20.
 *
 *     [=](const auto& u) { return a * u(0, 0, 0) + b * (u(-1, 0, 0) + u(1, 0, 0)); }
 *
 * The lambda has one parameter for each field that it reads, which gives cells next to the one that
 * is computed: u(dz, dy, dx), in two dimensions u(dy, dx); u.old() is the cell before its last
 * write (fields with two levels), u.place() where it is.  It returns the new value of the field
 * that it writes, or a std::tuple of several, then of what is reduced over all cells: sum(x),
 * max(x), min(x).
 *
 * It is run once with parameters that only note which cells are asked for, so that the radius need
 * not be given; offsets that depend on values of cells are not seen then: StageOptions::radius.
 *
 * The loops are meant for vectors: compile with -O3 and -march of the machine.  They are called by
 * several threads at once; the lambda must be const, and must not call functions of the library.
 */
#ifndef HANARE_STENCIL_KERNEL_HPP
#define HANARE_STENCIL_KERNEL_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "hanare/hanare.hpp"
#include "hanare/stencil.h"

/* No turn of the loop needs what another one has written.  Whether clang makes vectors of it, the
 * lambda decides: nothing to warn of. */
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#define HANARE_INDEPENDENT_TURNS _Pragma("clang loop vectorize(assume_safety)")
#else
#define HANARE_INDEPENDENT_TURNS _Pragma("GCC ivdep")
#endif
#define HANARE_INLINE inline __attribute__((always_inline))

namespace hanare {
inline namespace cpp {

/* What a lambda returns for a value that is reduced over all cells. */
template <typename T>
struct Sum {
    T value;
};
template <typename T>
struct Max {
    T value;
};
template <typename T>
struct Min {
    T value;
};

template <typename T>
constexpr Sum<T> sum(T value) noexcept {
    return {value};
}
template <typename T>
constexpr Max<T> max(T value) noexcept {
    return {value};
}
template <typename T>
constexpr Min<T> min(T value) noexcept {
    return {value};
}

/* Where a cell is, and the number of the step that is computed.  In two dimensions z is 0. */
struct Place {
    std::int64_t step;
    std::int64_t z;
    std::int64_t y;
    std::int64_t x;
};

namespace detail {

constexpr int kRadiusMax = 4;
constexpr std::size_t kFieldsMax = 16;
constexpr std::int64_t kTermsMax = 512;
constexpr std::int64_t kLanes = 8;

/* The cells of one field around one cell. */
template <typename T, unsigned D>
class Cells {
public:
    Cells() = default;
    HANARE_INLINE Cells(const hanare_stencil_box& box, std::size_t first, int radius, int written)
        : stride_(box.row_stride) {
        for (int offset = -kRadiusMax; offset <= kRadiusMax; ++offset) {
            const bool there = -radius <= offset && offset <= radius;
            planes_[static_cast<std::size_t>(kRadiusMax + offset)] =
                there ? static_cast<const T*>(
                            box.in[first + static_cast<std::size_t>(radius + offset)])
                      : nullptr;
        }
        before_ = written < 0 ? nullptr : static_cast<const T*>(box.out[written]);
        place_ = {box.step, box.z, box.y, box.x};
    }

    HANARE_INLINE void move_to(std::int64_t row, std::int64_t column) {
        row_ = row;
        column_ = column;
        at_ = row * stride_ + column;
    }

    HANARE_INLINE T operator()(int dz, int dy, int dx) const
        requires(D == 3)
    {
        return planes_[static_cast<std::size_t>(kRadiusMax + dz)][at_ + dy * stride_ + dx];
    }
    HANARE_INLINE T operator()(int dy, int dx) const
        requires(D == 2)
    {
        return planes_[static_cast<std::size_t>(kRadiusMax + dy)][at_ + dx];
    }
    HANARE_INLINE T old() const { return before_[at_]; }
    HANARE_INLINE Place place() const {
        return {place_.step, place_.z, place_.y + row_, place_.x + column_};
    }

private:
    std::array<const T*, 2 * kRadiusMax + 1> planes_{};
    const T* before_ = nullptr;
    std::int64_t stride_ = 0;
    std::int64_t row_ = 0;
    std::int64_t column_ = 0;
    std::int64_t at_ = 0;
    Place place_{};
};

/* Notes which cells are asked for. */
template <typename T, unsigned D>
class Recorder {
public:
    T operator()(int dz, int dy, int dx) const
        requires(D == 3)
    {
        return note({dz, dy, dx});
    }
    T operator()(int dy, int dx) const
        requires(D == 2)
    {
        return note({dy, dx});
    }
    T old() const {
        asks_old_ = true;
        return T(1);
    }
    Place place() const { return {}; }

    int radius() const {
        int found = 0;
        for (const auto& offsets : cells_) {
            for (const int offset : offsets) found = std::max(found, std::abs(offset));
        }
        return found;
    }
    bool asks_old() const { return asks_old_; }
    /* How many cells are read for `rows` cells below each other. */
    std::size_t reads_of(int rows) const {
        std::set<std::array<int, D>> found;
        for (int row = 0; row < rows; ++row) {
            for (auto offsets : cells_) {
                if constexpr (D == 3) offsets[1] += row;
                found.insert(offsets);
            }
        }
        return found.size();
    }

private:
    T note(const std::array<int, D>& offsets) const {
        cells_.insert(offsets);
        return T(1);
    }

    mutable std::set<std::array<int, D>> cells_;
    mutable bool asks_old_ = false;
};

template <typename Function, typename Argument, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
    return std::is_invocable_v<const Function&,
                               std::conditional_t<I == I, Argument&, Argument&>...>;
}

/* How many fields a function takes: the number of parameters with which it can be called. */
template <typename Function, typename Argument, std::size_t N = 1>
constexpr std::size_t arity() {
    static_assert(N <= kFieldsMax, "a stage's function takes 1 to 16 fields");
    if constexpr (N > kFieldsMax) {
        return 0;
    } else if constexpr (takes<Function, Argument>(std::make_index_sequence<N>{})) {
        return N;
    } else {
        return arity<Function, Argument, N + 1>();
    }
}

template <typename Result>
struct IsTuple : std::false_type {};
template <typename... Parts>
struct IsTuple<std::tuple<Parts...>> : std::true_type {};
template <typename First, typename Second>
struct IsTuple<std::pair<First, Second>> : std::true_type {};

template <typename Part>
struct Kind {
    static constexpr int value = -1;
};
template <typename T>
struct Kind<Sum<T>> {
    static constexpr int value = HANARE_REDUCTION_SUM;
};
template <typename T>
struct Kind<Max<T>> {
    static constexpr int value = HANARE_REDUCTION_MAX;
};
template <typename T>
struct Kind<Min<T>> {
    static constexpr int value = HANARE_REDUCTION_MIN;
};

template <typename Result>
HANARE_INLINE auto as_tuple(Result result) {
    if constexpr (IsTuple<Result>::value) {
        return result;
    } else {
        return std::tuple<Result>(result);
    }
}

template <typename Tuple, std::size_t... I>
constexpr std::size_t count_written(std::index_sequence<I...>) {
    return (std::size_t{0} + ... +
            (Kind<std::tuple_element_t<I, Tuple>>::value < 0 ? std::size_t{1} : std::size_t{0}));
}

inline double combined(int kind, double a, double b) {
    if (kind == HANARE_REDUCTION_SUM) return a + b;
    if (b != b) return b;
    return (kind == HANARE_REDUCTION_MAX ? b > a : b < a) ? b : a;
}

inline double neutral(int kind) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (kind == HANARE_REDUCTION_SUM) return 0;
    return kind == HANARE_REDUCTION_MAX ? -infinity : infinity;
}

typedef double Lanes __attribute__((vector_size(8 * sizeof(double))));

/* In one order, whatever a compiler makes of it: eight side by side, then these. */
template <int kind, typename T>
double folded(double value, const T* terms, std::int64_t count) {
    typedef T Terms __attribute__((vector_size(kLanes * sizeof(T))));
    Lanes sides;
    for (int lane = 0; lane < kLanes; ++lane) sides[lane] = neutral(kind);
    std::int64_t at = 0;
    for (; at + kLanes <= count; at += kLanes) {
        Terms given;
        std::memcpy(&given, terms + at, sizeof given);
        const Lanes next = __builtin_convertvector(given, Lanes);
        if constexpr (kind == HANARE_REDUCTION_SUM) {
            sides += next;
        } else if constexpr (kind == HANARE_REDUCTION_MAX) {
            sides = ((next > sides) | (next != next)) ? next : sides;
        } else {
            sides = ((next < sides) | (next != next)) ? next : sides;
        }
    }
    double lanes[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = sides[lane];
    for (std::int64_t lane = 0; at < count; ++at, ++lane) {
        lanes[lane] = combined(kind, lanes[lane], static_cast<double>(terms[at]));
    }
    for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
        for (std::int64_t lane = 0; lane < width; ++lane) {
            lanes[lane] = combined(kind, lanes[lane], lanes[lane + width]);
        }
    }
    return combined(kind, value, lanes[0]);
}

/* A function, and how the pointers of a box lie for it. */
template <typename T, unsigned D, typename Function>
class Kernel {
public:
    static constexpr std::size_t kReads = arity<Function, Recorder<T, D>>();
    template <std::size_t... I>
    static auto result_of(std::index_sequence<I...>)
        -> decltype(as_tuple(std::declval<const Function&>()(
            std::declval<std::conditional_t<I == I, Cells<T, D>, T>&>()...)));
    using Results = decltype(result_of(std::make_index_sequence<kReads>{}));
    static constexpr std::size_t kResults = std::tuple_size_v<Results>;
    static constexpr std::size_t kWrites =
        count_written<Results>(std::make_index_sequence<kResults>{});
    static constexpr std::size_t kReductions = kResults - kWrites;
    template <std::size_t I>
    static constexpr int kKind = Kind<std::tuple_element_t<I, Results>>::value;

    Kernel(Function given, const std::array<int, kReads>& radii,
           const std::array<int, kReads>& written, bool in_place)
        : function_(std::move(given)), radii_(radii), written_(written), in_place_(in_place) {}

    /* hanare_stencil_kernel; `kRows` rows at a time.  All is one function then, also what the
     * lambda calls: a call within a loop would keep it from being done by vectors. */
    template <int kRows>
    __attribute__((flatten)) static void call(const hanare_stencil_box* box) {
        const auto& kernel = *static_cast<const Kernel*>(box->user);
        if constexpr (kReductions > 0) {
            for (std::int64_t row = 0; row < box->rows; ++row) kernel.reduce_row(*box, row);
        } else {
            const std::int64_t together = box->rows & -std::int64_t{kRows};
            kernel.template do_span<kRows>(*box, {0, together}, 0, box->columns, nullptr);
            kernel.template do_span<1>(*box, {together, box->rows}, 0, box->columns, nullptr);
        }
    }

private:
    struct Rows {
        std::int64_t begin;
        std::int64_t end;
    };
    using Fields = std::array<Cells<T, D>, kReads>;

    HANARE_INLINE Fields fields_of(const hanare_stencil_box& box) const {
        Fields fields;
        std::size_t first = 0;
        for (std::size_t field = 0; field < kReads; ++field) {
            fields[field] = Cells<T, D>(box, first, radii_[field], written_[field]);
            first += 2 * static_cast<std::size_t>(radii_[field]) + 1;
        }
        return fields;
    }

    template <std::size_t... I>
    static HANARE_INLINE auto value_at(const Function& function, Fields& fields, std::int64_t row,
                                       std::int64_t column, std::index_sequence<I...>) {
        (fields[I].move_to(row, column), ...);
        return as_tuple(function(fields[I]...));
    }

    /* Columns `from` to `to` of some rows, kRows at a time: all is computed before any is stored.
     * `base` is the column of the first term. */
    template <int kRows>
    HANARE_INLINE void do_cells(const hanare_stencil_box& box, Rows rows, std::int64_t from,
                                std::int64_t to, std::int64_t base, T (*terms)[kTermsMax]) const {
        /* Copies, which nothing that is stored can change. */
        const Function function = function_;
        Fields fields = fields_of(box);
        std::array<T*, kWrites> out;
        for (std::size_t i = 0; i < kWrites; ++i) out[i] = static_cast<T*>(box.out[i]);
        const std::int64_t stride = box.row_stride;
        for (std::int64_t row = rows.begin; row < rows.end; row += kRows) {
            const std::int64_t at = row * stride;
            HANARE_INDEPENDENT_TURNS
            for (std::int64_t column = from; column < to; ++column) {
                constexpr auto reads = std::make_index_sequence<kReads>{};
                constexpr auto results = std::make_index_sequence<kResults>{};
                const Results first = value_at(function, fields, row, column, reads);
                if constexpr (kRows == 2) {
                    const Results second = value_at(function, fields, row + 1, column, reads);
                    store(first, out, at + column, terms, 0, results);
                    store(second, out, at + stride + column, terms, 0, results);
                } else {
                    store(first, out, at + column, terms, column - base, results);
                }
            }
        }
    }

    template <std::size_t... I>
    static HANARE_INLINE void store(const Results& results, const std::array<T*, kWrites>& out,
                                    std::int64_t at, T (*terms)[kTermsMax], std::int64_t term,
                                    std::index_sequence<I...>) {
        (store_one<I>(std::get<I>(results), out, at, terms, term), ...);
    }
    template <std::size_t I, typename Part>
    static HANARE_INLINE void store_one(const Part& part, const std::array<T*, kWrites>& out,
                                        std::int64_t at, T (*terms)[kTermsMax], std::int64_t term) {
        if constexpr (I < kWrites) {
            static_assert(kKind<I> < 0, "new values come before what is reduced");
            out[I][at] = static_cast<T>(part);
        } else {
            terms[I - kWrites][term] = static_cast<T>(part.value);
        }
    }

    /* Stores begin at multiples of a vector: what is before, and what is left, are vectors that
     * overlap with others, or single cells where a cell may not be computed twice.  Each for all
     * rows, so that what is set up for a loop is not set up for each row. */
    template <int kRows>
    HANARE_INLINE void do_span(const hanare_stencil_box& box, Rows rows, std::int64_t from,
                               std::int64_t to, T (*terms)[kTermsMax]) const {
        if (rows.begin >= rows.end) return;
        constexpr std::int64_t width = 64 / static_cast<std::int64_t>(sizeof(T));
        const std::int64_t count = to - from;
        const T* const out = static_cast<const T*>(box.out[0]) + rows.begin * box.row_stride + from;
        const auto address = reinterpret_cast<std::uintptr_t>(out) / sizeof(T);
        std::int64_t head = static_cast<std::int64_t>(0 - address) & (width - 1);
        if (in_place_ || count < 2 * width) {
            head = std::min(head, count);
            if (head > 0) do_cells<kRows>(box, rows, from, from + head, from, terms);
            do_cells<kRows>(box, rows, from + head, to, from, terms);
            return;
        }
        if (head > 0) do_cells<kRows>(box, rows, from, from + width, from, terms);
        const std::int64_t end = from + head + ((count - head) & -width);
        do_cells<kRows>(box, rows, from + head, end, from, terms);
        if (end < to) do_cells<kRows>(box, rows, to - width, to, from, terms);
    }

    void reduce_row(const hanare_stencil_box& box, std::int64_t row) const {
        T terms[kReductions == 0 ? 1 : kReductions][kTermsMax];
        for (std::int64_t from = 0; from < box.columns; from += kTermsMax) {
            const std::int64_t to = std::min(from + kTermsMax, box.columns);
            do_span<1>(box, {row, row + 1}, from, to, terms);
            fold(box, terms, to - from, std::make_index_sequence<kReductions>{});
        }
    }
    template <std::size_t... I>
    static void fold(const hanare_stencil_box& box, const T (*terms)[kTermsMax], std::int64_t count,
                     std::index_sequence<I...>) {
        ((box.reduction[I] = folded<kKind<kWrites + I>>(box.reduction[I], terms[I], count)), ...);
    }

    Function function_;
    std::array<int, kReads> radii_;
    std::array<int, kReads> written_;
    bool in_place_;
};

}  // namespace detail

/* What a stage's function reads, one name for each of its parameters, and writes, one for each
 * value that it returns.  Empty: the first field of the grid. */
struct StageOptions {
    std::vector<std::string> reads = {};
    std::vector<std::string> writes = {};
    /* Of all fields that are read; 0: what the function asks for. */
    std::uint32_t radius = 0;
};

/* A part of a step: sees what the stages before it have written. */
template <typename T, unsigned D = 3>
class Stage {
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, float>);
    static_assert(D == 2 || D == 3);

public:
    template <typename Function>
        requires(!std::is_same_v<std::remove_cvref_t<Function>, Stage>)
    Stage(Function function, StageOptions options = {})  // NOLINT: a lambda is a stage
        : reads_(std::move(options.reads)), writes_(std::move(options.writes)) {
        using Kernel = detail::Kernel<T, D, Function>;
        if (reads_.empty() && Kernel::kReads == 1) reads_ = {""};
        if (writes_.empty() && Kernel::kWrites == 1) writes_ = {reads_.empty() ? "" : reads_[0]};
        require(reads_.size() == Kernel::kReads, "reads", reads_.size(), Kernel::kReads);
        require(writes_.size() == Kernel::kWrites, "writes", writes_.size(), Kernel::kWrites);
        prepare<Kernel>(std::move(function), options.radius,
                        std::make_index_sequence<Kernel::kReads>{},
                        std::make_index_sequence<Kernel::kReductions>{});
    }

    hanare_stencil_kernel kernel() const noexcept { return kernel_; }
    const void* user() const noexcept { return data_.get(); }
    /* Names, "" for the grid's first field. */
    const std::vector<std::string>& reads() const noexcept { return reads_; }
    const std::vector<std::uint32_t>& radii() const noexcept { return radii_; }
    const std::vector<std::string>& writes() const noexcept { return writes_; }
    const std::vector<hanare_reduction>& reductions() const noexcept { return reductions_; }

private:
    static void require(bool holds, const char* what, std::size_t given, std::size_t wanted) {
        if (holds) return;
        throw Error(HANARE_STATUS_INVALID_ARGUMENT,
                    std::string(what) + ": " + std::to_string(given) +
                        " names are given, the stage's function has " + std::to_string(wanted));
    }

    int written(const std::string& name) const {
        const auto found = std::find(writes_.begin(), writes_.end(), name);
        return found == writes_.end() ? -1 : static_cast<int>(found - writes_.begin());
    }

    template <typename Kernel, typename Function, std::size_t... I, std::size_t... R>
    void prepare(Function function, std::uint32_t radius, std::index_sequence<I...>,
                 std::index_sequence<R...>) {
        std::array<detail::Recorder<T, D>, sizeof...(I)> recorders;
        (void)function(recorders[I]...);
        std::array<int, sizeof...(I)> radii{}, outputs{};
        bool in_place = false;
        std::size_t one = 0, two = 0;
        for (std::size_t field = 0; field < sizeof...(I); ++field) {
            const auto& seen = recorders[field];
            /* The level before is there only beside a radius above 0. */
            radii[field] =
                std::max({seen.radius(), static_cast<int>(radius), seen.asks_old() ? 1 : 0});
            outputs[field] = written(reads_[field]);
            if (radii[field] > detail::kRadiusMax) {
                throw Error(HANARE_STATUS_INVALID_ARGUMENT,
                            "the stage reads cells at a distance of " +
                                std::to_string(radii[field]) + "; at most 4 is possible");
            }
            if (seen.asks_old() && outputs[field] < 0) {
                throw Error(HANARE_STATUS_INVALID_ARGUMENT,
                            "old() is for fields that the stage writes");
            }
            in_place |= seen.asks_old() || (outputs[field] >= 0 && radii[field] == 0);
            one += seen.reads_of(1);
            two += seen.reads_of(2);
        }
        for (const int each : radii) radii_.push_back(static_cast<std::uint32_t>(each));
        reductions_ = {
            static_cast<hanare_reduction>(Kernel::template kKind<Kernel::kWrites + R>)...};
        /* Two rows at a time where that saves a fifth of all loads. */
        kernel_ =
            D == 3 && 10 * two <= 16 * one ? &Kernel::template call<2> : &Kernel::template call<1>;
        data_ = std::make_shared<const Kernel>(std::move(function), radii, outputs, in_place);
    }

    std::vector<std::string> reads_;
    std::vector<std::string> writes_;
    std::vector<std::uint32_t> radii_;
    std::vector<hanare_reduction> reductions_;
    hanare_stencil_kernel kernel_ = nullptr;
    std::shared_ptr<const void> data_;
};

}  // namespace cpp
}  // namespace hanare

#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#undef HANARE_INLINE
#undef HANARE_INDEPENDENT_TURNS

#endif
