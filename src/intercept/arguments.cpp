// SPDX-License-Identifier: Apache-2.0
//
// Makes the table of arguments.def when it is compiled and checks what a reader could overlook, so
// that a mistyped row is an error of the compiler.  The table is read-only data: nothing runs at
// start, and what is called in a system call's place may read it.
#include "intercept/arguments.hpp"

#include <sys/syscall.h>

namespace hanare::intercept {

namespace {

// ---- The words of arguments.def

enum class Flag : uint8_t { kConsumes, kMayBlock };
constexpr Flag kConsumes = Flag::kConsumes;
constexpr Flag kMayBlock = Flag::kMayBlock;

struct Result {
    uint16_t unit;
};
consteval Result result(uint16_t unit) { return {unit}; }

consteval ArgumentSize fixed(uint16_t bytes) { return {ArgumentSize::Kind::kFixed, 0, bytes}; }
consteval ArgumentSize count(uint8_t argument, uint16_t unit) {
    return {ArgumentSize::Kind::kCounted, argument, unit};
}
consteval ArgumentSize bytes(uint8_t argument, uint16_t extra = 0) {
    return {ArgumentSize::Kind::kCounted, argument, 1, extra};
}
consteval ArgumentSize bits(uint8_t argument) { return {ArgumentSize::Kind::kBits, argument, 1}; }
consteval ArgumentSize pages(uint8_t argument) { return {ArgumentSize::Kind::kPages, argument, 1}; }
consteval ArgumentSize length_at(uint8_t argument, uint16_t extra = 0) {
    return {ArgumentSize::Kind::kLengthAt, argument, 1, extra};
}
consteval ArgumentSize of_int(ArgumentSize size) {
    size.is_int = true;
    return size;
}
consteval ArgumentSize int_bytes(uint8_t argument) { return of_int(bytes(argument)); }
consteval ArgumentSize int_count(uint8_t argument, uint16_t unit) {
    return of_int(count(argument, unit));
}
consteval ArgumentSize int_bits(uint8_t argument) { return of_int(bits(argument)); }
constexpr ArgumentSize ioctl_size = {ArgumentSize::Kind::kIoctl, 1, 512};

constexpr ArgumentSize kInt = fixed(4);
constexpr ArgumentSize kLong = fixed(8);
constexpr ArgumentSize kTimespec = fixed(16);
constexpr ArgumentSize kTimeval = fixed(16);
constexpr ArgumentSize kInterval = fixed(32);  // itimerval, itimerspec
constexpr ArgumentSize kStat = fixed(144);
constexpr ArgumentSize kStatfs = fixed(120);
constexpr ArgumentSize kRusage = fixed(144);
constexpr ArgumentSize kSiginfo = fixed(128);

consteval Argument make(uint8_t index, ArgumentKind kind, ArgumentSize size, Result told = {0}) {
    return {.index = index, .kind = kind, .size = size, .result_unit = told.unit};
}
consteval Argument text(uint8_t index) { return make(index, ArgumentKind::kText, {}); }
consteval Argument texts(uint8_t index) { return make(index, ArgumentKind::kTexts, {}); }
consteval Argument word(uint8_t index) { return make(index, ArgumentKind::kWord, kInt); }
consteval Argument in(uint8_t index, ArgumentSize size) {
    return make(index, ArgumentKind::kIn, size);
}
consteval Argument out(uint8_t index, ArgumentSize size, Result told = {0}) {
    return make(index, ArgumentKind::kOut, size, told);
}
consteval Argument inout(uint8_t index, ArgumentSize size) {
    return make(index, ArgumentKind::kInOut, size);
}
// sizeof(iovec) is 16, sizeof(mmsghdr) 64.  A number of iovec is a long in the manual pages, of
// which the kernel drops the upper half.
consteval Argument vector_in(uint8_t index, uint8_t counter) {
    return make(index, ArgumentKind::kVectorIn, int_count(counter, 16));
}
consteval Argument vector_out(uint8_t index, uint8_t counter) {
    return make(index, ArgumentKind::kVectorOut, int_count(counter, 16));
}
consteval Argument message_in(uint8_t index) { return make(index, ArgumentKind::kMessageIn, {}); }
consteval Argument message_out(uint8_t index) { return make(index, ArgumentKind::kMessageOut, {}); }
consteval Argument messages_in(uint8_t index, uint8_t counter) {
    return make(index, ArgumentKind::kMessagesIn, int_count(counter, 64));
}
consteval Argument messages_out(uint8_t index, uint8_t counter) {
    return make(index, ArgumentKind::kMessagesOut, int_count(counter, 64));
}

consteval Argument nested(Argument argument) {
    argument.holds_addresses = true;
    return argument;
}
consteval Argument kept(Argument argument) {
    argument.kept = true;
    return argument;
}
consteval Argument perhaps(Argument argument) {
    argument.uncertain = true;
    return argument;
}

// ---- Rows

consteval void add(SystemCallArguments& row, Flag flag) {
    (flag == kConsumes ? row.consumes : row.may_block) = true;
}
// A seventh one is an error of the compiler.
consteval void add(SystemCallArguments& row, const Argument& argument) {
    row.arguments[row.count++] = argument;
}

template <typename... Parts>
consteval SystemCallArguments make_row(uint16_t number, Parts... parts) {
    SystemCallArguments row = {.number = number, .known = true};
    (add(row, parts), ...);
    return row;
}

// A list of pairs; the second one tells which macro a row was written with.
struct Row {
    SystemCallArguments call;
    bool has_pointers;
};

constexpr Row kRows[] = {
#define CALL(name, ...) {make_row(SYS_##name, __VA_ARGS__), true},
#define CALL_NUMBER(number, name, ...) {make_row(number, __VA_ARGS__), true},
#define NO_POINTERS(name, ...) {make_row(SYS_##name __VA_OPT__(, ) __VA_ARGS__), false},
#define NO_POINTERS_NUMBER(number, name) {make_row(number), false},
#include "intercept/arguments.def"
#undef CALL
#undef CALL_NUMBER
#undef NO_POINTERS
#undef NO_POINTERS_NUMBER
};

struct Table {
    SystemCallArguments calls[kSystemCallsMax];
};

consteval Table make_table() {
    Table table = {};
    for (const Row& row : kRows) table.calls[row.call.number] = row.call;
    return table;
}

// ---- Checks

consteval bool numbers_fit_and_differ() {
    bool seen[kSystemCallsMax] = {};
    for (const Row& row : kRows) {
        if (row.call.number >= kSystemCallsMax || seen[row.call.number]) return false;
        seen[row.call.number] = true;
    }
    return true;
}

consteval bool pointers_are_where_the_macro_says() {
    for (const Row& row : kRows) {
        if ((row.call.count != 0) != row.has_pointers) return false;
        if (row.call.consumes && row.call.count == 0) return false;
    }
    return true;
}

consteval bool indices_are_arguments_and_differ() {
    for (const Row& row : kRows) {
        unsigned seen = 0;
        for (const Argument& argument : row.call.pointers()) {
            if (argument.index >= SystemCallArguments::kMax) return false;
            if (argument.size.argument >= SystemCallArguments::kMax) return false;
            if ((seen >> argument.index & 1) != 0) return false;
            seen |= 1U << argument.index;
        }
    }
    return true;
}

consteval bool tells_its_own_size(ArgumentKind kind) {
    return kind == ArgumentKind::kText || kind == ArgumentKind::kTexts ||
           kind == ArgumentKind::kMessageIn || kind == ArgumentKind::kMessageOut;
}

// A counter that is itself an address is a mistake, but for a length in memory.
consteval bool is_pointer(const SystemCallArguments& call, uint8_t index) {
    for (const Argument& argument : call.pointers())
        if (argument.index == index && !argument.uncertain) return true;
    return false;
}

consteval bool size_is_sound(const SystemCallArguments& call, const Argument& argument) {
    const ArgumentSize& size = argument.size;
    if (tells_its_own_size(argument.kind) != (size.kind == ArgumentSize::Kind::kNone)) return false;
    if (argument.result_unit != 0 && argument.kind != ArgumentKind::kOut) return false;
    switch (size.kind) {
        case ArgumentSize::Kind::kNone: return true;
        case ArgumentSize::Kind::kFixed: return size.unit != 0 && size.extra == 0;
        case ArgumentSize::Kind::kLengthAt: return is_pointer(call, size.argument);
        case ArgumentSize::Kind::kIoctl: return call.number == SYS_ioctl;
        default: return size.unit != 0 && !is_pointer(call, size.argument);
    }
}

consteval bool sizes_are_sound() {
    for (const Row& row : kRows)
        for (const Argument& argument : row.call.pointers())
            if (!size_is_sound(row.call, argument)) return false;
    return true;
}

static_assert(numbers_fit_and_differ());
static_assert(pointers_are_where_the_macro_says());
static_assert(indices_are_arguments_and_differ());
static_assert(sizes_are_sound());

constexpr Table kTable = make_table();
constexpr SystemCallArguments kUnknown = {};

}  // namespace

const SystemCallArguments& arguments_of(uint64_t number) noexcept {
    const auto in_table = static_cast<uint32_t>(number);
    return in_table < kSystemCallsMax ? kTable.calls[in_table] : kUnknown;
}

}  // namespace hanare::intercept
