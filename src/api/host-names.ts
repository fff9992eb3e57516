import type { FastifyInstance } from 'fastify';
import { wildcard } from '../core/wildcard.ts';
import { kilnError } from '../errors.ts';

/** Serves only requests whose host is one of the names, `*` and `?` being wildcards; others fail with hostForbidden. */
export function requireHostName(app: FastifyInstance, names: readonly string[]): void {
  if (names.includes('*')) return;
  const patterns = names.map((name) => wildcard(name));
  app.addHook('onRequest', (request, _reply, done) => {
    const host = request.hostname.replace(/^\[(.*)\]$/, '$1');
    done(patterns.some((pattern) => pattern.test(host)) ? undefined : kilnError('hostForbidden', host));
  });
}
