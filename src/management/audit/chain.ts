import { createHmac, timingSafeEqual } from 'node:crypto';

export interface AuditLine {
  /** JSON of the fields before the MAC. */
  readonly body: string;
  readonly mac: string;
  readonly fields: { readonly [name: string]: unknown };
}

const LINE = /^(\{.*),"mac":"([\w-]{43})"\}$/s;

/**
 * The next line of a log, without a line end: JSON, whose last field is a MAC over the other fields and the MAC of the line
 * before. So no line can be altered, removed or moved without the key, except for the last lines of the last file.
 * @param before MAC of the line before; '' for the very first one
 */
export function sealLine(key: string, before: string, fields: AuditLine['fields']): { text: string; mac: string } {
  const body = JSON.stringify(fields);
  const mac = macOf(key, before, body).toString('base64url');
  return { text: `${body.slice(0, -1)},"mac":"${mac}"}`, mac };
}

/** @returns undefined for a text that is no line of an audit log */
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

/** Whether a line was written with one of the keys, and after the line with the MAC `before`. */
export function isSealed(keys: readonly string[], before: string, { body, mac }: AuditLine): boolean {
  const given = Buffer.from(mac, 'base64url');
  return keys.some((key) => {
    const right = macOf(key, before, body);
    return given.length === right.length && timingSafeEqual(given, right);
  });
}

/** MAC of the last line of the previous file, from the first line of a file; undefined for any other line. */
export function formerOf({ fields: { event, former } }: AuditLine): string | undefined {
  return event === 'begun' ? (typeof former === 'string' ? former : '') : undefined;
}

function macOf(key: string, before: string, body: string): Buffer {
  return createHmac('sha256', key).update(`kiln audit 1\n${before}\n${body}`).digest();
}
