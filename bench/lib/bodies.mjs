/**
 * @module
 * The requests and the answer of the benchmark: about 1 KB each way.
 */

/** One level: what most small interfaces send. */
export const FLAT = JSON.stringify(
  Object.fromEntries(
    Array.from({ length: 24 }, (_, index) => [`field${index}`, `value ${index} of an order, ${index * 37}`]),
  ),
);

/** Objects in lists in objects, names out of order. */
export const NESTED = JSON.stringify({
  order: "0b1f0c2e-6a5c-4f6e-9a55-2f5f0d7f3a11",
  customer: {
    name: "Ada Lovelace",
    email: "ada@example.test",
    address: { street: "12 St James Square", city: "London" },
  },
  items: Array.from({ length: 8 }, (_, index) => ({
    sku: `SKU-${1000 + index}`,
    quantity: index + 1,
    price: { currency: "EUR", amount: 1999 + index, tax: { rate: 0.2, country: "GB" } },
  })),
});

/** What every variant answers, made anew each time as a handler would. */
export function answerOf(count) {
  return {
    id: count,
    status: "charged",
    receipt: "x".repeat(900),
    at: "2026-01-01T00:00:00.000Z",
  };
}
