import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from '../log.ts';
import type { Patched } from '../management/dynamic-config.ts';

const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const MOST_NAMES = 20;

/** Calls that have changed nothing. */
const unchanged = new WeakSet<FastifyRequest>();

/** What a change led to, for the answer: one that has changed nothing is not logged. */
export function noted<T>(request: FastifyRequest, { value, isChanged }: Patched<T>): T {
  if (!isChanged) unchanged.add(request);
  return value;
}

/** Logs each call that may have changed something: what it was about, who called, and the id of the request. */
export function logChanges(app: FastifyInstance, log: Logger): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { method, url, ip, id } = request;
    if (!READING.has(method) && reply.statusCode < 400 && !unchanged.has(request)) {
      const path = url.replace(/[?#].*$/s, '');
      const names = namesIn(request);
      const what = names.length === 0 ? path : `${path} (${names.join(', ')})`;
      const fields = { method, path, names, status: reply.statusCode, requestId: id, remote: ip };
      log.info({ event: 'api.changed', ...fields }, `${method} ${what}`);
    }
    done();
  });
}

/** Names of what a call makes: they are in no path. */
function namesIn({ body }: FastifyRequest): string[] {
  const items: unknown[] = Array.isArray(body) ? body : [body];
  return items.slice(0, MOST_NAMES).flatMap((item) => {
    const name: unknown = (item as { name?: unknown } | null | undefined)?.name;
    return typeof name === 'string' ? [name] : [];
  });
}
