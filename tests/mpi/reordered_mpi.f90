! reordered_mpi RANK...: as reordered.c, with the former rank in PH_TEST_RANK (MPICH's second names for Fortran
! call the first ones for C), by Fortran's module mpi, whose functions are those of mpif.h, too.
program reordered_mpi
  use mpi
  implicit none
  integer, allocatable :: former(:)
  integer :: own, rank, num, wanted, i, error, total, sum, left, oracle, comm, other, keyval, answer, length
  integer :: status(MPI_STATUS_SIZE), handler, class
  integer(kind=MPI_ADDRESS_KIND) :: value
  logical :: is_set
  character(len=16) :: word
  character(len=MPI_MAX_OBJECT_NAME) :: name

  call mpi_init(error)
  call get_environment_variable('PH_TEST_RANK', word)
  read (word, *) own
  call mpi_comm_size(MPI_COMM_WORLD, num, error)
  allocate (former(0:num - 1))
  wanted = -1
  do i = 0, num - 1
    call get_command_argument(i + 1, word)
    read (word, *) former(i)
    if (former(i) == own) wanted = i
  end do
  call mpi_comm_split(MPI_COMM_WORLD, 0, wanted, oracle, error)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
  call check(rank == wanted, 'MPI_COMM_RANK')

  left = modulo(rank - 1, num)
  call mpi_sendrecv(own, 1, MPI_INTEGER, modulo(rank + 1, num), 5, answer, 1, MPI_INTEGER, left, 5, &
      MPI_COMM_WORLD, status, error)
  call check(answer == former(left) .and. status(MPI_SOURCE) == left, 'MPI_SENDRECV')
  call mpi_scan(own, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  total = 0
  do i = 0, rank
    total = total + former(i)
  end do
  call check(sum == total, 'MPI_SCAN')
  call mpi_comm_compare(MPI_COMM_WORLD, oracle, answer, error)
  call check(answer == MPI_CONGRUENT, 'MPI_COMM_COMPARE')
  call mpi_comm_split(MPI_COMM_WORLD, 2 * rank / num, 0, comm, error)
  call mpi_intercomm_create(comm, 0, MPI_COMM_WORLD, merge(0, num / 2, 2 * rank >= num), 3, other, error)
  call mpi_comm_remote_size(other, answer, error)
  call check(answer == num / 2, 'MPI_INTERCOMM_CREATE')
  call mpi_comm_free(other, error)
  call mpi_comm_free(comm, error)

  call mpi_comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, is_set, error)
  call check(is_set .and. value >= 32767, 'MPI_TAG_UB')
  call mpi_comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, error)
  call mpi_comm_set_attr(MPI_COMM_WORLD, keyval, 77_MPI_ADDRESS_KIND, error)
  call mpi_comm_dup(MPI_COMM_WORLD, comm, error)
  call mpi_comm_get_attr(comm, keyval, value, is_set, error)
  call check(is_set .and. value == 77, 'MPI_COMM_DUP')
  call mpi_comm_delete_attr(MPI_COMM_WORLD, keyval, error)
  call mpi_comm_get_attr(MPI_COMM_WORLD, keyval, value, is_set, error)
  call check(.not. is_set, 'MPI_COMM_DELETE_ATTR')
  call mpi_comm_free(comm, error)
  call mpi_comm_set_name(MPI_COMM_WORLD, 'everybody', error)
  call mpi_comm_get_name(MPI_COMM_WORLD, name, length, error)
  call check(name == 'everybody' .and. length == 9, 'MPI_COMM_GET_NAME')
  call mpi_comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
  call mpi_comm_get_errhandler(MPI_COMM_WORLD, handler, error)
  call check(handler == MPI_ERRORS_RETURN, 'MPI_COMM_GET_ERRHANDLER')
  call mpi_send(own, 1, MPI_INTEGER, num, 5, MPI_COMM_WORLD, error)
  call mpi_error_class(error, class, i)
  call check(class == MPI_ERR_RANK, 'MPI_ERRORS_RETURN')
  call mpi_comm_free(oracle, error)
  if (rank == 0) print '(a)', 'all calls are right'
  call mpi_finalize(error)

contains

  subroutine check(is_so, what)
    logical, intent(in) :: is_so
    character(len=*), intent(in) :: what
    if (is_so) return
    print *, 'rank', wanted, ': ', what
    call mpi_abort(MPI_COMM_WORLD, 1, error)
  end subroutine
end program
