! SPDX-License-Identifier: Apache-2.0
!
! COMMON, arrays on the heap, internal files and a recursive procedure, in each task.
module numbers
contains
  recursive function triangle(n) result(total)
    integer(8), intent(in) :: n
    integer(8) :: total
    total = 0
    if (n > 0) total = n + triangle(n - 1)
  end function
end module

program tasks
  use numbers
  implicit none
  integer(8), parameter :: n = 100000
  integer(8) :: values(n)
  common /shared/ values
  real(8), allocatable :: grown(:)
  character(len=40) :: text
  integer(8) :: i, total

  do i = 1, n
    values(i) = i
  end do
  if (sum(values) /= n * (n + 1) / 2) stop 1
  do i = 1, 50
    allocate(grown(i * 10000))
    grown = real(i, 8)
    if (sum(grown) /= real(i * i * 10000, 8)) stop 2
    deallocate(grown)
  end do
  write (text, '(i20)') triangle(1000_8)
  read (text, *) total
  if (total /= 500500) stop 3
  print '(a)', 'right'
end program
