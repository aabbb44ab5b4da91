# Waits and computes in subroutines that a test knows. The argument is how many seconds to let pass
# before, or "hang" to wait in them for good.
use strict;
use warnings;
use List::Util qw(first);
use Time::HiRes qw(sleep time);

package Tree;
use overload '""' => \&label;

sub label {
    my $self = shift;
    main::pick($$self);
    return "tree";
}

package Orchard;

sub harvest {
    my ($class, $seconds, $turns) = @_;
    for my $turn (1 .. $turns) {
        $class->climb($seconds);
    }
}

sub climb {
    my ($class, $seconds) = @_;
    my $tree = bless \$seconds, 'Tree';
    return "$tree";
}

package main;

sub pick {
    my $seconds = shift;
    eval {
        sleep($seconds);
    };
}

sub mill {
    my $till = shift; # mill
    my @sorted = sort { press($till) } 1, 2;
    return $sorted[0];
}

sub press {
    my $till = shift; # press
    return first { crush($till) } 1, 2;
}

sub crush {
    my $till = shift; # crush
    my $sum = 0;
    while (time() < $till) {
        for my $i (1 .. 1000) {
            $sum = ($sum * 31 + $i) % 1009;
        }
    }
    return 1;
}

if ($ARGV[0] eq 'hang') {
    Orchard->harvest(1000, 1);
}
sleep($ARGV[0]);
Orchard->harvest(0.02, 20);
mill(time() + 0.5);
