// SPDX-License-Identifier: Apache-2.0
#include "config/store_spec.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/units.hpp"

namespace hanare::config {
namespace {

TEST(StoreSpec, ReadsDirectoryAndSize) {
    const auto plain = parse_store_spec("file:/scratch/me");
    ASSERT_TRUE(plain.has_value());
    EXPECT_EQ(plain->kind, StoreKind::kFile);
    EXPECT_EQ(plain->directory, "/scratch/me");
    EXPECT_EQ(plain->size_bytes, 0u);
    const auto sized = parse_store_spec("file:relative dir?size=64G");
    ASSERT_TRUE(sized.has_value());
    EXPECT_EQ(sized->directory, "relative dir");
    EXPECT_EQ(sized->size_bytes, 64 * kGiB);
}

TEST(StoreSpec, EveryDirectoryCanBeNamed) {
    EXPECT_EQ(parse_store_spec("file:/a%3Fb%3fc%25d%zz%?size=1G")->directory, "/a?b?c%d%zz%");
    EXPECT_EQ(file_store_spec("/plain"), "file:/plain");
    for (const char* directory :
         {"/a?b", "/a%b", "/%3F", "/%253F", "%", "?size=1G", "/a,(b)", "%2c"}) {
        EXPECT_EQ(parse_store_spec(file_store_spec(directory))->directory, directory);
    }
}

TEST(StoreSpec, DirectoryDefaultsToTmpdir) {
    const char* const old = std::getenv("TMPDIR");
    const std::string saved = old != nullptr ? old : "";
    setenv("TMPDIR", "/elsewhere", 1);
    EXPECT_EQ(parse_store_spec("file:")->directory, "/elsewhere");
    setenv("TMPDIR", "", 1);
    EXPECT_EQ(parse_store_spec("file:?size=1G")->directory, "/var/tmp");
    unsetenv("TMPDIR");
    EXPECT_EQ(default_store_directory(), "/var/tmp");
    if (old != nullptr) setenv("TMPDIR", saved.c_str(), 1);
}

TEST(StoreSpec, NamesMemoryServers) {
    const auto plain = parse_store_spec("tcp://node7");
    ASSERT_TRUE(plain.has_value());
    EXPECT_EQ(plain->kind, StoreKind::kServer);
    EXPECT_EQ(plain->server, (ServerAddress{"node7", kServerPort}));
    EXPECT_EQ(plain->size_bytes, 0u);
    const auto sized = parse_store_spec("tcp://[::1]:9000?size=8G");
    ASSERT_TRUE(sized.has_value());
    EXPECT_EQ(sized->server, (ServerAddress{"::1", 9000}));
    EXPECT_EQ(sized->size_bytes, 8 * kGiB);
    for (const char* text : {"tcp://", "tcp://host:0", "tcp://host:70000", "tcp://host?size=0",
                             "tcp://host?siez=1G", "tcp://host:9000?size="}) {
        EXPECT_EQ(parse_store_spec(text).error().status, HANARE_STATUS_INVALID_ARGUMENT) << text;
    }
}

TEST(StoreSpec, NamesSeveralStores) {
    const auto tier = parse_store_spec("tier(tcp://a?size=1G,file:/x,tcp://b:9)");
    ASSERT_TRUE(tier.has_value());
    EXPECT_EQ(tier->kind, StoreKind::kTier);
    ASSERT_EQ(tier->members.size(), 3u);
    EXPECT_EQ(tier->members[0].server.host, "a");
    EXPECT_EQ(tier->members[0].size_bytes, kGiB);
    EXPECT_EQ(tier->members[1].directory, "/x");
    EXPECT_EQ(tier->members[2].server.port, 9);

    const auto nested = parse_store_spec("tier(mirror(tcp://a,tcp://b),file:/x%28%2C%29y)");
    ASSERT_TRUE(nested.has_value());
    ASSERT_EQ(nested->members.size(), 2u);
    EXPECT_EQ(nested->members[0].kind, StoreKind::kMirror);
    EXPECT_EQ(nested->members[0].members.size(), 2u);
    EXPECT_EQ(nested->members[1].directory, "/x(,)y");

    const auto parity = parse_store_spec("parity(2+1;tcp://a, tcp://b,  tcp://c,tcp://spare)");
    ASSERT_TRUE(parity.has_value());
    EXPECT_EQ(parity->kind, StoreKind::kParity);
    EXPECT_EQ(parity->data, 2u);
    EXPECT_EQ(parity->members.size(), 4u);
    for (const char* text :
         {"mirror(tcp://a)", "mirror()", "mirror(tcp://a,tcp://a)", "mirror(file:/x,file:/x)",
          "tier(tcp://a,tcp://b", "tier(tcp://a,)", "mirror(a,b)",
          "parity(tcp://a,tcp://b,tcp://c)", "parity(3+1;tcp://a,tcp://b,tcp://c,tcp://d)",
          "parity(4+1;tcp://a,tcp://b,tcp://c,tcp://d)", "mirror(tcp://a,tcp://b)?size=1G",
          "parity(2+1;parity(2+1;tcp://a,tcp://b,tcp://c),tcp://d,tcp://e)",
          "parity(2+1;tier(parity(2+1;tcp://a,tcp://b,tcp://c),file:),tcp://d,tcp://e)",
          "tier(tier(tier(tier(tier(file:,file:),file:),file:),file:),file:)"}) {
        EXPECT_EQ(parse_store_spec(text).error().status, HANARE_STATUS_INVALID_ARGUMENT) << text;
    }
}

TEST(StoreSpec, KnowsWhatUsesServers) {
    EXPECT_FALSE(uses_servers(*parse_store_spec("file:/a")));
    EXPECT_FALSE(uses_servers(*parse_store_spec("tier(file:/a,file:/b)")));
    EXPECT_TRUE(uses_servers(*parse_store_spec("tcp://a")));
    EXPECT_TRUE(uses_servers(*parse_store_spec("tier(file:/a,mirror(file:/b,tcp://c))")));
}

TEST(StoreSpec, IsPrintedAsWhatItMeans) {
    for (const char* text : {"file:/a%2Cb", "file:/a?size=1G", "tcp://a:9?size=2G",
                             "tier(mirror(tcp://a:1,tcp://b:2),file:/x%28?size=1M)",
                             "parity(2+1;tcp://a:1,tcp://b:1,tcp://c:1)"}) {
        EXPECT_EQ(format_store_spec(*parse_store_spec(text)), text);
    }
}

TEST(StoreSpec, PutsStoresInOrder) {
    EXPECT_EQ(tier_spec({"tcp://a"}), "tcp://a");
    EXPECT_EQ(tier_spec({"tcp://a", "file:/x"}), "tier(tcp://a,file:/x)");
}

TEST(StoreSpec, RefusesEverythingElse) {
    const std::string zero("file:/a\0b", 9);
    for (const std::string& text :
         {std::string(""), std::string("file"), std::string("/scratch"), std::string("File:/a"),
          std::string("disk:/a"), std::string("tcp:host"), std::string("file:/a?"),
          std::string("file:/a?size"), std::string("file:/a?size="), std::string("file:/a?size=0"),
          std::string("file:/a?size=-1G"), std::string("file:/a?size=1Q"),
          std::string("file:/a?siz=1G"), std::string("file:/a?size=1G&size=2G"),
          std::string("file:/a?size=1G?size=2G"), std::string("file:/a?size=1G "), zero}) {
        const auto spec = parse_store_spec(text);
        ASSERT_FALSE(spec.has_value()) << text;
        EXPECT_EQ(spec.error().status, HANARE_STATUS_INVALID_ARGUMENT) << text;
        EXPECT_NE(std::string(spec.error().text).find("; allowed is "), std::string::npos)
            << spec.error().text;
    }
}

}  // namespace
}  // namespace hanare::config
