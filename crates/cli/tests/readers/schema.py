"""Reads a Perfetto file by Perfetto's own schema: every field must be one that the schema knows.

    python schema.py TRACE    prints how many packets of each kind there are, as JSON
"""

import json
import sys
from collections import Counter

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace


def check(message, path):
    for field in UnknownFieldSet(message):
        sys.exit(f"{path} has a field {field.field_number} that the schema does not know")
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for each in value if field.is_repeated else [value]:
            check(each, f"{path}.{field.name}")


trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
check(trace, "trace")
print(json.dumps(Counter(packet.WhichOneof("data") for packet in trace.packet)))
