import { describe, expect, it } from "vitest";
import { fieldValue, fieldValues, readResponse, requestBytes } from "./raw-message.js";

function read(text: string, { method = "POST", ended = false } = {}) {
  return readResponse(method, Buffer.from(text, "latin1"), ended);
}

describe("requestBytes", () => {
  it("writes what it is told, byte by byte", () => {
    const request = {
      method: "POST",
      path: "/a?b=c",
      headers: [
        ["X-A", " 1"],
        ["x-a", "caf\u00e9"],
      ] as const,
      body: Uint8Array.of(0xff, 0),
    };
    expect(requestBytes(request).toString("latin1")).toBe(
      "POST /a?b=c HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-A:  1\r\nx-a: caf\u00e9\r\nContent-Length: 2\r\n\r\n\u00ff\0",
    );
  });

  it("leaves the framing of a body to whoever gave one", () => {
    const headers = [["Transfer-Encoding", "chunked"]] as const;
    expect(requestBytes({ method: "POST", path: "/", headers, body: "0\r\n\r\n" }).toString()).not.toContain(
      "Content-Length",
    );
    expect(requestBytes({ method: "GET", path: "/" }).toString()).not.toContain("Content-Length");
  });
});

describe("readResponse", () => {
  it("keeps header lines as they are, in order", () => {
    const response = read("HTTP/1.1 201 Created\r\nX-B: 2\r\nx-b:1\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n");
    expect(response?.headers).toEqual([
      ["X-B", "2"],
      ["x-b", "1"],
      ["X-Empty", ""],
      ["Content-Length", "0"],
    ]);
    expect(response).toMatchObject({ status: 201, complete: true });
    if (response === undefined) return;
    expect(fieldValues(response, "X-b")).toEqual(["2", "1"]);
    expect(() => fieldValue(response, "x-b")).toThrow("2 times");
    expect(fieldValue(response, "absent")).toBeUndefined();
  });

  it.each([
    ["HTTP/1.1 200 OK\r\nContent-Len", undefined],
    ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", { body: "ab", complete: false }],
    ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", { body: "abc", complete: true }],
    [
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nA\r\n0123456789\r\n0\r\n\r\n",
      { body: "ab0123456789", complete: true },
    ],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", { body: "ab", complete: false }],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", { body: "ab", complete: false }],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", { body: "", complete: false }],
    ["HTTP/1.1 200 OK\r\n\r\nab", { body: "ab", complete: false }],
    ["HTTP/1.1 204 No Content\r\n\r\n", { body: "", complete: true }],
    [
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 \r\nContent-Length: 1\r\n\r\na",
      { body: "a", complete: true },
    ],
  ])("reads %j", (text, expected) => {
    const response = read(text);
    expect(response && { body: response.body.toString(), complete: response.complete }).toEqual(expected);
  });

  it("takes a body without framing to end with its connection", () => {
    expect(read("HTTP/1.1 200 OK\r\n\r\nab", { ended: true })).toMatchObject({ complete: true });
    expect(read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", { ended: true })).toMatchObject({
      complete: false,
    });
  });

  it("knows that an answer to HEAD has no body", () => {
    expect(read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", { method: "HEAD" })).toMatchObject({
      complete: true,
    });
  });

  it.each([
    ["HTTP/1.0 200 OK\r\n\r\n", "status line"],
    ["HTTP/1.1 20 OK\r\n\r\n", "status line"],
    ["HTTP/1.1 200 OK\r\nX A: 1\r\n\r\n", "header line"],
    ["HTTP/1.1 200 OK\r\n folded\r\n\r\n", "header line"],
    ["HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both"],
    ["HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "2 times"],
    ["HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "Content-Length"],
    ["HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "framing of a 204"],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "Transfer-Encoding"],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "chunk size"],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "after a chunk"],
    ["HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", "after the end"],
    ["HTTP/1.1 204 No Content\r\n\r\nab", "after the end"],
  ])("refuses %j", (text, what) => {
    expect(() => read(text)).toThrow(what);
  });
});
