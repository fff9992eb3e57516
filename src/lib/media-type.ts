import type { FastifyInstance } from 'fastify';

/** `type/subtype` (RFC 9110 8.3.1). */
const TYPE = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+$/;
/** No type that anybody means is longer, parameters included. */
const MAX_LENGTH = 256;

/** Of a `Content-Type`, without its parameters and in lower case. */
export function mediaType(contentType: string): string {
  return (contentType.split(';')[0] ?? '').trim().toLowerCase();
}

/**
 * The type that a malformed `Content-Type` means beyond doubt: that of a value sent twice, which proxies join with a comma, or
 * whose parameters lack their semicolon. Undefined where it means none, or several.
 */
export function meantMediaType(contentType: string): string | undefined {
  if (contentType.length > MAX_LENGTH) return undefined;
  const [first, ...others] = contentType.split(',').map(leadingType);
  return others.every((type) => type === first) ? first : undefined;
}

/** The type that a value begins with, where only parameters follow it, with their semicolon or without. */
function leadingType(value: string): string | undefined {
  const [beforeParameters = ''] = value.split(';', 1);
  const [type = '', ...words] = beforeParameters.trim().toLowerCase().split(/\s+/);
  return TYPE.test(type) && !words.some((word) => word.includes('/')) ? type : undefined;
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
