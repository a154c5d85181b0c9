// Owns how SQL reads a number out of a metrics object. Not for other rooms.
#pragma once

/// A json value as float8: numbers, and the strings that stand for NaN and the infinities; null for anything
/// else. What passed check_json_object never fails here.
#define DET_JSON_DOUBLE(json)                            \
  "CASE WHEN json_typeof(" json ") = 'number' OR (" json \
  " #>> '{}') IN ('NaN', 'Infinity', '-Infinity') THEN (" json " #>> '{}')::float8 END"
