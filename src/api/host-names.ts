import type { FastifyInstance } from 'fastify';
import { hostMatcher } from '../lib/wildcard.ts';
import { kilnError } from '../errors.ts';

/** Admits only requests whose host matches a name; `*` and `?` are wildcards. Others fail with hostForbidden. */
export function requireHostName(app: FastifyInstance, names: readonly string[]): void {
  if (names.includes('*')) return;
  const isAllowed = hostMatcher(names);
  app.addHook('onRequest', ({ hostname }, _reply, done) => {
    done(isAllowed(hostname) ? undefined : kilnError('hostForbidden', hostname));
  });
}
