"""What is written into the shared memory is what docs/MARKS.md says."""

import os
import struct
import threading
import unittest

import hangdog_mark as mark


def records(tid):
    """All whole records of a thread: kind, pairing, colour, name, arguments."""
    area = mark._area
    found = []
    for ring in range(mark._RINGS):
        begun, done = struct.unpack_from("@QQ", area.bytes, 4096 + 64 * ring)
        for number in range(done):
            place = mark._RECORD_AT + 64 * (ring * mark._RECORDS + number)
            sequence, _, owner, code, kind, pairing, colour = struct.unpack_from("@QQIIBBB", area.bytes, place)
            if sequence == number + 1 and owner == tid:
                if code >= 16384:
                    at = mark._NAME_AT + 64 * (code - 16384)
                    (length,) = struct.unpack_from("@I", area.bytes, at)
                    code = area.bytes[at + 4 : at + 4 + length].decode()
                found.append((kind, pairing, colour, code, struct.unpack_from("@qqqq", area.bytes, place + 32)))
    return found


def in_thread(work):
    """The tid of a thread that did it."""
    tids = []

    def run():
        tids.append(threading.get_native_id())
        work()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return tids[0]


class Marks(unittest.TestCase):
    def setUp(self):
        mark._area.words[8] = 2**64 - 1

    def test_what_is_said_is_written(self):
        def work():
            mark.point(5)
            with mark.region("decode", 7, -1):
                mark.begin("get", 1, by="argument")
            mark.end("get", 1, by="argument", colour="green")

        expected = [
            (0, 0, 0, 5, (0, 0, 0, 0)),
            (1, 0, 0, "decode", (7, -1, 0, 0)),
            (1, 1, 0, "get", (1, 0, 0, 0)),
            (2, 0, 0, "decode", (7, 0, 0, 0)),
            (2, 1, 2, "get", (1, 0, 0, 0)),
        ]
        self.assertEqual(records(in_thread(work)), expected)

    def test_nothing_is_written_while_nobody_records(self):
        mark._area.words[8] = 0
        self.assertEqual(records(in_thread(lambda: mark.point(5))), [])

    def test_a_recorder_that_is_gone_is_forgotten(self):
        mark._area.words[8] = 1
        self.assertEqual(records(in_thread(lambda: mark.point(5))), [])
        self.assertEqual(mark._area.words[8], 0)

    def test_rings_are_given_back(self):
        for _ in range(3 * mark._RINGS):
            in_thread(lambda: mark.point(6))
        self.assertEqual(mark._area.words[16], 0)

    def test_a_child_has_memory_of_its_own(self):
        mark.point("of both")
        number, before = mark._names["of both"], mark._area
        child = os.fork()
        if child == 0:
            good = mark._area is not before and mark._area.words[8] != 2**64 - 1
            mark.point("of both")
            good = good and records(threading.get_native_id()) == [(0, 0, 0, "of both", (0, 0, 0, 0))]
            os._exit(0 if good and mark._names["of both"] == number else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_wrong_codes_are_refused(self):
        for code in (-1, 16384):
            with self.assertRaises(ValueError):
                mark.point(code)


if __name__ == "__main__":
    unittest.main()
