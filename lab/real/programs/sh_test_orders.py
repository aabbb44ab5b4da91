"""The tests of a shop, of which one waits for a courier to connect: `sh_test_orders.py SOCKET`."""

import socket
import sys
import unittest


def wait_for_courier(path):
    """What a courier says that connects."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        courier, _ = listener.accept()
        with courier:
            return courier.recv(64)


class Orders(unittest.TestCase):
    def test_delivery(self):
        self.assertTrue(wait_for_courier(sys.argv[1]))


unittest.main(argv=sys.argv[:1])
