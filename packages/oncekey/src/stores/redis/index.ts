/**
 * @module
 * `oncekey/stores/redis`: the store on Redis or Valkey.
 */
export type {
  RedisArgument,
  RedisCommand,
  RedisConnection,
  RedisDriver,
  RedisEvents,
  RedisNode,
  RedisReply,
  Timeouts,
} from "./driver.js";
export type { DurabilityOptions } from "./durability.js";
export { fromIoredis, type IoredisClient } from "./ioredis.js";
export { fromNodeRedis, type NodeRedisClient } from "./node-redis.js";
export type { RedisStoreOptions } from "./options.js";
export { type RedisStore, redisStore } from "./store.js";
