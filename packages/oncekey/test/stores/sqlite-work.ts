import { claimOf, openConnection, openStore, temporaryFile, transactionOf } from "./sqlite-fixture.js";

/** A store with a table of the application's, one claimed key and a transaction for it. */
export async function openWork(options: Parameters<typeof openStore>[1] = {}) {
  const path = temporaryFile();
  const application = openConnection(path);
  application.exec("CREATE TABLE payments (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL UNIQUE)");
  const store = openStore(path, options);
  const claim = claimOf("a", { guarantee: "exactly-once" });
  await store.claim(claim);
  const begin = (maxTransactionMs?: number) => {
    const session = store.begin?.(transactionOf(claim, maxTransactionMs));
    if (session === undefined) throw new Error("The store has no transactions");
    return session;
  };
  const payments = () => application.prepare("SELECT amount FROM payments ORDER BY id").all([]).length;
  return { path, application, store, claim, begin, payments };
}

export const INSERT = "INSERT INTO payments (amount) VALUES (?)";
