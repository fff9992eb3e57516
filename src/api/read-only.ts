import type { FastifyInstance, FastifyRequest } from 'fastify';

const APP = '/v1/vhosts/:vhost/apps/:app';
/** Routes for GET with a read-only link. None shows configuration, which contains secrets. */
const OPEN: ReadonlySet<string> = new Set([
  '/v1/version',
  '/v1/cluster/nodes',
  '/v1/cluster/streams',
  '/v1/cluster/sessions',
  '/v1/cluster/events',
  '/v1/cluster/quality',
  '/v1/cluster/channels',
  '/v1/vhosts',
  '/v1/vhosts/:vhost/apps',
  `${APP}/streams`,
  `${APP}/streams/:stream`,
  `${APP}/streams/:stream/sessions`,
  `${APP}/outputs/:output/thumbnail`,
  `${APP}/scheduledChannels`,
  `${APP}/scheduledChannels/:channel`,
  `${APP}/scheduledChannels/:channel/guide`,
  `${APP}/multiplexChannels`,
  `${APP}/multiplexChannels/:channel`,
  `${APP}/recordings`,
  `${APP}/recordings/:recording`,
  `${APP}::records`,
  `${APP}::pushes`,
  '/v1/stats/current',
  '/v1/stats/current/vhosts/:vhost',
  '/v1/stats/current/vhosts/:vhost/apps/:app',
  '/v1/stats/current/vhosts/:vhost/apps/:app/streams/:stream',
  '/v1/stats/current/vhosts/:vhost/apps/:app/streams/:stream/sessions/:session',
]);
const READING: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Whether a read-only link admits the request. */
export function mayLook({ method, routeOptions }: FastifyRequest): boolean {
  // parameters have patterns where an action may follow
  const route = routeOptions.url?.replaceAll(/\(\^[^)]*\)/g, '');
  return READING.has(method) && route !== undefined && OPEN.has(route);
}

const HIDDEN = '***';
const SECRET_FIELD = /key$|secret|password|passphrase|token/i;
/** URLs in any text, by scheme and host: paths and queries may contain stream keys, passphrases and signatures. */
const ADDRESS = /\b(?!file:|stream:)([a-z][a-z0-9+.-]{0,20}:\/\/)(?:[^\s/?#@]*@)?([^\s/?#"']+)[/?#][^\s"']+/gi;

/** Copies an answer without its secrets, for read-only links. */
export function withoutSecrets(value: unknown, field = ''): unknown {
  if (typeof value === 'string') {
    if (SECRET_FIELD.test(field)) return HIDDEN;
    return value.replace(ADDRESS, `$1$2/${HIDDEN}`);
  }
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, field));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutSecrets(item, key)]));
}

/** Removes secrets from answers to requests with a read-only link, whichever node answers. */
export function hideSecrets(app: FastifyInstance, isReadOnly: (request: FastifyRequest) => boolean): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!isReadOnly(request) || typeof payload !== 'string') return done();
    if (!String(reply.getHeader('content-type')).startsWith('application/json')) return done();
    reply.removeHeader('content-length');
    done(null, JSON.stringify(withoutSecrets(JSON.parse(payload))));
  });
}
