# SPDX-License-Identifier: Apache-2.0
# R: a data frame sorted, aggregated and fitted, written to a file and read back.
rows <- as.integer(commandArgs(trailingOnly = TRUE)[1])
set.seed(23)
frame <- data.frame(key = sample.int(5000L, rows, replace = TRUE), x = runif(rows), y = rnorm(rows))
frame$z <- 3 * frame$x - 2 * frame$y + frame$key / 5000
ordered <- frame[order(frame$key, frame$x), ]
cat("ordered", format(ordered$x[c(1, rows %/% 2, rows)], digits = 10), "\n")
sums <- tapply(ordered$y, ordered$key, sum)
cat("sums", format(sums[c(1, 100, 5000)], digits = 10), "\n")
fit <- lm(z ~ x + y, data = ordered[seq_len(rows %/% 4), ])
cat("fit", format(coef(fit), digits = 8), "\n")
saveRDS(ordered, "ordered.rds", compress = FALSE)
rm(ordered, fit)
again <- readRDS("ordered.rds")
cat("file", nrow(again), format(sum(again$z), digits = 12), "\n")
cat("quantiles", format(quantile(again$z, c(0.1, 0.5, 0.9)), digits = 10), "\n")
