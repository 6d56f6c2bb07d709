/**
 * @module test/servers/support/databases
 *
 * Fresh databases on a server that several test files share, so that no file sees another's records.
 */
import { Redis } from "ioredis";
import mysql from "mysql2/promise";
import pg from "pg";

let made = 0;

/** Unique also among runs that share a server given by the environment. */
function freshName(): string {
  made += 1;
  return `oncekey_${process.pid}_${Date.now().toString(36)}_${made}`;
}

/** Where a database is, and how it is removed. */
export interface Database {
  readonly url: string;
  readonly drop: () => Promise<void>;
}

export async function createPostgresDatabase(serverUrl: string): Promise<Database> {
  const name = freshName();
  await inPostgres(serverUrl, `create database ${name}`);
  return {
    url: withPath(serverUrl, name),
    drop: () => inPostgres(serverUrl, `drop database if exists ${name} with (force)`),
  };
}

async function inPostgres(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

export async function createMysqlDatabase(serverUrl: string): Promise<Database> {
  const name = freshName();
  await inMysql(serverUrl, `create database ${name} character set utf8mb4`);
  return {
    url: withPath(serverUrl, name),
    drop: () => inMysql(serverUrl, `drop database if exists ${name}`),
  };
}

async function inMysql(url: string, statement: string): Promise<void> {
  const connection = await mysql.createConnection(url);
  try {
    await connection.query(statement);
  } finally {
    await connection.end();
  }
}

/** Redis numbers its databases. What a run before this one left is removed now, since nobody could do so when it crashed. */
export async function emptyRedisDatabase(serverUrl: string, number: number): Promise<Database> {
  const url = withPath(serverUrl, String(number));
  const empty = async () => {
    const redis = new Redis(url, { retryStrategy: () => null });
    try {
      await redis.flushdb();
    } finally {
      redis.disconnect();
    }
  };
  await empty();
  return { url, drop: empty };
}

function withPath(serverUrl: string, path: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${path}`;
  return url.href;
}
