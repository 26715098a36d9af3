// SPDX-License-Identifier: Apache-2.0
#include "bench/text_corpus.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "sys/file.hpp"

namespace hanare::bench {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSourceBytesMax = 64 * kMiB;
constexpr uint64_t kSourceBytesMin = 64 * kKiB;
constexpr uint64_t kFileBytesMax = 4 * kMiB;  // longer ones are data
constexpr size_t kProbeBytes = 4096;
constexpr size_t kLineBytesMax = 4096;
constexpr size_t kWriteBytes = kMiB;
constexpr uint64_t kSeed = 2009;

// Texts of files, one behind the other.
class Sources {
public:
    explicit Sources(const std::function<bool(double)>& goes_on) : goes_on_(goes_on) {}

    // Takes texts below the folder, in the order of their names, until there are `bytes_max` in
    // all. Links are not followed: what they name is found where it is, or elsewhere.
    void collect(const fs::path& folder, uint64_t bytes_max) {
        std::error_code error;
        std::vector<fs::directory_entry> entries;
        for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
             entry.increment(error)) {
            entries.push_back(*entry);
        }
        std::sort(entries.begin(), entries.end());
        for (const fs::directory_entry& entry : entries) {
            if (text_.size() >= bytes_max || is_stopped_) return;
            const fs::file_status status = entry.symlink_status(error);
            if (error) continue;
            if (fs::is_directory(status)) collect(entry.path(), bytes_max);
            if (fs::is_regular_file(status)) take_file(entry.path());
        }
    }

    const std::string& text() const { return text_; }
    uint64_t files() const { return files_; }
    bool is_stopped() const { return is_stopped_; }

private:
    void take_file(const fs::path& path) {
        is_stopped_ = !goes_on_(0);
        const sys::FileDescriptor file(
            sys::above_standard(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)));
        if (!file.is_open()) return;
        const size_t before = text_.size();
        size_t wanted = kProbeBytes;  // enough to see what is no text
        while (true) {
            const size_t at = text_.size();
            text_.resize(at + wanted);
            const ssize_t got = read(file.number(), text_.data() + at, wanted);
            text_.resize(at + static_cast<size_t>(std::max<ssize_t>(got, 0)));
            const bool is_text = text_.find('\0', at) == std::string::npos;
            if (got < 0 || !is_text || text_.size() - before > kFileBytesMax) {
                text_.resize(before);
                return;
            }
            if (got == 0) break;
            wanted = kWriteBytes;
        }
        if (text_.size() == before) return;
        if (text_.back() != '\n') text_ += '\n';
        ++files_;
    }

    const std::function<bool(double)>& goes_on_;
    std::string text_;
    uint64_t files_ = 0;
    bool is_stopped_ = false;
};

// A line of the sources: where it begins, and its first bytes as a number that orders as they do.
struct Line {
    uint64_t first_bytes;
    uint32_t begin;
    uint32_t bytes;  // without its end
};

// All but the very long ones.
std::vector<Line> lines_of(const std::string& text) {
    std::vector<Line> lines;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = text.find('\n', begin);
        const size_t bytes = end - begin;
        if (bytes <= kLineBytesMax) {
            uint64_t first = 0;
            std::memcpy(&first, text.data() + begin, std::min(bytes, sizeof first));
            lines.push_back({__builtin_bswap64(first), static_cast<uint32_t>(begin),
                             static_cast<uint32_t>(bytes)});
        }
        begin = end + 1;
    }
    return lines;
}

// Writes through a buffer.
class Output {
public:
    explicit Output(int file) : file_(file) { buffer_.reserve(kWriteBytes + kLineBytesMax + 1); }

    // Gives 0 or an errno value.
    int put(std::string_view bytes) {
        buffer_ += bytes;
        return buffer_.size() < kWriteBytes ? 0 : flush();
    }
    int flush() {
        for (size_t at = 0; at < buffer_.size();) {
            const ssize_t put = write(file_, buffer_.data() + at, buffer_.size() - at);
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) return errno;
            at += static_cast<size_t>(put);
        }
        buffer_.clear();
        return 0;
    }

private:
    int file_;
    std::string buffer_;
};

// Puts lines one behind the other until there are enough, or somebody wants it to end.
class Writer {
public:
    Writer(const CorpusRequest& request, const std::string& text, int file,
           const std::function<bool(double)>& goes_on, Corpus& corpus)
        : request_(request),
          text_(text),
          output_(file),
          goes_on_(goes_on),
          corpus_(corpus),
          random_(request.seed) {}

    void write(std::vector<Line> lines) {
        if (request_.order == CorpusOrder::kRuns) return write_runs(lines);
        while (!is_over()) {
            shuffle(lines);
            put(lines);
        }
    }

    Result<void> end() {
        if (error_ == 0) error_ = output_.flush();
        corpus_.is_complete = error_ == 0 && !is_stopped_;
        if (error_ == 0) return {};
        const bool is_full = error_ == ENOSPC || error_ == EDQUOT;
        return fail_errno(is_full ? HANARE_STATUS_STORE_FULL : HANARE_STATUS_SYSTEM, error_,
                          "writing the text to be sorted");
    }

private:
    bool is_over() const {
        return is_stopped_ || error_ != 0 || corpus_.bag.bytes() >= request_.text_bytes;
    }

    void shuffle(std::vector<Line>& lines) {
        for (size_t i = lines.size(); i > 1; --i) std::swap(lines[i - 1], lines[random_.below(i)]);
    }

    void put(const std::vector<Line>& lines) {
        for (size_t i = 0; i < lines.size() && !is_over(); ++i) {
            const std::string_view line(text_.data() + lines[i].begin, lines[i].bytes + 1);
            corpus_.bag.add(line.substr(0, lines[i].bytes));
            error_ = output_.put(line);
            constexpr uint64_t kLinesPerCall = 1 << 15;
            if (corpus_.bag.lines() % kLinesPerCall == 0) {
                is_stopped_ = !goes_on_(static_cast<double>(corpus_.bag.bytes()) /
                                        static_cast<double>(request_.text_bytes));
            }
        }
    }

    void write_runs(std::vector<Line>& lines) {
        std::sort(lines.begin(), lines.end(), [this](const Line& left, const Line& right) {
            if (left.first_bytes != right.first_bytes) return left.first_bytes < right.first_bytes;
            return view(left) < view(right);
        });
        uint64_t bytes = 0;
        for (const Line& line : lines) bytes += line.bytes + 1;
        const double copies = static_cast<double>(request_.text_bytes) /
                              static_cast<double>(kCorpusRuns) / static_cast<double>(bytes);
        std::vector<Line> window;
        while (!is_over()) {
            for (size_t i = 0; i < lines.size() && !is_over(); ++i) {
                // So many on average: one or none, if a run has less than all lines.
                for (double left = copies; left > random_.unit(); left -= 1) {
                    window.push_back(lines[i]);
                }
                if (window.size() >= kCorpusWindow || i + 1 == lines.size()) {
                    shuffle(window);
                    put(window);
                    window.clear();
                }
            }
        }
    }

    std::string_view view(const Line& line) const {
        return {text_.data() + line.begin, line.bytes};
    }

    const CorpusRequest& request_;
    const std::string& text_;
    Output output_;
    const std::function<bool(double)>& goes_on_;
    Corpus& corpus_;
    Prng random_;
    int error_ = 0;
    bool is_stopped_ = false;
};

}  // namespace

CorpusRequest corpus_request(uint64_t text_bytes, CorpusOrder order) {
    return {.folders = {"/usr/include", "/usr/share/doc", "/usr/share"},
            .text_bytes = text_bytes,
            .source_bytes_max = kSourceBytesMax,
            .seed = kSeed,
            .order = order};
}

Result<Corpus> write_corpus(const CorpusRequest& request, int file,
                            const std::function<bool(double)>& goes_on) {
    Sources sources(goes_on);
    for (size_t i = 0; i < request.folders.size(); ++i) {
        const uint64_t left =
            request.source_bytes_max - std::min(request.source_bytes_max, sources.text().size());
        sources.collect(request.folders[i],
                        sources.text().size() + left / (request.folders.size() - i));
    }
    Corpus corpus;
    if (sources.is_stopped()) return corpus;
    if (sources.text().size() < kSourceBytesMin) {
        std::string folders;
        for (const std::string& folder : request.folders) folders += " " + folder;
        return fail(HANARE_STATUS_NOT_FOUND,
                    "there is too little text (%s) to make a large one of, in%.150s",
                    format_size(sources.text().size()).c_str(), folders.c_str());
    }
    corpus.source_bytes = sources.text().size();
    corpus.source_files = sources.files();
    Writer writer(request, sources.text(), file, goes_on, corpus);
    writer.write(lines_of(sources.text()));
    HANARE_TRY(writer.end());
    return corpus;
}

}  // namespace hanare::bench
