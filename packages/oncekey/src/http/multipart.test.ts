import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parameterOf } from "./media-type.js";
import { parseMultipart } from "./multipart.js";

const encode = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

/** What a client sends, written by the platform's own serialiser. */
async function serialise(form: FormData) {
  const response = new Response(form);
  const boundary = parameterOf(response.headers.get("content-type") ?? "", "boundary");
  return { bytes: new Uint8Array(await response.arrayBuffer()), boundary };
}

const field = (name: string, text: string) =>
  `--X\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`;

const dispositions = [
  'form-data; name="a"',
  'form-data; name="b"',
  'form-data; name="a"; name="b"',
  'form-data; name="a"; filename="f"',
  'form-data; filename="f"; name="a"',
  'form-data; name="a"; filename="f"; filename*=UTF-8\'\'g',
  'form-data; name="a"; filename="h"; filename*=UTF-8\'\'g',
];
/** What a client may put into the head of a part, right and strange. */
const anyHead = fc
  .tuple(
    fc.constantFrom(...dispositions),
    fc.subarray([
      "Content-Type: text/plain",
      "Content-Type: text/plain; charset=latin1",
      "Content-Transfer-Encoding: base64",
      'Content-Disposition: form-data; name="b"',
      " folded: 1",
      "X-Other: 1",
    ]),
    fc.boolean(),
  )
  .map(([disposition, others, last]) => {
    const line = `Content-Disposition: ${disposition}`;
    return last ? [...others, line] : [line, ...others];
  });
const anyText = fc.constantFrom("", "aGk=", "x", "\r\n");

function written(head: readonly string[], text: string, boundary: string): Uint8Array<ArrayBuffer> {
  return encode(`--${boundary}\r\n${head.join("\r\n")}\r\n\r\n${text}\r\n--${boundary}--\r\n`);
}

/** What a handler gets that reads the body with the platform's own parser; `undefined` if that refuses it. */
async function platformReads(body: Uint8Array<ArrayBuffer>, boundary: string) {
  const headers = { "Content-Type": `multipart/form-data; boundary=${boundary}` };
  const form = await new Response(body, { headers }).formData().catch(() => undefined);
  if (form === undefined) return undefined;
  const read = [...form].map(async ([name, value]) =>
    typeof value === "string" ? [name, value] : [name, value.name, value.type, await value.text()],
  );
  return Promise.all(read);
}

describe("parseMultipart", () => {
  it("gives back the bytes of every file, whatever they are", async () => {
    const file = fc.uint8Array({ maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(fc.array(file, { minLength: 1, maxLength: 4 }), async (files) => {
        const form = new FormData();
        for (const bytes of files) form.append("file", new Blob([bytes as Uint8Array<ArrayBuffer>]), "f.bin");
        const { bytes, boundary } = await serialise(form);
        expect(parseMultipart(bytes, boundary)?.map((part) => [...part.bytes])).toEqual(
          files.map((one) => [...one]),
        );
      }),
      { numRuns: 50 },
    );
  });

  it("gives name, file name and type of each part", async () => {
    const form = new FormData();
    form.append("note", "hello");
    form.append("file", new Blob(["%PDF"], { type: "application/pdf" }), 'a "b".pdf');
    const { bytes, boundary } = await serialise(form);
    expect(parseMultipart(bytes, boundary)).toEqual([
      { name: "file", filename: "a %22b%22.pdf", contentType: "application/pdf", bytes: encode("%PDF") },
      { name: "note", filename: undefined, contentType: undefined, bytes: encode("hello") },
    ]);
  });

  it("sorts by name and keeps the order of equal names", () => {
    const body = encode(`${field("b", "1")}${field("a", "2")}${field("b", "3")}--X--\r\n`);
    const texts = parseMultipart(body, "X")?.map(({ name, bytes }) => name + new TextDecoder().decode(bytes));
    expect(texts).toEqual(["a2", "b1", "b3"]);
    const listed = encode(`${field("b[]", "1")}${field("a", "2")}${field("b", "3")}--X--\r\n`);
    expect(parseMultipart(listed, "X")?.map(({ name }) => name)).toEqual(["a", "b[]", "b"]);
  });

  it("does not end a part at what only looks like the boundary", () => {
    const text = "\r\n--Y\r\n\r\n-X--\r--X\n--X";
    const [part] = parseMultipart(encode(`${field("a", text)}--X--`), "X") ?? [];
    expect(part?.bytes).toEqual(encode(text));
  });

  it.each<[string, string, string | undefined]>([
    ["no boundary in the type", `${field("a", "1")}--X--`, undefined],
    ["another boundary", `${field("a", "1")}--X--`, "Z"],
    ["an empty boundary", `${field("a", "1")}--X--`, ""],
    ["a boundary that is too long", `--${"b".repeat(71)}--`, "b".repeat(71)],
    ["no end", field("a", "1"), "X"],
    ["nothing at all", "", "X"],
    ["text before", `hello\r\n${field("a", "1")}--X--`, "X"],
    ["text after", `${field("a", "1")}--X--\r\nmore`, "X"],
    ["a part without a name", "--X\r\nContent-Disposition: form-data\r\n\r\n1\r\n--X--", "X"],
    [
      "a part that is no form data",
      '--X\r\nContent-Disposition: attachment; name="a"\r\n\r\n1\r\n--X--',
      "X",
    ],
    ["a part without headers", "--X\r\n\r\n1\r\n--X--", "X"],
    ["a header without a colon", "--X\r\nContent-Disposition\r\n\r\n1\r\n--X--", "X"],
    ["headers without an end", '--X\r\nContent-Disposition: form-data; name="a"\r\n--X--', "X"],
    [
      "a header that comes twice",
      '--X\r\nContent-Disposition: form-data; name="a"\r\ncontent-disposition: form-data; name="b"\r\n\r\n1\r\n--X--',
      "X",
    ],
    [
      "a parameter that comes twice",
      '--X\r\nContent-Disposition: form-data; name="a"; name="b"\r\n\r\n1\r\n--X--',
      "X",
    ],
    [
      "a line that continues another",
      '--X\r\nX-A: 1\r\n Content-Disposition: form-data; name="a"\r\n\r\n1\r\n--X--',
      "X",
    ],
    [
      "a part whose bytes are coded",
      '--X\r\nContent-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: base64\r\n\r\nMQ==\r\n--X--',
      "X",
    ],
    ["bare line feeds", '--X\nContent-Disposition: form-data; name="a"\n\n1\n--X--', "X"],
  ])("is malformed with %s", (_what, body, boundary) => {
    expect(parseMultipart(encode(body), boundary)).toBeUndefined();
  });

  it("reads a form without fields", () => {
    expect(parseMultipart(encode("--X--\r\n"), "X")).toEqual([]);
  });

  it("counts both names of a file, of which readers take one or the other", () => {
    const named = (plain: string) =>
      parseMultipart(
        written(
          [`Content-Disposition: form-data; name="a"; filename="${plain}"; filename*=UTF-8''x`],
          "",
          "X",
        ),
        "X",
      )?.[0]?.filename;
    expect(named("b")).not.toBe(named("c"));
  });

  it("never takes two forms for one that the platform's parser reads differently", async () => {
    await fc.assert(
      fc.asyncProperty(anyHead, anyHead, anyText, async (head, otherHead, text) => {
        const [one, other] = [written(head, text, "X"), written(otherHead, text, "Y")];
        const parsed = [parseMultipart(one, "X"), parseMultipart(other, "Y")];
        if (parsed.includes(undefined) || JSON.stringify(parsed[0]) !== JSON.stringify(parsed[1])) return;
        const read = await Promise.all([platformReads(one, "X"), platformReads(other, "Y")]);
        // What it refuses is no form for a handler either.
        if (!read.includes(undefined)) expect(read[1]).toEqual(read[0]);
      }),
      { numRuns: 2_000 },
    );
  });

  it("is bounded in its parts", () => {
    expect(parseMultipart(encode(`${field("a", "").repeat(10_001)}--X--`), "X")).toBeUndefined();
    expect(parseMultipart(encode(`${field("a", "").repeat(10_000)}--X--`), "X")).toHaveLength(10_000);
  });

  it("never throws", () => {
    const piece = fc.constantFrom(
      "--X",
      "\r\n",
      "--",
      'Content-Disposition: form-data; name="a"',
      "a",
      "\r",
      "\n",
      "-",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const parts = parseMultipart(encode(pieces.join("")), "X");
        expect(parts === undefined || Array.isArray(parts)).toBe(true);
      }),
    );
  });
});
