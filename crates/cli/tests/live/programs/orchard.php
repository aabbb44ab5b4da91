<?php
// Waits and computes in functions that a test knows. The argument is how many seconds to let pass before,
// or "hang" to wait in them for good.

class Orchard
{
    public static function harvest($seconds, $turns)
    {
        (new Orchard)->climb($seconds, $turns);
    }

    public function climb($seconds, $turns)
    {
        array_map(function ($turn) use ($seconds) {
            pick($seconds);
        }, range(1, $turns));
    }

    public static function mill($seconds)
    {
        foreach (self::loads($seconds) as $load) {
            press($load);
        }
    }

    private static function loads($seconds)
    {
        yield crush(microtime(true) + $seconds);
    }
}

function pick($seconds)
{
    usleep((int)($seconds * 1000000));
}

function press($load)
{
    return $load + 1;
}

function crush($till)
{
    $sum = 0;
    while (microtime(true) < $till) {
        for ($i = 0; $i < 1000; $i++) {
            $sum = ($sum * 31 + $i) % 1009;
        }
    }
    return $sum;
}

if ($argv[1] == "hang") {
    Orchard::harvest(1000, 1);
}
usleep((int)($argv[1] * 1000000));
Orchard::harvest(0.02, 20);
Orchard::mill(0.5);
