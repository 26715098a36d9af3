! SPDX-License-Identifier: Apache-2.0
!
! A COMMON block that is several times larger than local memory.
program common
  implicit none
  integer, parameter :: n = 6000000
  integer(8) :: values(n), total
  integer :: i, round
  common /block/ values
  do i = 1, n
    values(i) = i
  end do
  do round = 1, 3
    do i = 1, n
      values(i) = values(i) + mod(values(i), 7_8)
    end do
  end do
  total = 0
  do i = 1, n
    total = mod(total * 31 + values(i), 1000000007_8)
  end do
  print '(a,i0)', 'common ', total
end program common
