// SPDX-License-Identifier: Apache-2.0
//
// A large text made of what every machine has: the lines of its headers, sources and documentation,
// as often as it takes, in an order drawn from a seed.  The same files give the same text.
// Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/text_lines.hpp"

namespace hanare::bench {

enum class CorpusOrder {
    // Some runs one behind the other, as of logs put together, each with a sample of the lines in
    // their order but for windows in which they are shuffled.
    kRuns,
    kRandom,  // all lines shuffled, again and again
};

struct CorpusRequest {
    std::vector<std::string> folders;  // searched in this order, each for its share of the sources
    uint64_t text_bytes = 0;           // at least; what exceeds it is part of a line
    uint64_t source_bytes_max = 0;     // different lines; what is kept in memory meanwhile
    uint64_t seed = 0;
    CorpusOrder order = CorpusOrder::kRuns;
};

// /usr/include, /usr/share/doc, /usr/share.
CorpusRequest corpus_request(uint64_t text_bytes, CorpusOrder order);

inline constexpr uint64_t kCorpusRuns = 8;
inline constexpr size_t kCorpusWindow = 1000;  // lines

struct Corpus {
    LineBag bag;
    uint64_t source_bytes = 0;
    uint64_t source_files = 0;
    bool is_complete = false;  // false when `goes_on` ended it
};

// Writes it to the file, from its position on.  `goes_on` is told the fraction that is done, and
// says whether to go on.  NOT_FOUND where the folders hold hardly any text.
Result<Corpus> write_corpus(const CorpusRequest& request, int file,
                            const std::function<bool(double)>& goes_on);

}  // namespace hanare::bench
