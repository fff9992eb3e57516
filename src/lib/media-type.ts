import type { FastifyInstance } from 'fastify';

/** Syntax `type/subtype` (RFC 9110 8.3.1). */
const TYPE = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+$/;
/** Longer than any real value, parameters included. */
const MAX_LENGTH = 256;

/** Media type of a `Content-Type`, without parameters and in lower case. */
export function mediaType(contentType: string): string {
  return (contentType.split(';')[0] ?? '').trim().toLowerCase();
}

/**
 * Media type that a malformed `Content-Type` certainly means: one that was sent twice, which proxies join with a comma, or
 * whose parameters lack their semicolon. Undefined where it means none, or several.
 */
export function meantMediaType(contentType: string): string | undefined {
  if (contentType.length > MAX_LENGTH) return undefined;
  const [first, ...others] = contentType.split(',').map(leadingType);
  return others.every((type) => type === first) ? first : undefined;
}

/** Type at the beginning of a value, if only parameters follow it, with their semicolon or without. */
function leadingType(value: string): string | undefined {
  const [beforeParameters = ''] = value.split(';', 1);
  const [type = '', ...words] = beforeParameters.trim().toLowerCase().split(/\s+/);
  return TYPE.test(type) && !words.some((word) => word.includes('/')) ? type : undefined;
}

/**
 * Makes an app accept bodies whose `Content-Type` is not of RFC 9110's form, but is sent by real clients: empty, the same
 * twice, or with parameters without a semicolon. Other faults still cause 415.
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
