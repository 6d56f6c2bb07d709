import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parameterOf } from "./media-type.js";
import { parseMultipart } from "./multipart.js";

const encode = (text: string) => new TextEncoder().encode(text);

/** What a client sends, written by the platform's own serialiser. */
async function serialise(form: FormData) {
  const response = new Response(form);
  const boundary = parameterOf(response.headers.get("content-type") ?? "", "boundary");
  return { bytes: new Uint8Array(await response.arrayBuffer()), boundary };
}

const field = (name: string, text: string) =>
  `--X\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`;

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
    ["bare line feeds", '--X\nContent-Disposition: form-data; name="a"\n\n1\n--X--', "X"],
  ])("is malformed with %s", (_what, body, boundary) => {
    expect(parseMultipart(encode(body), boundary)).toBeUndefined();
  });

  it("reads a form without fields", () => {
    expect(parseMultipart(encode("--X--\r\n"), "X")).toEqual([]);
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
