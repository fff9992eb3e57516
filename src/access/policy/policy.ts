import type { BlockList } from 'node:net';
import { blockList } from '../../config/networks.ts';
import { parseNetworks } from '../../config/values.ts';
import { Denial } from '../denial.ts';

/** Terms of a signed URL (docs/compatibility.md#signed-urls). Times in milliseconds since the epoch. */
export interface Policy {
  readonly urlExpire: number;
  readonly urlActivate: number | undefined;
  readonly streamExpire: number | undefined;
  readonly allowIp: BlockList | undefined;
  readonly realIp: BlockList | undefined;
}

/** Longest policy that is read, in characters of base64url. */
export const MAX_POLICY = 4096;
/** The last time that a date can be (ECMA-262, "Time Values and Time Range"). */
export const MAX_TIME_MS = 8.64e15;
const BASE64URL = /^[\w-]+={0,2}$/;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads the value of the policy parameter: base64url of a flat JSON object, padded or not. Keys that it does not know
 * are for others.
 * @throws Denial policyMalformed
 */
export function readPolicy(value: string): Policy {
  if (value.length > MAX_POLICY) throw malformed(`is longer than ${MAX_POLICY} characters`);
  if (!BASE64URL.test(value)) throw malformed('is not base64url');
  const object = parse(Buffer.from(value, 'base64url'));
  for (const key of Object.keys(object))
    if (typeof object[key] === 'object' && object[key] !== null) throw malformed('has nested values');
  const urlExpire = time(object, 'url_expire');
  if (urlExpire === undefined) throw malformed('has no url_expire');
  return {
    urlExpire,
    urlActivate: time(object, 'url_activate'),
    streamExpire: time(object, 'stream_expire'),
    allowIp: networks(object, 'allow_ip'),
    realIp: networks(object, 'real_ip'),
  };
}

function parse(bytes: Buffer): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    throw malformed('is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed('is not a JSON object');
  return value as Record<string, unknown>;
}

function own(object: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function time(object: Readonly<Record<string, unknown>>, key: string): number | undefined {
  const value = own(object, key);
  if (value === undefined) return undefined;
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > MAX_TIME_MS)
    throw malformed(`has a ${key} that is no time in milliseconds since 1970`);
  return value as number;
}

function networks(object: Readonly<Record<string, unknown>>, key: string): BlockList | undefined {
  const value = own(object, key);
  if (value === undefined) return undefined;
  const found = typeof value === 'string' ? parseNetworks(value) : undefined;
  if (found === undefined) throw malformed(`has a ${key} that is no network such as 192.0.2.0/24`);
  return blockList(found);
}

function malformed(what: string): Denial {
  return new Denial('policyMalformed', `the policy ${what}`);
}
