/**
 * @module test/servers/faults/apps/stores
 *
 * How each store is opened, in whichever process, and what is done behind its back: rows are counted, records are made to stand
 * in the way. Clients and stores are loaded when they are asked for, so that a process of one store starts quickly.
 */

/**
 * @typedef {{ readonly label: string, readonly run: string }} Row
 *
 * @typedef {object} Opened
 * @property {import("oncekey").Store<any>} store
 * @property {(transaction: any, row: Row) => Promise<unknown>} [insert] writes a row through the transaction of the work
 * @property {(transaction: any, id: number) => Promise<unknown>} [touch] changes account `id`, 1 or 2, and so keeps it to itself
 * @property {() => Promise<void>} close
 *
 * @typedef {{ readonly small?: boolean }} OpenOptions `small`: as few connections as the store can do with
 *
 * @typedef {object} Outsider sees what is committed, through connections that the store knows nothing of
 * @property {(label: string) => Promise<readonly Row[]>} rows
 * @property {() => Promise<() => Promise<void>>} [blockRecords] every call on records waits, until what it returns is called
 * @property {() => Promise<number>} [terminateWaiting] ends the connections that wait for the records, and says how many
 * @property {() => Promise<number>} [terminateOpen] ends the connections whose transaction is open, and says how many
 * @property {() => Promise<void>} close
 *
 * @typedef {object} StoreKind
 * @property {(address: string, options?: OpenOptions) => Promise<Opened>} open
 * @property {(address: string) => Promise<Outsider>} outside also makes what is needed there, if it is not there yet
 */

/** Less than the quarter of a lease that the core waits, so that a call has ended when its caller stops waiting. */
const timeoutMs = 1_000;

const ACCOUNTS = "UPDATE accounts SET changes = changes + 1 WHERE id = ";

/** @type {StoreKind} */
const sqlite = {
  async open(address) {
    const [{ default: Database }, { fromLibsql, sqliteStore }] = await Promise.all([
      import("libsql"),
      import("oncekey/stores/sqlite"),
    ]);
    const store = sqliteStore(fromLibsql(() => new Database(address)));
    return {
      store,
      insert: (transaction, { label, run }) =>
        transaction.run("INSERT INTO effects (label, run) VALUES (?, ?)", [label, run]),
      close: store.close,
    };
  },
  async outside(address) {
    const { default: Database } = await import("libsql");
    const database = new Database(address);
    database.exec(
      "PRAGMA journal_mode = wal; CREATE TABLE IF NOT EXISTS effects (label TEXT NOT NULL, run TEXT NOT NULL)",
    );
    return {
      rows: async (label) =>
        /** @type {Row[]} */ (
          database.prepare("SELECT label, run FROM effects WHERE label = ?").all([label])
        ),
      close: async () => void database.close(),
    };
  },
};

/** @type {StoreKind} */
const postgres = {
  async open(address, { small = false } = {}) {
    const [{ default: pg }, { fromPg, postgresStore }] = await Promise.all([
      import("pg"),
      import("oncekey/stores/postgres"),
    ]);
    const pool = new pg.Pool({ connectionString: address, max: 1 });
    pool.on("error", () => {});
    const size = small ? { connections: 1, transactions: 1 } : { connections: 2, transactions: 5 };
    const store = postgresStore(fromPg(pool), { timeoutMs, ...size });
    return {
      store,
      insert: (transaction, { label, run }) =>
        transaction.query("INSERT INTO effects (label, run) VALUES ($1, $2)", [label, run]),
      touch: (transaction, id) => transaction.query(`${ACCOUNTS}$1`, [id]),
      close: async () => {
        await store.close();
        await pool.end();
      },
    };
  },
  async outside(address) {
    const [{ default: pg }, { fromPg, postgresStore }] = await Promise.all([
      import("pg"),
      import("oncekey/stores/postgres"),
    ]);
    const pool = new pg.Pool({ connectionString: address, max: 3 });
    pool.on("error", () => {});
    // Several places make it at once; IF NOT EXISTS alone would let them meet.
    await pool.query(`BEGIN; SELECT pg_advisory_xact_lock(1);
      CREATE TABLE IF NOT EXISTS effects (label text NOT NULL, run text NOT NULL);
      CREATE TABLE IF NOT EXISTS accounts (id int PRIMARY KEY, changes int NOT NULL);
      INSERT INTO accounts VALUES (1, 0), (2, 0) ON CONFLICT DO NOTHING; COMMIT`);
    const store = postgresStore(fromPg(pool), { listen: false });
    await store.migrate();
    await store.close();
    return {
      rows: async (label) =>
        (await pool.query("SELECT label, run FROM effects WHERE label = $1", [label])).rows,
      async blockRecords() {
        const client = await pool.connect();
        await client.query("BEGIN; LOCK TABLE oncekey_records IN ACCESS EXCLUSIVE MODE");
        return async () => {
          await client.query("ROLLBACK");
          client.release();
        };
      },
      async terminateWaiting() {
        const { rowCount } = await pool.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        return rowCount ?? 0;
      },
      async terminateOpen() {
        const { rowCount } = await pool.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND state = 'idle in transaction'`,
        );
        return rowCount ?? 0;
      },
      close: () => pool.end(),
    };
  },
};

/** @type {StoreKind} */
const mysql = {
  async open(address, { small = false } = {}) {
    const [{ createPool }, { fromMysql2, mysqlStore }] = await Promise.all([
      import("mysql2/promise"),
      import("oncekey/stores/mysql"),
    ]);
    const size = small ? { connections: 1, transactions: 1 } : { connections: 2, transactions: 5 };
    const store = mysqlStore(fromMysql2(createPool, address), { timeoutMs, ...size });
    return {
      store,
      insert: (transaction, { label, run }) =>
        transaction.query("INSERT INTO effects (label, run) VALUES (?, ?)", [label, run]),
      touch: (transaction, id) => transaction.query(`${ACCOUNTS}?`, [id]),
      close: store.close,
    };
  },
  async outside(address) {
    const [{ createPool }, { fromMysql2, mysqlStore }] = await Promise.all([
      import("mysql2/promise"),
      import("oncekey/stores/mysql"),
    ]);
    const pool = createPool({ uri: address, connectionLimit: 3 });
    await pool.query(
      "CREATE TABLE IF NOT EXISTS effects (label varchar(100) NOT NULL, run varchar(100) NOT NULL)",
    );
    await pool.query("CREATE TABLE IF NOT EXISTS accounts (id int PRIMARY KEY, changes int NOT NULL)");
    await pool.query("INSERT IGNORE INTO accounts VALUES (1, 0), (2, 0)");
    const store = mysqlStore(fromMysql2(createPool, address));
    await store.migrate();
    await store.close();
    return {
      async rows(label) {
        const [rows] = await pool.query("SELECT label, run FROM effects WHERE label = ?", [label]);
        return /** @type {Row[]} */ (rows);
      },
      async blockRecords() {
        const connection = await pool.getConnection();
        await connection.query("LOCK TABLES oncekey_records WRITE");
        return async () => {
          await connection.query("UNLOCK TABLES");
          connection.release();
        };
      },
      async terminateWaiting() {
        const [waiting] = await pool.query(
          "SELECT id FROM information_schema.processlist WHERE db = database() AND state LIKE 'Waiting for table%'",
        );
        return killAll(pool, /** @type {Connected[]} */ (waiting));
      },
      async terminateOpen() {
        const [open] = await pool.query(
          "SELECT id FROM information_schema.processlist JOIN information_schema.innodb_trx ON trx_mysql_thread_id = id WHERE db = database() AND command = 'Sleep'",
        );
        return killAll(pool, /** @type {Connected[]} */ (open));
      },
      close: () => pool.end(),
    };
  },
};

/** @typedef {{ id: number }} Connected */

/**
 * @param {import("mysql2/promise").Pool} pool
 * @param {readonly Connected[]} connections
 */
async function killAll(pool, connections) {
  // One that has gone by itself is as good.
  for (const { id } of connections) await pool.query(`KILL CONNECTION ${id}`).catch(() => {});
  return connections.length;
}

/** @type {StoreKind} */
const redis = {
  async open(address) {
    const [{ Redis }, { fromIoredis, redisStore }] = await Promise.all([
      import("ioredis"),
      import("oncekey/stores/redis"),
    ]);
    const client = new Redis(address, { lazyConnect: true });
    const store = redisStore(fromIoredis(client), { answerTimeoutMs: timeoutMs });
    return {
      store,
      close: async () => {
        await store.close();
        client.disconnect();
      },
    };
  },
  outside: async () => ({ rows: async () => [], close: async () => {} }),
};

export const storeKinds = { sqlite, redis, postgres, mysql };

/** @typedef {keyof typeof storeKinds} StoreName */
