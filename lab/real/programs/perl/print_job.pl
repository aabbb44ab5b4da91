# Sends print jobs to a spooler: `print_job.pl SOCKET KIND` sends one for each line of its stdin and
# tells begin and end of each.
use strict;
use warnings;
use IO::Socket::UNIX;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

$| = 1;
my ($path, $kind) = @ARGV;

sub now_ns { return sprintf("%.0f", clock_gettime(CLOCK_MONOTONIC) * 1e9) }

print "ready\n";
while (<STDIN>) {
    my $begin = now_ns();
    my $spool = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!";
    print $spool "$kind\n";
    my $said = <$spool>;
    print "$begin ", now_ns(), "\n";
}
