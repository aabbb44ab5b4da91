<?php
// A shop: ?page=cart tells how many articles are in the cart of the session, ?page=export writes
// all orders of the session for S seconds, ?page=rates asks PRICES for the rates of exchange, and
// ?page=stock looks a number up in memcached; the rest is quick.

function write_orders(float $seconds): string
{
    $end = microtime(true) + $seconds;
    $sum = '';
    do {
        for ($n = 0; $n < 1000; $n++) {
            $sum = md5($sum . sprintf('%08d;%s;%01.2f', $n, 'apples', $n * 1.19));
        }
    } while (microtime(true) < $end);
    return $sum;
}

function cart(): int
{
    session_start();
    $_SESSION['articles'] = ($_SESSION['articles'] ?? 0) + 1;
    return $_SESSION['articles'];
}

function stock(): string
{
    $cache = new Memcached();
    $cache->setOption(Memcached::OPT_POLL_TIMEOUT, 60000);
    $cache->addServer('127.0.0.1', (int) $_SERVER['CACHE_PORT']);
    $cache->add('pieces', 0);
    $pieces = $cache->increment('pieces');
    return "$pieces pieces";
}

$page = $_GET['page'] ?? 'start';
$seconds = (float) ($_GET['seconds'] ?? 0);
if ($page === 'cart') {
    echo cart(), " articles\n";
} elseif ($page === 'export') {
    cart();
    echo write_orders($seconds), "\n";
} elseif ($page === 'rates') {
    echo file_get_contents("http://127.0.0.1:{$_SERVER['PRICES_PORT']}/$seconds"), "\n";
} elseif ($page === 'stock') {
    echo stock(), "\n";
} else {
    echo "welcome\n";
}
