# SPDX-License-Identifier: Apache-2.0
# Perl: groups lines by their first word in a hash of arrays and sorts the keys.
use strict;
use warnings;

my %groups;
while (my $line = <STDIN>) {
    chomp $line;
    my ($key, $number, $word) = split / /, $line;
    push @{$groups{$key}}, [$number, $word];
}
my ($total, $most) = (0, 0);
my $check = 0;
for my $key (sort keys %groups) {
    my @rows = sort { $a->[0] <=> $b->[0] || $a->[1] cmp $b->[1] } @{$groups{$key}};
    $total += $_->[0] for @rows;
    $most = @rows if @rows > $most;
    $check = ($check * 31 + @rows * $rows[0][0] + length $rows[-1][1]) % 1000003;
}
print scalar(keys %groups), " $total $most $check\n";
