// SPDX-License-Identifier: Apache-2.0
#include "hook/rewrite/instruction.hpp"

#include <cstring>

#include "hook/rewrite/opcode_shapes.hpp"

namespace hanare::hook {

namespace {

using namespace opcodes;
using Kind = Instruction::Kind;

struct Reader {
    std::span<const uint8_t> code;
    size_t at = 0;
    bool failed = false;

    uint8_t next() noexcept {
        if (at >= code.size() || at >= kInstructionBytesMax) {
            failed = true;
            return 0;
        }
        return code[at++];
    }
    void skip(size_t bytes) noexcept {
        at += bytes;
        if (at > code.size() || at > kInstructionBytesMax) failed = true;
    }
};

struct Prefixes {
    bool operand_size = false;  // 66
    bool address_size = false;  // 67
    uint8_t rex = 0;            // 0: none
    bool wide() const noexcept { return (rex & 8) != 0; }
};

enum class Map : uint8_t { kOneByte, kTwoBytes, k38, k3a, kVector };

struct Opcode {
    Map map = Map::kOneByte;
    uint8_t byte = 0;
    Shape shape = kBad;
    // The extensions that make ModRM's fields four bits wide (1: the register is 8 and above).
    bool extends_register = false;
    bool extends_base = false;
};

Prefixes read_prefixes(Reader& reader, uint8_t& opcode) noexcept {
    Prefixes prefixes;
    for (;;) {
        opcode = reader.next();
        if (reader.failed) return prefixes;
        if ((opcode & 0xf0) == 0x40) {
            prefixes.rex = opcode;
            continue;  // without effect unless the opcode follows
        }
        switch (opcode) {
            case 0x66: prefixes.operand_size = true; break;
            case 0x67: prefixes.address_size = true; break;
            case 0x26:
            case 0x2e:
            case 0x36:
            case 0x3e:
            case 0x64:
            case 0x65:
            case 0xf0:
            case 0xf2:
            case 0xf3: break;
            default: return prefixes;
        }
        prefixes.rex = 0;
    }
}

bool has_immediate(unsigned map, uint8_t opcode) noexcept {
    if (map == 3) return true;
    return map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
                        (opcode >= 0xc4 && opcode <= 0xc6));
}

Opcode read_vex(Reader& reader, bool long_form) noexcept {
    Opcode opcode{.map = Map::kVector};
    const uint8_t first = reader.next();
    unsigned map = 1;
    opcode.extends_register = (first & 0x80) == 0;
    if (long_form) {
        opcode.extends_base = (first & 0x20) == 0;
        map = first & 0x1f;
        reader.next();
    }
    opcode.byte = reader.next();
    if (map < 1 || map > 3) return opcode;
    if (map == 1 && opcode.byte == 0x77) {
        opcode.shape = kNone;
    } else {
        opcode.shape = has_immediate(map, opcode.byte) ? kMI8 : kM;
    }
    return opcode;
}

Opcode read_evex(Reader& reader) noexcept {
    Opcode opcode{.map = Map::kVector};
    const uint8_t first = reader.next();
    const uint8_t second = reader.next();
    reader.next();
    opcode.byte = reader.next();
    opcode.extends_register = (first & 0x80) == 0;
    opcode.extends_base = (first & 0x20) == 0;
    const unsigned map = first & 7;
    if ((second & 4) == 0 || map == 0 || map == 4 || map == 7) return opcode;
    opcode.shape = has_immediate(map, opcode.byte) ? kMI8 : kM;
    return opcode;
}

Opcode read_opcode(Reader& reader, uint8_t first, const Prefixes& prefixes) noexcept {
    if (first == 0xc4 || first == 0xc5) return read_vex(reader, first == 0xc4);
    if (first == 0x62) return read_evex(reader);
    Opcode opcode{.byte = first};
    if (first == 0x0f) {
        opcode.map = Map::kTwoBytes;
        opcode.byte = reader.next();
        opcode.shape = static_cast<Shape>(kSecondary[opcode.byte]);
        if (opcode.byte == 0x38 || opcode.byte == 0x3a) {
            const bool with_immediate = opcode.byte == 0x3a;
            opcode.map = with_immediate ? Map::k3a : Map::k38;
            opcode.shape = with_immediate ? kMI8 : kM;
            opcode.byte = reader.next();
        }
    } else {
        opcode.shape = static_cast<Shape>(kPrimary[first]);
    }
    opcode.extends_register = (prefixes.rex & 4) != 0;
    opcode.extends_base = (prefixes.rex & 1) != 0;
    return opcode;
}

struct ModRm {
    uint8_t mode = 0;
    uint8_t field = 0;  // the register, or the opcode's extension
    uint8_t base = 0;
};

ModRm read_modrm(Reader& reader, Instruction& instruction) noexcept {
    const uint8_t byte = reader.next();
    const ModRm modrm{.mode = static_cast<uint8_t>(byte >> 6),
                      .field = static_cast<uint8_t>((byte >> 3) & 7),
                      .base = static_cast<uint8_t>(byte & 7)};
    if (modrm.mode == 3) return modrm;
    uint8_t base = modrm.base;
    const bool indexed = base == 4;
    if (indexed) base = reader.next() & 7;
    if (modrm.mode == 1) {
        reader.skip(1);
    } else if (modrm.mode == 2 || base == 5) {
        if (modrm.mode == 0 && !indexed) instruction.relative_at = static_cast<uint8_t>(reader.at);
        reader.skip(4);
    }
    return modrm;
}

void skip_immediate(Reader& reader, const Prefixes& prefixes, const Opcode& opcode,
                    const ModRm& modrm) noexcept {
    const size_t z_bytes = prefixes.operand_size && !prefixes.wide() ? 2 : 4;
    switch (opcode.shape) {
        case kBad:
        case kNone:
        case kM: return;
        case kI8:
        case kRel8:
        case kMI8: return reader.skip(1);
        case kI16: return reader.skip(2);
        case kI24: return reader.skip(3);
        case kIz:
        case kMIz: return reader.skip(z_bytes);
        case kIv: return reader.skip(prefixes.wide() ? 8 : z_bytes);
        case kMoffs: return reader.skip(prefixes.address_size ? 4 : 8);
        case kRel32: return reader.skip(4);
        case kMTest8: return reader.skip(modrm.field < 2 ? 1 : 0);
        case kMTestz: return reader.skip(modrm.field < 2 ? z_bytes : 0);
    }
}

// Jumps, calls and what else leaves the straight line.
void classify_primary(Instruction& instruction, uint8_t opcode, const ModRm& modrm) noexcept {
    const auto set = [&](Kind kind, bool goes_on) {
        instruction.kind = kind;
        instruction.goes_on = goes_on;
    };
    switch (opcode) {
        case 0xc2:
        case 0xc3:
        case 0xca:
        case 0xcb:
        case 0xcf:
        case 0xf4: return set(Kind::kReturn, false);
        case 0xcc:
        case 0xcd:
        case 0xf1: return set(Kind::kOther, true);
        case 0xe8: return set(Kind::kCall, true);
        case 0xe9:
        case 0xeb: return set(Kind::kJump, false);
        case 0xe0:
        case 0xe1:
        case 0xe2:
        case 0xe3: return set(Kind::kJump, true);
        case 0xff:
            if (modrm.field == 2 || modrm.field == 3) return set(Kind::kIndirect, true);
            if (modrm.field == 4 || modrm.field == 5) return set(Kind::kIndirect, false);
            return;
        case 0xc7:
            if (modrm.mode == 3 && modrm.field == 7) set(Kind::kJump, true);  // xbegin
            return;
        default:
            if (opcode >= 0x70 && opcode <= 0x7f) set(Kind::kJump, true);
    }
}

void classify_secondary(Instruction& instruction, uint8_t opcode) noexcept {
    if (opcode == 0x05) {
        instruction.kind = Kind::kSystemCall;
    } else if (opcode >= 0x80 && opcode <= 0x8f) {
        instruction.kind = Kind::kJump;
    } else if (opcode == 0x0b || opcode == 0xb9 || opcode == 0xff) {  // ud2, ud1, ud0
        instruction.kind = Kind::kReturn;
        instruction.goes_on = false;
    } else if (opcode == 0x07 || opcode == 0x34 || opcode == 0x35) {
        instruction.kind = Kind::kOther;
    }
}

bool uses_stack_pointer(const Opcode& opcode, const ModRm& modrm) noexcept {
    if (opcode.map == Map::kVector) return false;  // vector registers, masks
    if (opcode.map == Map::kOneByte) {
        const uint8_t byte = opcode.byte;
        if ((byte >= 0x50 && byte <= 0x5f) || byte == 0x68 || byte == 0x6a || byte == 0x8f ||
            byte == 0x9c || byte == 0x9d || byte == 0xc8 || byte == 0xc9) {
            return true;
        }
        if (byte == 0xff && modrm.field == 6) return true;
        if ((byte & 0xf8) == 0xb8 || (byte & 0xf8) == 0x90) {
            return (byte & 7) == 4 && !opcode.extends_base;
        }
    }
    if (opcode.shape < kM) return false;
    return (modrm.field == 4 && !opcode.extends_register) ||
           (modrm.mode == 3 && modrm.base == 4 && !opcode.extends_base);
}

// The distance of a jump or call lies in the last bytes.
int64_t target_of(std::span<const uint8_t> code, size_t bytes, bool is_short) noexcept {
    if (is_short) return static_cast<int64_t>(bytes) + static_cast<int8_t>(code[bytes - 1]);
    int32_t distance = 0;
    std::memcpy(&distance, code.data() + bytes - sizeof distance, sizeof distance);
    return static_cast<int64_t>(bytes) + distance;
}

}  // namespace

Instruction decode_instruction(std::span<const uint8_t> code) noexcept {
    Instruction instruction;
    Reader reader{.code = code};
    uint8_t first = 0;
    const Prefixes prefixes = read_prefixes(reader, first);
    if (reader.failed) return {};
    const Opcode opcode = read_opcode(reader, first, prefixes);
    if (reader.failed || opcode.shape == kBad) return {};
    ModRm modrm;
    if (opcode.shape >= kM) modrm = read_modrm(reader, instruction);
    if (opcode.map == Map::kOneByte && opcode.byte == 0x8f && modrm.field != 0) return {};  // XOP
    skip_immediate(reader, prefixes, opcode, modrm);
    if (reader.failed) return {};
    instruction.bytes = static_cast<uint8_t>(reader.at);
    if (opcode.map == Map::kOneByte) classify_primary(instruction, opcode.byte, modrm);
    if (opcode.map == Map::kTwoBytes) classify_secondary(instruction, opcode.byte);
    instruction.uses_stack_pointer = uses_stack_pointer(opcode, modrm);
    if (instruction.kind == Kind::kJump || instruction.kind == Kind::kCall) {
        instruction.target = target_of(code, reader.at, opcode.shape == kRel8);
    }
    return instruction;
}

}  // namespace hanare::hook
