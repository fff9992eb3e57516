import { createHmac, timingSafeEqual } from 'node:crypto';

/** A line of an audit log: what is in it, and the MAC that stands at its end. */
export interface AuditLine {
  /** JSON of the fields before the MAC. */
  readonly body: string;
  readonly mac: string;
  readonly fields: { readonly [name: string]: unknown };
}

const LINE = /^(\{.*),"mac":"([\w-]{43})"\}$/s;

/**
 * The next line of a log, without its end: JSON, whose last field is a MAC over the other fields and the MAC of the line
 * before. So none can be altered, removed or put elsewhere without the key, but for the last ones of the last file.
 * @param before MAC of the line before; '' for the first one of all
 */
export function sealLine(key: string, before: string, fields: AuditLine['fields']): { text: string; mac: string } {
  const body = JSON.stringify(fields);
  const mac = macOf(key, before, body).toString('base64url');
  return { text: `${body.slice(0, -1)},"mac":"${mac}"}`, mac };
}

/** @returns undefined for what is no line of an audit log */
export function readLine(text: string): AuditLine | undefined {
  const [, start, mac = ''] = LINE.exec(text) ?? [];
  if (start === undefined) return undefined;
  const body = `${start}}`;
  try {
    return { body, mac, fields: JSON.parse(body) as AuditLine['fields'] };
  } catch {
    return undefined;
  }
}

/** Whether a line is as it was written by who knows one of the keys, after the line with the MAC `before`. */
export function isSealed(keys: readonly string[], before: string, { body, mac }: AuditLine): boolean {
  const given = Buffer.from(mac, 'base64url');
  return keys.some((key) => {
    const right = macOf(key, before, body);
    return given.length === right.length && timingSafeEqual(given, right);
  });
}

/** The MAC of the last line of the file before, where a line begins a file; undefined for any other line. */
export function formerOf({ fields: { event, former } }: AuditLine): string | undefined {
  return event === 'begun' ? (typeof former === 'string' ? former : '') : undefined;
}

function macOf(key: string, before: string, body: string): Buffer {
  return createHmac('sha256', key).update(`kiln audit 1\n${before}\n${body}`).digest();
}
