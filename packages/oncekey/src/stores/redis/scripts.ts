/**
 * @module
 * The scripts: what is more than one native command and has to be one step, in one round trip.
 *
 * Each names its keys and arguments, and answers with a number that says how it ended. They know a record by the places of its
 * head line (`layout.ts`) and decide nothing beside: what a number means is left to `calls.ts`, and every case that is not
 * one of each request's is sent back to be decided by the transitions of the core.
 *
 * Invariants: one key each, so that they run in a cluster; the time is the server's; the wake-up is published in the same
 * step as the change, so nobody can be woken too early, and it costs no round trip. The channel has the name of the key, which
 * puts it in the key's slot.
 */
import { FORMAT, HEAD_LINE_BYTES, OPEN, PLACES } from "./layout.js";

export interface Script {
  readonly name: string;
  readonly text: string;
  /** The answers after which something is written that its caller relies on. */
  readonly wrote: readonly number[];
}

/** Numbers that scripts answer with. */
export const ENDED = {
  unreadable: -1,
  /** Not one of the frequent cases: nothing was changed. */
  otherwise: 0,
  done: 1,
} as const;

/** A part of the head line of `v`, by Lua's places, which count from 1 and include the last. */
function part(name: keyof typeof PLACES): string {
  const [from, to] = PLACES[name];
  return `string.sub(v, ${from + 1}, ${to})`;
}

const [, KINDS_END] = PLACES.bodyKind;

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** Reads the record of KEYS[1] into `v`, `state` and `mine`; ARGV[1] is the caller's token. */
const LOOK = `
local v = redis.call('GET', KEYS[1])
if not v then return 0 end
if #v < ${HEAD_LINE_BYTES} or string.sub(v, 1, 2) ~= '${FORMAT}' then return -1 end
local state = ${part("state")}
local tokenEnd = ${HEAD_LINE_BYTES} + tonumber(${part("tokenBytes")})
local mine = string.sub(v, ${HEAD_LINE_BYTES + 1}, tokenEnd) == ARGV[1]`;

/** Since when it is claimed: as long as the claim was not renewed, its expiry says so. */
const CLAIMED_AT = `
local claimedAt = ${part("claimedAtMs")}
if claimedAt == '${OPEN}' then
  local endsAt = redis.call('PEXPIRETIME', KEYS[1])
  if endsAt < 0 then return -1 end
  claimedAt = endsAt - ${part("leaseMs")} - ${part("retentionMs")}
end`;

/**
 * Renews the lease of a claim.
 *
 * KEYS[1] the record · ARGV[1] token · ARGV[2] lease in ms, in twelve digits.
 * Answers 0 no record, 1 renewed, 2 another's, 3 unknown, 4 completed, -1 unreadable.
 */
const EXTEND = `${LOOK}
if state == 'R' then return mine and 2 or 0 end
if not mine then return 2 end
if state == 'U' then return 3 end
if state == 'D' then return 4 end
if state ~= 'C' then return -1 end
${CLAIMED_AT}
local changedAt = ${part("changedAtMs")}
if changedAt == '${OPEN}' then changedAt = claimedAt end
redis.call('SET', KEYS[1],
  string.sub(v, 1, ${KINDS_END}) .. claimedAt .. changedAt .. ARGV[2] .. string.sub(v, ${PLACES.retentionMs[0] + 1}),
  'PX', tonumber(ARGV[2]) + tonumber(${part("retentionMs")}))
return 1`;

/**
 * Completes a claim of the caller, or what was its claim until it was declared unknown. When is left open: the new expiry
 * says it, and asking for the time is a good part of what a script costs.
 *
 * KEYS[1] the record · ARGV[1] token · ARGV[2] retention in ms in twelve digits, kinds of head and body, bytes of the head
 * in nine digits · ARGV[3] head and body.
 * Answers 1 stored, 2 it had been unknown, 3 this token had completed it before, 0 otherwise, -1 unreadable.
 */
const COMPLETE = `${LOOK}
if not mine or state == 'R' then return 0 end
if state == 'D' then return 3 end
if state ~= 'C' and state ~= 'U' then return -1 end
${CLAIMED_AT}
local metaEnd = tokenEnd + tonumber(${part("metaBytes")})
redis.call('SET', KEYS[1],
  '${FORMAT}D' .. string.sub(ARGV[2], 13, 14) .. claimedAt .. '${OPEN}' .. ${part("leaseMs")} .. string.sub(ARGV[2], 1, 12)
    .. string.sub(v, ${PLACES.attempt[0] + 1}, ${PLACES.metaBytes[1]}) .. string.sub(ARGV[2], 15, 23)
    .. string.sub(v, ${HEAD_LINE_BYTES + 1}, metaEnd) .. ARGV[3],
  'PX', tonumber(string.sub(ARGV[2], 1, 12)))
redis.call('SPUBLISH', KEYS[1], '')
return state == 'C' and 1 or 2`;

/**
 * Removes the record of a claim that was not carried out and of which nothing is to be kept.
 *
 * KEYS[1] the record · ARGV[1] token · ARGV[2] '1' if the work was started · ARGV[3] '1' to keep the number of attempts.
 * Answers 0 not held, 1 removed, 2 completed, 3 held and something is to be kept, -1 unreadable.
 */
const RELEASE = `${LOOK}
if not mine or state == 'R' then return 0 end
if state == 'D' then return 2 end
if state ~= 'C' and state ~= 'U' then return -1 end
local first = tonumber(${part("attempt")}) == 1
if ARGV[2] == '1' and ARGV[3] == '1' or ARGV[2] ~= '1' and not first then return 3 end
redis.call('DEL', KEYS[1])
redis.call('SPUBLISH', KEYS[1], '')
return 1`;

/** KEYS[1] the record. Answers { its value, when it expires (-1 never, -2 no record), the server's time }. */
const READ = `${NOW}
return { redis.call('GET', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1]), now }`;

/** A function: { what of a value precedes its head, bytes of the value, when it expires }. `v` is its head line. */
const GLANCE_AT = `
local function glanceAt(key, v)
  if #v == ${HEAD_LINE_BYTES} and string.sub(v, 1, 2) == '${FORMAT}' then
    local metaBytes = (tonumber(${part("tokenBytes")}) or 0) + (tonumber(${part("metaBytes")}) or 0)
    v = v .. redis.call('GETRANGE', key, ${HEAD_LINE_BYTES}, ${HEAD_LINE_BYTES - 1} + metaBytes)
  end
  return { v, redis.call('STRLEN', key), redis.call('PEXPIRETIME', key) }
end`;

/**
 * Looks at records up to their results.
 *
 * KEYS the records, of one slot in a cluster. Answers for each what `glanceAt` gives, and last the server's time.
 */
const GLANCE = `${NOW}${GLANCE_AT}
local found = {}
for i, key in ipairs(KEYS) do
  local v = redis.pcall('GETRANGE', key, 0, ${HEAD_LINE_BYTES - 1})
  found[i] = type(v) == 'string' and glanceAt(key, v) or { 'not a string', 1, -1 }
end
found[#KEYS + 1] = now
return found`;

/**
 * Writes or removes a record if it is still what was read.
 *
 * The expiry is part of what is compared: it is what a renewal changes.
 *
 * KEYS[1] the record · ARGV[1] the value that was read, '' = none · ARGV[2] when that expires · ARGV[3] the new value,
 * '' = none · ARGV[4] when it expires, '-1' = never · ARGV[5] '1' to wake those who wait · ARGV[6] the server's time after
 * which whoever asked has been refused.
 * Answers 1 written, 0 it is not what was read, or too late.
 */
const WRITE = `${NOW}
if now >= tonumber(ARGV[6]) then return 0 end
local v = redis.call('GET', KEYS[1]) or ''
if v ~= ARGV[1] or tostring(redis.call('PEXPIRETIME', KEYS[1])) ~= ARGV[2] then return 0 end
if ARGV[3] == '' then
  redis.call('DEL', KEYS[1])
elseif ARGV[4] == '-1' then
  redis.call('SET', KEYS[1], ARGV[3])
else
  redis.call('SET', KEYS[1], ARGV[3], 'PXAT', ARGV[4])
end
if ARGV[5] == '1' then redis.call('SPUBLISH', KEYS[1], '') end
return 1`;

/**
 * One step through all keys of a server, looking at no more than the head line of each.
 *
 * No KEYS · ARGV[1] cursor · ARGV[2] pattern · ARGV[3] count · ARGV[4] letters of the states that are wanted.
 * Answers { the next cursor, the keys of records in these states and of what cannot be read, what `glanceAt` gives for each,
 * the server's time }.
 */
const WALK = `#!lua flags=no-writes,allow-cross-slot-keys${NOW}${GLANCE_AT}
local step = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3], 'TYPE', 'string')
local keys, found = {}, {}
for _, key in ipairs(step[2]) do
  local v = redis.call('GETRANGE', key, 0, ${HEAD_LINE_BYTES - 1})
  local state = ${part("state")}
  local known = string.sub(v, 1, 2) == '${FORMAT}' and string.find('CUDR', state, 1, true)
  if not known or string.find(ARGV[4], state, 1, true) then
    keys[#keys + 1] = key
    found[#found + 1] = glanceAt(key, v)
  end
end
return { step[1], keys, found, now }`;

export const SCRIPTS = {
  extend: { name: "extend", text: EXTEND, wrote: [1] },
  complete: { name: "complete", text: COMPLETE, wrote: [1, 2, 3] },
  release: { name: "release", text: RELEASE, wrote: [1] },
  read: { name: "read", text: READ, wrote: [] },
  glance: { name: "glance", text: GLANCE, wrote: [] },
  write: { name: "write", text: WRITE, wrote: [1] },
  walk: { name: "walk", text: WALK, wrote: [] },
} as const satisfies Record<string, Script>;
