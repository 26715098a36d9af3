# SPDX-License-Identifier: Apache-2.0
# gawk: groups lines by their first word and keeps all of them.
{
    count[$1]++
    sum[$1] += $2
    lines[$1] = lines[$1] " " $3
    seen[$1, $2] = NR
}
END {
    for (key in count) {
        total += sum[key]
        if (count[key] > most) most = count[key]
        check = (check + length(lines[key]) * count[key] + substr(key, 6) * 1) % 1000003
    }
    for (pair in seen) last = (last + seen[pair]) % 1000003
    print length(count), total, most, check, length(seen), last
}
