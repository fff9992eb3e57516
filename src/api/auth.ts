import { hash, timingSafeEqual } from 'node:crypto';
import basicAuth from '@fastify/basic-auth';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { kilnError, type KilnError } from '../errors.ts';
import { secretMatcher } from '../lib/secret-matcher.ts';
import { mayLook } from './read-only.ts';
import type { ReadOnlyLinks } from './read-only-links.ts';
import type { WrongCredentials } from './wrong-credentials.ts';

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const MAX_SHOWN = 32;
/** Delay of the answer to a wrong credential, and limit of delayed answers. */
const DELAY_MS = 200;
const MAX_DELAYED = 1000;

/** Requests with the credential of a read-only link. */
const readOnly = new WeakSet<FastifyRequest>();

export function isReadOnly(request: FastifyRequest): boolean {
  return readOnly.has(request);
}

/**
 * Admits only requests that bear the access token as Basic credentials (RFC 7617). The token needs no colon. Others fail with
 * one of the 401 errors of docs/compatibility.md#authentication-and-cors: a wrong credential after a delay, and beyond the
 * limit of its client with 429 and the end of the connection. The credential of a read-only link admits requests that read
 * what it may show.
 */
export async function requireToken(
  app: FastifyInstance,
  accessToken: string,
  links: ReadOnlyLinks,
  wrong: WrongCredentials,
): Promise<void> {
  const expected = digest(accessToken);
  const isToken = (given: string): boolean => timingSafeEqual(digest(given), expected);

  await app.register(basicAuth, {
    validate: (user, password, _request, _reply, done) => {
      done(isToken(`${user}:${password}`) ? undefined : kilnError('credentialWrong'));
    },
  });
  const isUsual = secretMatcher(`Basic ${Buffer.from(accessToken).toString('base64')}`);
  app.addHook('onRequest', (request, reply, done) => {
    // the usual header needs no parsing
    if (isUsual(request.headers.authorization ?? '')) return done();
    app.basicAuth(request, reply, (refusal) => {
      const error = refusal === undefined ? undefined : explain(request.headers.authorization, isToken);
      if (error?.code !== 'credentialWrong') return done(error);
      void goByLink(request, reply, error, done);
    });
  });

  async function goByLink(request: FastifyRequest, reply: FastifyReply, error: KilnError, done: Done): Promise<void> {
    let found: Awaited<ReturnType<typeof links.check>>;
    try {
      found = await links.check(credentialOf(request.headers.authorization), Date.now());
    } catch (failure) {
      return done(failure as Error);
    }
    if (found === 'unknown') return discourage(request, reply, error, done);
    if (found === 'expired') return done(kilnError('readOnlyLinkExpired'));
    readOnly.add(request);
    done(mayLook(request) ? undefined : kilnError('readOnlyForbidden'));
  }

  let delayed = 0;
  type Done = (error?: Error) => void;
  function discourage(request: FastifyRequest, reply: FastifyReply, error: KilnError, done: Done): void {
    const { waitMs, isNews } = wrong.count(request.ip, performance.now());
    if (isNews)
      request.log.warn(
        { remote: request.ip },
        'too many wrong credentials for the management API: this address has to wait',
      );
    if (waitMs > 0) {
      reply.header('retry-after', String(Math.ceil(waitMs / 1000)));
      // HTTP/2 has no such header
      if (request.raw.httpVersionMajor === 1) reply.header('connection', 'close');
      done(kilnError('tooManyWrongCredentials'));
    } else if (delayed >= MAX_DELAYED) {
      done(error);
    } else {
      delayed++;
      setTimeout(() => {
        delayed--;
        done(error);
      }, DELAY_MS);
    }
  }
}

/** Content of a well-formed header of Basic credentials. */
function credentialOf(header = ''): string {
  return Buffer.from(header.split(' ')[1] ?? '', 'base64').toString();
}

/** Compares digests in constant time: timing reveals neither the length nor the start of the token. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** Reason to reject a header; undefined for the token without a colon, which RFC 7617 does not allow. */
function explain(header: string | undefined, isToken: (given: string) => boolean): KilnError | undefined {
  if (header === undefined || header === '') return kilnError('authorizationMissing');
  const [scheme, credentials, ...rest] = header.split(' ');
  if (!scheme || !credentials || rest.length > 0) return kilnError('authorizationMalformed');
  if (scheme.toLowerCase() !== 'basic') return kilnError('credentialTypeUnknown', scheme.slice(0, MAX_SHOWN));
  if (!BASE64.test(credentials)) return kilnError('credentialMalformed');
  return isToken(Buffer.from(credentials, 'base64').toString()) ? undefined : kilnError('credentialWrong');
}
