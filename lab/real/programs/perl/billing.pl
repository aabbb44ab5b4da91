# Writes bills: `billing.pl SEMAPHORE FILE` keeps a SysV semaphore of that key while it numbers a
# bill, for each line of its stdin: `bill` does just that; `archive` has all bills packed by xz
# meanwhile, for nobody may number one then. It tells begin and end of each.
use strict;
use warnings;
use IPC::SysV qw(IPC_CREAT SEM_UNDO S_IRUSR S_IWUSR);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

$| = 1;
my ($key, $file) = @ARGV;
my $semaphore = semget($key, 1, IPC_CREAT | S_IRUSR | S_IWUSR) // die "semget: $!";
my $number = 0;

sub now_ns { return sprintf("%.0f", clock_gettime(CLOCK_MONOTONIC) * 1e9) }

# Zero is free; who has it has made it one.
sub lock_bills { semop($semaphore, pack("s!3s!3", 0, 0, 0, 0, 1, SEM_UNDO)) or die "semop: $!" }
sub unlock_bills { semop($semaphore, pack("s!3", 0, -1, SEM_UNDO)) or die "semop: $!" }

sub archive_bills {
    system("xz", "--keep", "--force", "-9", $file) == 0 or die "xz: $?";
}

print "ready\n";
while (my $line = <STDIN>) {
    my $begin = now_ns();
    lock_bills();
    $number++;
    archive_bills() if $line =~ /^archive/;
    unlock_bills();
    print "$begin ", now_ns(), "\n";
}
