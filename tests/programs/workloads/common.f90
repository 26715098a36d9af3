! SPDX-License-Identifier: Apache-2.0
! Fortran: arrays in COMMON, which is static memory, and allocatable ones beside them.
module sizes
  implicit none
  integer, parameter :: n = 6400
end module sizes

subroutine fill(seed, columns)
  use sizes
  implicit none
  integer, intent(in) :: seed, columns
  real(8) :: a(n, n), b(n, n)
  integer :: i, j
  integer(8) :: state
  common /fields/ a, b
  state = seed
  do j = 1, columns
    do i = 1, n
      state = mod(state * 48271_8, 2147483647_8)
      a(i, j) = real(mod(state, 1000_8), 8)
    end do
  end do
  b(:, 1:columns) = 0
end subroutine fill

subroutine smooth(columns)
  use sizes
  implicit none
  integer, intent(in) :: columns
  real(8) :: a(n, n), b(n, n)
  integer :: i, j
  common /fields/ a, b
  do j = 2, columns - 1
    do i = 2, n - 1
      b(i, j) = aint((a(i - 1, j) + a(i + 1, j) + a(i, j - 1) + a(i, j + 1)) / 4)
    end do
  end do
  a(2:n - 1, 2:columns - 1) = b(2:n - 1, 2:columns - 1)
end subroutine smooth

! Arguments: how many of the columns are used, and for how many steps.
program main
  use sizes
  implicit none
  real(8) :: a(n, n), b(n, n)
  real(8), allocatable :: sums(:)
  integer :: columns, steps, step
  character(len=16) :: argument
  common /fields/ a, b
  call get_command_argument(1, argument)
  read (argument, *) columns
  call get_command_argument(2, argument)
  read (argument, *) steps
  call fill(24, columns)
  do step = 1, steps
    call smooth(columns)
  end do
  allocate(sums(columns))
  sums = sum(a(:, 1:columns), dim=1)
  print '(3f20.1)', sum(sums), maxval(sums), a(n / 2, columns / 3)
end program main
