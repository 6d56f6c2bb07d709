import { describe, expect, it } from "vitest";
import {
  bytesBody,
  compare,
  form,
  json,
  none,
  parsedBody,
  request,
  textBody,
} from "../../test/support/fingerprint-requests.js";
import { compareFingerprints } from "../core/fingerprint.js";
import { createFingerprinter, type FingerprintRequest, type FingerprintSetting } from "./fingerprint.js";

describe("settings", () => {
  it("by bytes, takes another spelling for another request, and bytes and text for one", () => {
    expect(compare(json(bytesBody('{"a":1}')), json(bytesBody('{ "a":1}')), "bytes")).toBe("different");
    expect(compare(json(bytesBody('{"a":1}')), json(textBody('{"a":1}')), "bytes")).toBe("same");
    expect(compare(request(none), json(bytesBody("")), "bytes")).toBe("same");
    // There are no bytes of a parsed body: nobody can tell.
    expect(compare(json(bytesBody('{"a":1}')), json(parsedBody({ a: 1 })), "bytes")).toBe("incomparable");
    expect(compare(json(parsedBody({ a: 1 })), json(parsedBody({ a: 2 })), "bytes")).toBe("different");
  });

  it("by fields, looks at these only", () => {
    const fields = { fields: ["/amount", "/to/iban"] };
    const body = (text: string) => json(bytesBody(text));
    expect(
      compare(body('{"amount":1,"to":{"iban":"x","n":1}}'), body('{"to":{"iban":"x"},"amount":1}'), fields),
    ).toBe("same");
    expect(compare(body('{"amount":1}'), body('{"amount":2}'), fields)).toBe("different");
    expect(compare(body('{"amount":null}'), body("{}"), fields)).toBe("different");
    expect(compare(form(bytesBody("amount=1&x=1")), form(bytesBody("amount=1&x=2")), fields)).toBe("same");
    expect(
      compare(body('{"amount":12345678901234567890}'), body('{"amount":12345678901234567891}'), fields),
    ).toBe("different");
    expect(
      compare(request(bytesBody("a"), "text/plain"), request(bytesBody("b"), "text/plain"), fields),
    ).toBe("different");
  });

  it("by exception, leaves these out", () => {
    const except = { except: ["/sentAt", "/meta/trace"] };
    const body = (text: string) => json(bytesBody(text));
    expect(compare(body('{"a":1,"sentAt":1}'), body('{"a":1,"sentAt":2,"meta":{}}'), except)).toBe(
      "different",
    );
    expect(compare(body('{"a":1,"sentAt":1}'), body('{"sentAt":2,"a":1}'), except)).toBe("same");
    expect(compare(body('{"a":1,"meta":{"trace":1}}'), body('{"a":1,"meta":{}}'), except)).toBe("same");
  });

  it("by function, looks at what it returns only", () => {
    const byPath = ({ target }: FingerprintRequest) => new Map([["target", target]]);
    expect(compare(json(bytesBody("1")), json(bytesBody("2")), byPath)).toBe("same");
    expect(compare(request(none, undefined, "/a"), request(none, undefined, "/b"), byPath)).toBe("different");
  });

  it("off, takes everything for the same", () => {
    expect(compare(json(bytesBody("1")), request(none, undefined, "/other", "PUT"), "off")).toBe("same");
  });

  it("cannot compare across a deploy that changed the setting, and never says different", () => {
    const settings: FingerprintSetting[] = [
      ...(["request", "bytes", "off"] as const),
      ...[{ fields: ["/a"] }, { fields: ["/b"] }, { except: ["/a"] }, () => 1, () => 2],
    ];
    const asked = json(bytesBody('{"a":1}'));
    const made = settings.map((setting) => createFingerprinter(setting)(asked));
    for (const [index, one] of made.entries()) {
      for (const other of made.slice(index + 1)) expect(compareFingerprints(one, other)).toBe("incomparable");
    }
  });

  it("compares bodies that were too large by their length, and with no others", () => {
    const skipped = (length?: number) => request({ kind: "skipped", length }, "video/mp4");
    expect(compare(skipped(5e6), skipped(5e6))).toBe("same");
    expect(compare(skipped(5e6), skipped(6e6))).toBe("different");
    expect(compare(skipped(undefined), request(bytesBody("x"), "video/mp4"))).toBe("incomparable");
  });

  it("refuses pointers that are none, all at once", () => {
    expect(() => createFingerprinter({ fields: ["amount", "/ok", "/a~2"] })).toThrow(
      expect.objectContaining({
        code: "CONFIGURATION_INVALID",
        problems: [expect.any(String), expect.any(String)],
      }),
    );
    expect(() => createFingerprinter({ except: [] })).toThrow(
      expect.objectContaining({ code: "CONFIGURATION_INVALID" }),
    );
  });

  it("refuses what a function promises, and leaves no rejection to nobody", async () => {
    const unheard: unknown[] = [];
    const hear = (error: unknown) => void unheard.push(error);
    process.on("unhandledRejection", hear);
    const promised = createFingerprinter(async () => {
      throw new Error("no data");
    });
    expect(() => promised(request(none))).toThrow(expect.objectContaining({ code: "INPUT_UNSUPPORTED" }));
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", hear);
    expect(unheard).toEqual([]);
  });

  it("is frozen: a fingerprint stored by this version has to compare after an upgrade", () => {
    const asked = { ...json(bytesBody('{"b":1,"a":"x"}')), target: "/orders?b=1&a=2" };
    expect(createFingerprinter()(asked)).toBe("r1:MS_l3oM_VwdDQSqyVJHuBex04-yBOtEVeEnFnHjZRIA");
  });
});
