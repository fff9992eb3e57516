import type { FastifyInstance } from 'fastify';

/** `type/subtype` at the beginning of a `Content-Type` (RFC 9110 8.3.1), and what ends it: its parameters, if there are any. */
const LEADING_TYPE = /^\s*([\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+)\s*(?:;.*|\s[^/]*)?$/s;

/** Of a `Content-Type`, without its parameters and in lower case. */
export function mediaType(contentType: string): string {
  return (contentType.split(';')[0] ?? '').trim().toLowerCase();
}

/**
 * The type that a malformed `Content-Type` means beyond doubt: that of a value sent twice, which proxies join with a comma, or
 * whose parameters lack their semicolon. Undefined where it means none, or several.
 */
export function meantMediaType(contentType: string): string | undefined {
  const types = contentType.split(',').map((value) => LEADING_TYPE.exec(value)?.[1]?.toLowerCase());
  return types.every((type) => type === types[0]) ? types[0] : undefined;
}

/**
 * Has an app take bodies whose `Content-Type` real clients send though it is not of RFC 9110's form: empty, the same twice,
 * or with parameters without a semicolon. What is meant otherwise stays 415.
 */
export function takeMeantTypes(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const { headers } = request;
    const given = headers['content-type'];
    if (given?.trim() === '') delete headers['content-type'];
    else if (given !== undefined) headers['content-type'] = meantMediaType(given) ?? given;
    done();
  });
}
