/**
 * @module
 * Arbitrary results of `run`: everything that the result codec claims to hold.
 */
import fc from "fast-check";

/** Any JSON value and everything else the codec claims to hold, nested in one another, with repeated references. */
export const anyResult: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => {
  const name = fc.oneof(
    fc.string({ unit: "binary", maxLength: 8 }),
    fc.constantFrom(
      "__proto__",
      "\0__proto__",
      "constructor",
      "toString",
      "then",
      "toJSON",
      "length",
      "0",
      "",
    ),
  );
  const members = fc.array(fc.tuple(name, tie("value")), { maxLength: 4 });
  const defined = (holder: object, list: [string, unknown][], enumerable = true): object => {
    for (const [key, value] of list) {
      Object.defineProperty(holder, key, { value, enumerable, writable: true, configurable: true });
    }
    return holder;
  };
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("\ud800", "\udfff\ud800", "\ufeff", "\u2028<"),
  );
  const error = fc
    .record({
      make: fc.constantFrom(Error, TypeError, RangeError, SyntaxError, EvalError, ReferenceError, URIError),
      message: fc.option(text, { nil: undefined }),
      cause: fc.option(tie("value"), { nil: undefined }),
      hidden: members,
      shown: members,
    })
    .map(({ make, message, cause, hidden, shown }) => {
      const made = new make(message, cause === undefined ? undefined : { cause });
      const free = (list: [string, unknown][]) =>
        list.filter(([key]) => key !== "stack" && key !== "message");
      return defined(defined(made, free(hidden), false), free(shown));
    });
  const views = [Uint8Array, Int8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array];
  const wide = [Float32Array, Float64Array, BigInt64Array, BigUint64Array, DataView];
  const bytes = fc.tuple(fc.uint8Array({ maxLength: 32 }), fc.nat({ max: 3 })).chain(([content, offset]) => {
    const aligned = (content.length >> 3) << 3;
    const buffer = new ArrayBuffer(aligned + 8 * offset + 8);
    new Uint8Array(buffer, 8 * offset).set(content.subarray(0, aligned));
    const over = (view: (typeof views)[number] | (typeof wide)[number]) => {
      const width = "BYTES_PER_ELEMENT" in view ? view.BYTES_PER_ELEMENT : 1;
      return new (view as typeof Uint8Array)(buffer, 8 * offset, aligned / width);
    };
    return fc.constantFrom<object>(Buffer.from(content), buffer, ...[...views, ...wide].map(over));
  });
  const leaf = fc.oneof(
    text,
    fc.double(),
    fc.constantFrom<unknown>(
      undefined,
      null,
      true,
      false,
      0,
      -0,
      Number.NaN,
      Infinity,
      -Infinity,
      2 ** 53,
      5e-324,
    ),
    fc.bigInt(),
    fc.date({ noInvalidDate: false }),
    bytes,
  );
  const sparse = fc.array(fc.option(tie("value"), { nil: undefined }), { maxLength: 5 }).chain((list) =>
    fc.array(fc.nat({ max: 20 }), { maxLength: 5 }).map((holes) => {
      const copy = [...list];
      for (const hole of holes) {
        copy.length = Math.max(copy.length, hole);
        Reflect.deleteProperty(copy, hole);
      }
      return copy;
    }),
  );
  return {
    value: fc.oneof(
      { maxDepth: 5, depthSize: "small" },
      leaf,
      members.map((list) => defined({}, list)),
      members.map((list) => defined(Object.create(null), list)),
      fc.array(tie("value"), { maxLength: 5 }),
      sparse,
      tie("value").map((value) => [value, { again: value }, new Map([[value, value]])]),
      fc.array(fc.tuple(tie("value"), tie("value")), { maxLength: 4 }).map((entries) => new Map(entries)),
      fc.array(tie("value"), { maxLength: 4 }).map((items) => new Set(items)),
      error,
      fc.array(tie("value"), { maxLength: 3 }).map((errors) => new AggregateError(errors, "several")),
    ),
  };
}).value;
