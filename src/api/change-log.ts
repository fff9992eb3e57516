import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from '../log.ts';
import type { Patched } from '../management/dynamic-config.ts';

const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
/** Actions that only list, though they are called by POST. */
const LISTING = /:(?:records|pushes|hlsDumps)$/;
/** Actions that change no configuration and may come many times a second. */
const FREQUENT = /:sendEvents?$/;
const MOST_NAMES = 20;

/** Calls that have changed nothing. */
const unchanged = new WeakSet<FastifyRequest>();

/** What a change led to, for the answer: one that has changed nothing is not logged. */
export function noted<T>(request: FastifyRequest, { value, isChanged }: Patched<T>): T {
  if (!isChanged) unchanged.add(request);
  return value;
}

/**
 * Logs each call that may have changed something: what it was about, who called, and the id of the request. Events that
 * are sent with a stream are logged at debug level.
 */
export function logChanges(app: FastifyInstance, log: Logger): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { method, url, ip, id } = request;
    const path = url.replace(/[?#].*$/s, '');
    if (!READING.has(method) && !LISTING.test(path) && reply.statusCode < 400 && !unchanged.has(request)) {
      const names = namesIn(request);
      const what = names.length === 0 ? path : `${path} (${names.join(', ')})`;
      const fields = { method, path, names, status: reply.statusCode, requestId: id, remote: ip };
      log[FREQUENT.test(path) ? 'debug' : 'info']({ event: 'api.changed', ...fields }, `${method} ${what}`);
    }
    done();
  });
}

/** Names of what a call makes, or ids of tasks: they are in no path. */
function namesIn({ body }: FastifyRequest): string[] {
  const items: unknown[] = Array.isArray(body) ? body : [body];
  return items.slice(0, MOST_NAMES).flatMap((item) => {
    const { name: given, id } = (item ?? {}) as { name?: unknown; id?: unknown };
    const name = given ?? id;
    return typeof name === 'string' ? [name] : [];
  });
}
