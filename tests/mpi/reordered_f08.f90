! reordered_f08 RANK...: as reordered.c, with the former rank in PH_TEST_RANK (MPICH's second names for Fortran
! call the first ones for C), by Fortran's module mpi_f08.
program reordered_f08
  use mpi_f08
  implicit none
  integer, allocatable :: former(:)
  integer :: own, rank, num, wanted, i, answer, total, sum, left, length, provided, keyval, error, class
  type(MPI_Comm) :: oracle, comm, other
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  type(MPI_Errhandler) :: handler
  integer(kind=MPI_ADDRESS_KIND) :: value
  logical :: is_set
  integer, asynchronous :: sent
  character(len=16) :: word
  character(len=MPI_MAX_OBJECT_NAME) :: name

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided)
  call get_environment_variable('PH_TEST_RANK', word)
  read (word, *) own
  call MPI_Comm_size(MPI_COMM_WORLD, num)
  allocate (former(0:num - 1))
  wanted = -1
  do i = 0, num - 1
    call get_command_argument(i + 1, word)
    read (word, *) former(i)
    if (former(i) == own) wanted = i
  end do
  call MPI_Comm_split(MPI_COMM_WORLD, 0, wanted, oracle)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call check(rank == wanted, 'MPI_Comm_rank')

  left = modulo(rank - 1, num)
  sent = own
  call MPI_Isend(sent, 1, MPI_INTEGER, modulo(rank + 1, num), 5, MPI_COMM_WORLD, request)
  call MPI_Recv(answer, 1, MPI_INTEGER, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, status)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(answer == former(left) .and. status%MPI_SOURCE == left, 'MPI_Recv')
  call MPI_Scan(own, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  total = 0
  do i = 0, rank
    total = total + former(i)
  end do
  call check(sum == total, 'MPI_Scan')
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [num], [.true.], .false., comm)
  call MPI_Comm_compare(comm, oracle, answer)
  call check(answer == MPI_CONGRUENT, 'MPI_Cart_create')
  call MPI_Comm_free(comm)
  call MPI_Iprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, is_set, status)
  call check(.not. is_set, 'MPI_Iprobe')
  call MPI_Comm_split(MPI_COMM_WORLD, 2 * rank / num, 0, comm)
  call MPI_Intercomm_create(comm, 0, MPI_COMM_WORLD, merge(0, num / 2, 2 * rank >= num), 3, other)
  call MPI_Comm_remote_size(other, answer)
  call check(answer == num / 2, 'MPI_Intercomm_create')
  call MPI_Comm_free(other)
  call MPI_Comm_free(comm)

  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, is_set)
  call check(is_set .and. value >= 32767, 'MPI_TAG_UB')
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 77_MPI_ADDRESS_KIND)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_get_attr(comm, keyval, value, is_set)
  call check(is_set .and. value == 77, 'MPI_Comm_dup')
  call MPI_Comm_free(comm)
  call MPI_Comm_set_name(MPI_COMM_WORLD, 'everybody')
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, length)
  call check(name == 'everybody' .and. length == 9, 'MPI_Comm_get_name')
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Comm_get_errhandler(MPI_COMM_WORLD, handler)
  call check(handler == MPI_ERRORS_RETURN, 'MPI_Comm_get_errhandler')
  call MPI_Send(own, 1, MPI_INTEGER, num, 5, MPI_COMM_WORLD, error)
  call MPI_Error_class(error, class)
  call check(class == MPI_ERR_RANK, 'MPI_ERRORS_RETURN')
  call MPI_Comm_free(oracle)
  if (rank == 0) print '(a)', 'all calls are right'
  call MPI_Finalize()

contains

  subroutine check(is_so, what)
    logical, intent(in) :: is_so
    character(len=*), intent(in) :: what
    if (is_so) return
    print *, 'rank', wanted, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
