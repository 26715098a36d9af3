% SPDX-License-Identifier: Apache-2.0
% Octave: products, sorts and a file, of whole numbers, so that sums are exact in every order.
arguments = argv();
n = str2double(arguments{end});
rand("twister", 22);
a = floor(rand(n) * 1000);
b = floor(rand(n) * 1000);
c = a .* b + a';
printf("sum %d trace %d\n", sum(c(:)), trace(c));
d = sort(c, 2);
printf("sorted %d %d %d\n", d(1, 1), d(n, n), sum(d(:, floor(n / 2))));
save("-binary", "part.mat", "d");
clear d;
load("part.mat");
printf("file %d\n", sum(sum(d(1:7:end, 1:3:end))));
m = min(n, 1200);
p = a(1:m, 1:m) * b(1:m, 1:m);
printf("product %d\n", sum(p(:)));
cells = cellfun(@(x) sprintf("%d", x), num2cell(a(1:200, 1:200)), "UniformOutput", false);
printf("strings %d\n", length(strjoin(cells(:)', ",")));
u = cumsum(c, 1);
printf("last %d\n", u(end, end));
